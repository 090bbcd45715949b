"""Leaving out what a model thinks before it answers: ``<think> ... </think>``, as Qwen3 and its like write it.

Only at the front: an answer may well speak of such tags. A model whose template opens the thought for it writes the
closing tag alone; in a whole text that is seen, in a stream it cannot be.
"""

_OPEN, _CLOSE = "<think>", "</think>"


def without_thoughts(text: str) -> str:
    """Return a whole text without the thoughts at its front, blanks around it removed; an unfinished thought is all."""
    at = _past_blanks(text, 0)
    while text.startswith(_OPEN, at):
        close = text.find(_CLOSE, at)
        if close < 0:
            return ""
        at = _past_blanks(text, close + len(_CLOSE))
    close = text.find(_CLOSE, at)
    if close >= 0 and text.find(_OPEN, at, close) < 0:
        at = close + len(_CLOSE)
    return text[at:].strip()


class Spoken:
    """Leaves thoughts out of a text that comes in parts, however it is cut."""

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._speaking = False

    def take(self, part: str) -> str:
        """Return what may be shown now that ``part`` has come: without thoughts, or blanks before the first word."""
        if self._speaking:
            return part
        text, at = self._held + part, 0
        while True:
            if self._thinking:
                close = text.find(_CLOSE, at)
                if close < 0:
                    # Of a thought only what may be the beginning of its end is kept: it can be as long as it likes.
                    self._held = text[max(at, len(text) - len(_CLOSE) + 1) :]
                    return ""
                at, self._thinking = close + len(_CLOSE), False
            at = _past_blanks(text, at)
            if not text.startswith(_OPEN, at):
                break
            at, self._thinking = at + len(_OPEN), True
        self._held = text[at:]
        if not self._held or _OPEN.startswith(self._held):
            return ""
        self._speaking = True
        return self._held


def _past_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
