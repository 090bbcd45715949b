"""Texts that show nothing: empty, white space, or signs without a shape. Pure."""

import re

_UNSEEN = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]*"
)

_MAY_SPELL = 24
"""So many signs that show nothing may spell a word, for a model that reads them."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: no name, and no reason, for people who read it."""
    return _UNSEEN.fullmatch(text) is not None


def says_nothing(text: str) -> bool:
    """Whether a text has nothing to judge: it shows nothing, and has no signs that may spell a word."""
    return not text.strip() or (len(text) < _MAY_SPELL and is_blank(text))
