"""What quoted strings say, in place of how they are written: JSON and code escape line ends and quotation marks.

An order in a document of JSON would else be read as one sentence with what stands before it. A string goes from one
quotation mark to the next, whichever of the two begins it: so a stray mark on the line turns nothing round. What a
string says may be a document again, as where one tool's result holds another's.
"""

import re
from functools import partial

import msgspec

DEPTH = 4
"""Strings within each other that are read."""

MANY = 16_384
"""Escapes beyond which a text is not looked at string by string: line ends and marks are read wherever they are."""

# From a string's first escape to its end; possessive, so that each character is looked at once.
_ESCAPED = re.compile(r"""(?:\\.[^"'`\\\n]*+)++""")
_OF_CODE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))")


def unescape_strings(text: str, depth: int = DEPTH) -> str:
    """Return a text whose quoted strings hold what they say; those with escapes of neither JSON nor code stay."""
    if not depth or "\\" not in text or not any(mark in text for mark in "\"'`"):
        return text
    if text.count("\\") > MANY:
        return text.replace("\\n", "\n").replace('\\"', '"')
    return _ESCAPED.sub(partial(_said, depth=depth - 1), text)


def _said(string: re.Match[str], depth: int) -> str:
    written = string[0]
    said = _of_json(written)
    if said is None and ("\\'" in written or "\\x" in written or "\\`" in written):
        said = _of_json(_OF_CODE.sub(_as_json, written))
    return written if said is None else unescape_strings(said, depth)


def _of_json(written: str) -> str | None:
    try:
        return msgspec.json.decode(f'"{written}"'.encode(), type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _as_json(escape: re.Match[str]) -> str:
    if escape[1]:
        return f"\\u00{escape[1]}"
    return escape[2] if escape[2] in "'`" else escape[0]
