"""The layers of memory: facts, episodes, concepts, sessions, gists and thoughts."""
