"""The endpoints that show what is recorded: exchanges, why they ended so, events as they come, and all at a glance."""
