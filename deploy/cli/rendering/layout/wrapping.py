"""Wraps, between words, a text that comes in pieces; a terminal by itself would break within words. Pure."""

import re

from rich.cells import cell_len

_TAB_CELLS = 8


class WordWrapper:
    """Puts a line break before each word that has no room on its line.

    A word is held back until it ends, or is as long as a line. Longer words are left to the terminal.

    Args:
        width: Cells of a line.
    """

    def __init__(self, width: int) -> None:
        self._width = max(1, width)
        self._column = 0
        self._word = ""

    def take(self, text: str) -> str:
        """Take a piece; return the text that can be printed now."""
        return "".join(self._printable_part(part) for part in re.split(r"(\s)", text) if part)

    def rest(self) -> str:
        """Return the text that was held back; more pieces may still follow."""
        word, self._word = self._word, ""
        width = cell_len(word)
        line_break = "\n" if self._column and self._column + width > self._width else ""
        self._column = width if line_break else self._column + width
        if self._column > self._width:
            self._column %= self._width  # a word longer than a line: the terminal breaks it
        return line_break + word

    def _printable_part(self, part: str) -> str:
        if part.isspace():
            return self.rest() + self._blank(part)
        self._word += part
        return self.rest() if cell_len(self._word) >= self._width else ""

    def _blank(self, blank: str) -> str:
        if blank in "\r\n":
            self._column = 0
            return blank
        width = _TAB_CELLS - self._column % _TAB_CELLS if blank == "\t" else cell_len(blank)
        if self._column + width > self._width:
            self._column = 0
            return "\n"
        self._column += width
        return blank


def wrap_words(text: str, width: int) -> str:
    """Return a whole text, wrapped between words."""
    wrapper = WordWrapper(width)
    return wrapper.take(text) + wrapper.rest()
