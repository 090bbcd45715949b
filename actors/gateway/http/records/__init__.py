"""The endpoints that show what is recorded: exchanges, why they ended so, and events as they come."""
