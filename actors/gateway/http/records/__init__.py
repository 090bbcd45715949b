"""The endpoints that show what is recorded: exchanges, why they ended, events as they are stored, and an overview."""
