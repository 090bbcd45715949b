"""Whether what a disguise was undone to is text at all."""

LEAST = 6
"""Characters that a decoded text has."""

PRINTED = bytes(code for code in range(128) if chr(code).isprintable() or chr(code) in "\n\t\r")
"""Characters of ASCII that texts have."""

_NOT_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_BREAKS = {ord(char): None for char in "\n\t\r"}


def is_text(said: str) -> bool:
    """Return whether nearly all characters of a decoded text are such that can be shown."""
    if len(said) < LEAST:
        return False
    if said.isascii():
        return len(said.encode().translate(None, PRINTED)) <= 0.03 * len(said)
    if said.translate(_BREAKS).isprintable():
        return True
    return sum(char.isprintable() or char in "\n\t\r" for char in said) >= 0.97 * len(said)


def is_worded(said: str) -> bool:
    """Return whether a decoded text is made of letters for the most part."""
    if not is_text(said):
        return False
    # Letters of ASCII are nearly always enough, or all there are.
    letters = len(said.encode("ascii", "ignore").translate(None, _NOT_LETTERS))
    return letters >= 0.5 * len(said) or (not said.isascii() and sum(map(str.isalpha, said)) >= 0.5 * len(said))


def text_of(data: bytes) -> str:
    """Return bytes as text, of UTF-16 too; empty where they are none."""
    if data.count(b"\0") * 3 > len(data):
        data = data.replace(b"\0", b"")
    try:
        said = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return said if is_text(said) else ""
