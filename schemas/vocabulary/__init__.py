"""The events, a module an owner. Each module lists its subjects in ``ENTRIES``; the catalogue finds them."""
