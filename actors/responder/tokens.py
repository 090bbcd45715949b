"""How many tokens a text comes to, where no tokenizer is at hand. Pure.

An estimate on the high side: four ASCII characters are a token, as in English text, and every other character is one
of its own, as in the scripts that tokenizers split finest. Of two texts joined it is at most the sum.
"""

from bisect import bisect_right

CHARACTERS_PER_TOKEN = 4
"""Of ASCII text; no text has more characters than this for each of its tokens."""

CUT = " […]"
"""What stands at the end of a text that goes on."""


def estimate(text: str) -> int:
    """Return about how many tokens a text is."""
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // CHARACTERS_PER_TOKEN) + len(text) - plain


def cut(text: str, most: int) -> str:
    """Return a text of at most ``most`` tokens: the whole, or its beginning with ``[…]``; empty where that is too long.

    Looks at no more of it than could fit, however long it is.
    """
    window = text[: CHARACTERS_PER_TOKEN * most + 1]
    if len(window) == len(text) and estimate(text) <= most:
        return text
    room = most - estimate(CUT)
    if room <= 0:
        return ""
    kept = bisect_right(range(len(window) + 1), room, key=lambda length: estimate(window[:length])) - 1
    return window[:kept].rstrip() + CUT
