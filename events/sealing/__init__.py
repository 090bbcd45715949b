"""Sealing: people's words are stored encrypted, with a key for each session, so that destroying a key forgets them."""
