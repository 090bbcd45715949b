"""Texts and values on a terminal: limited in length; people's words on one line, without control characters. Pure."""

from typing import Any

import msgspec

from deploy.cli.rendering.layout.printable import printable

LONGEST_QUOTE = 300
"""Characters of a quote, unless the caller says otherwise."""


def quoted_line(text: str, limit: int = LONGEST_QUOTE) -> str:
    """Return a text in quotes on one line, cut at ``limit`` characters."""
    line = printable(" ".join(text[: limit * 2].split()))
    cut = line if len(line) <= limit and len(text) <= limit * 2 else line[: limit - 1] + "…"
    return f"“{cut}”"


def shortened(text: str, limit: int) -> str:
    """Return a text cut at ``limit`` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def value_text(value: Any, limit: int) -> str:
    """Return a value, cut at ``limit`` characters: a text in quotes, all else as JSON."""
    text = quoted_line(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return shortened(text, limit)
