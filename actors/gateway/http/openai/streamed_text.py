"""An answer's text while a model speaks: what of it may be sent on, and what is left to send at its end. Pure.

What a client was sent cannot be taken back. So only the first attempt at an answer is sent on while it is spoken: where
the model is asked again, or a piece is missing, the rest waits for the end.
"""

from actors.gateway.answer_pieces import AnswerPiece


class StreamedText:
    """The text of one answer so far.

    Attributes:
        sent: What the client has been sent.
    """

    def __init__(self) -> None:
        self.sent = ""
        self._asked: tuple[str, int] | None = None
        self._next = 0

    def take(self, piece: AnswerPiece) -> str:
        """Take a piece; return what of it is to be sent now."""
        asked = (piece.request, piece.attempt)
        if self._asked is None or (not self.sent and asked != self._asked):
            self._asked, self._next = asked, 0
        if asked != self._asked or piece.index != self._next:
            return ""
        self._next += 1
        # White space at the beginning is no part of an answer.
        text = piece.text if self.sent else piece.text.lstrip()
        self.sent += text
        return text

    def rest(self, answer: str) -> str | None:
        """Return what of the answer is left to send; None where it is not what was sent."""
        if answer.startswith(self.sent):
            return answer.removeprefix(self.sent)
        return "" if answer == self.sent.rstrip() else None
