"""Whole numbers that others write as text, such as in headers. Pure."""

MOST_DIGITS = 18
"""Most digits that are read: such a number fits into 64 bits, and Python refuses to convert thousands of them."""


def read_whole_number(text: str) -> int | None:
    """Return the number that ASCII digits write; None for any other text, and for more than :data:`MOST_DIGITS`."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None
