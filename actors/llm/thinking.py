"""Leaving out what a model thinks before it answers: ``<think> ... </think>``, as Qwen3 and its like write it.

Only at the front: an answer may well speak of such tags. A model whose template opens the thought for it writes the
closing tag alone; in a whole text that is seen, in a stream it cannot be.
"""

_OPEN, _CLOSE = "<think>", "</think>"


def without_thoughts(text: str) -> str:
    """Return a whole text without the thoughts at its front, blanks around it removed; an unfinished thought is all."""
    rest = text.lstrip()
    while rest.startswith(_OPEN):
        _, closed, rest = rest.partition(_CLOSE)
        rest = rest.lstrip() if closed else ""
    before, closed, after = rest.partition(_CLOSE)
    return (after if closed and _OPEN not in before else rest).strip()


class Spoken:
    """Leaves thoughts out of a text that comes in parts, however it is cut."""

    def __init__(self) -> None:
        self._held = ""
        self._speaking = False

    def take(self, part: str) -> str:
        """Return what may be shown now that ``part`` has come: without thoughts, or blanks before the first word."""
        if self._speaking:
            return part
        self._held = (self._held + part).lstrip()
        while self._held.startswith(_OPEN):
            _, closed, rest = self._held.partition(_CLOSE)
            if not closed:
                return ""
            self._held = rest.lstrip()
        if not self._held or _OPEN.startswith(self._held):
            return ""
        self._speaking = True
        return self._held
