"""The text of an answer while a model generates it: what may be sent now, and what is left to send at the end. Pure.

Text that was sent cannot be taken back. So once text of one attempt at an answer was sent, no text of another attempt
is. If the model is called again, or a piece is missing, the rest waits for the end.
"""

from actors.gateway.answer_pieces import AnswerPiece


class StreamedText:
    """The text of one answer so far.

    Attributes:
        sent: The text sent to the client.
    """

    def __init__(self) -> None:
        self.sent = ""
        self._attempt: tuple[str, int] | None = None
        self._next_index = 0

    def take(self, piece: AnswerPiece) -> str:
        """Take a piece; return the part of it to be sent now."""
        attempt = (piece.request, piece.attempt)
        if self._attempt is None or (not self.sent and attempt != self._attempt):
            self._attempt, self._next_index = attempt, 0
        if attempt != self._attempt or piece.index != self._next_index:
            return ""
        self._next_index += 1
        # Leading white space is not part of an answer.
        text = piece.text if self.sent else piece.text.lstrip()
        self.sent += text
        return text

    def rest(self, answer: str) -> str | None:
        """Return the part of the answer that is left to send; None where what was sent is not its beginning."""
        if answer.startswith(self.sent):
            return answer.removeprefix(self.sent)
        return "" if answer == self.sent.rstrip() else None
