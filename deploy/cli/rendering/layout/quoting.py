"""People's words on a terminal: on one line, limited in length, without control characters. Pure."""

from deploy.cli.rendering.layout.printable import printable

LONGEST_QUOTE = 300
"""Characters of a quote, unless the caller says otherwise."""


def quoted_line(text: str, limit: int = LONGEST_QUOTE) -> str:
    """Return a text in quotes on one line, cut at ``limit`` characters."""
    line = printable(" ".join(text[: limit * 2].split()))
    cut = line if len(line) <= limit and len(text) <= limit * 2 else line[: limit - 1] + "…"
    return f"“{cut}”"
