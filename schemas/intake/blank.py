"""Tests for texts that show nothing: empty, white space, or invisible characters. Pure."""

import re

# White space, control characters, and code points that have no glyph, such as zero-width spaces.
_INVISIBLE = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]*"
)

_FEWEST_ENCODING_A_WORD = 24
"""This many invisible characters may encode a word that a model reads."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing to people who read it, and so is no name and no reason."""
    return _INVISIBLE.fullmatch(text) is not None


def says_nothing(text: str) -> bool:
    """Whether a text has nothing to judge: it shows nothing, and has too few invisible characters to encode a word."""
    return not text.strip() or (len(text) < _FEWEST_ENCODING_A_WORD and is_blank(text))
