"""How the actors that judge texts read them: folding, tokens, decoded views (texts with encodings undone), excerpts."""
