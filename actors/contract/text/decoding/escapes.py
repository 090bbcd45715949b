"""Undoes the escapes of programs, style sheets, pages, addresses and mail, anywhere in a text."""

import re
from collections.abc import Iterator

from actors.contract.text.decoding.parts_with_form import stretches_of

FEWEST = 4
"""Least escapes of a text; fewer cannot hide a word."""

_ESCAPE = re.compile(
    r"\\[ux]\{([0-9a-fA-F]{1,6})\}|%u([0-9a-fA-F]{4})|\\00([0-9a-fA-F]{4})\s?|\\([0-3][0-7]{2})"
    r"|&#0*([0-9]{2,7});?|&#[xX]0*([0-9a-fA-F]{2,6});?|U\+([0-9A-Fa-f]{4,6})\s?"
    r"|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})"
)
_BASES = (16, 16, 16, 8, 10, 16, 16, 16, 16, 16, 16)
_QUOTED = re.compile(r"=([0-9A-F]{2})")
_QUOTED_OR_BREAK = re.compile(r"=[0-9A-F]{2}|=[ \t]*\r?\n")
_SOFT_BREAK = re.compile(r"=[ \t]*\r?\n")


def undo_escapes(text: str) -> Iterator[str]:
    """Yield a text with its escapes undone."""
    if text.count("\\") + text.count("%") + text.count("&#") + text.count("U+") >= FEWEST:
        said, count = _ESCAPE.subn(_character, stretches_of(text, (match.span() for match in _ESCAPE.finditer(text))))
        if count >= FEWEST and said != text:
            yield said
    if text.count("=") >= FEWEST:
        seen = stretches_of(text, (match.span() for match in _QUOTED_OR_BREAK.finditer(text)))
        said, count = _QUOTED.subn(lambda match: chr(int(match[1], 16)), _SOFT_BREAK.sub("", seen))
        if count >= FEWEST or (said and said != seen and "=\n" in text):
            yield said


def _character(match: re.Match[str]) -> str:
    group = match.lastindex or 1
    code = int(match[group], _BASES[group - 1])
    # Code points beyond the last are no characters: they stay as they are.
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]
