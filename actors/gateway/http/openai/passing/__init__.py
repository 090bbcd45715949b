"""Bodies that are passed on: read as they come (``guarding``), and without people's data (``masking``)."""
