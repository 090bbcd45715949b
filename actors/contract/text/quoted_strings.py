"""Undoes the escapes in quoted strings of JSON and code, such as line ends and quotation marks.

Otherwise an instruction in a JSON document would be read as one sentence with the text before it. A string extends from
one quotation mark to the next of the same kind, so a stray mark of the other kind does not confuse the rest. The
content of a string may again be a document, for example where the result of one tool contains that of another.
"""

import re
from functools import partial

import msgspec

DEPTH = 4
"""Most strings inside each other that are read."""

MANY = 16_384
"""In a text with more escapes, strings are not parsed one by one: only ``\\n`` and ``\\"`` are replaced."""

# From a string's first escape to its end. The pattern is possessive, so that each character is visited once.
_ESCAPED = re.compile(r"""(?:\\.[^"'`\\\n]*+)++""")
_CODE_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))")


def unescape_strings(text: str, depth: int = DEPTH) -> str:
    """Return a text with its quoted strings unescaped, and ``depth`` levels of strings inside them.

    Strings with escapes of neither JSON nor code stay.
    """
    if not depth or "\\" not in text or not any(mark in text for mark in "\"'`"):
        return text
    if text.count("\\") > MANY:
        return text.replace("\\n", "\n").replace('\\"', '"')
    return _ESCAPED.sub(partial(_unescaped, depth=depth - 1), text)


def _unescaped(string: re.Match[str], depth: int) -> str:
    escaped = string[0]
    plain = _of_json(escaped)
    if plain is None and ("\\'" in escaped or "\\x" in escaped or "\\`" in escaped):
        plain = _of_json(_CODE_ESCAPE.sub(_as_json, escaped))
    return escaped if plain is None else unescape_strings(plain, depth)


def _of_json(escaped: str) -> str | None:
    try:
        return msgspec.json.decode(f'"{escaped}"'.encode(), type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _as_json(escape: re.Match[str]) -> str:
    if escape[1]:
        return f"\\u00{escape[1]}"
    return escape[2] if escape[2] in "'`" else escape[0]
