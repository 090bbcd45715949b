"""How tables, texts and drawings are laid out on a terminal, and made harmless there."""
