"""Where people's words are in events, and texts for people about events."""
