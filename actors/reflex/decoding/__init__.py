"""Finds the encoded runs of a text, and decodes them."""
