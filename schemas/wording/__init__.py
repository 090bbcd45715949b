"""People's words in events, and words for what events mean."""
