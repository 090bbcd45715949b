"""The events: one module for each owner. Each module lists its subjects in ``ENTRIES``; the catalogue finds them."""
