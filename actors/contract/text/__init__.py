"""How texts are read by the parts that judge them: folding, tokens, decoded views, excerpts."""
