"""Bodies that are forwarded: read as they arrive (``guarding``), and without personal data (``masking``)."""
