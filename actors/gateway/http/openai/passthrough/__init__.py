"""Bodies that are forwarded: read by guards as they arrive (``guarding``), and without personal data (``masking``)."""
