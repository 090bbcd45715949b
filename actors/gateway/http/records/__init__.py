"""The endpoints that show what is recorded: exchanges and why they ended so, events, states, and an overview."""
