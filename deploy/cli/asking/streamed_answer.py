"""What a model says while it speaks: pieces of text that come to the caller's inbox ahead of the answer."""

from collections.abc import Callable

from actors.gateway import AnswerPiece
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.wrapping import WordWrapper


class StreamedAnswer:
    """Puts the pieces of an answer on the terminal as they come.

    An answer may be begun again, when the model has to be asked another time: then the text so far is left behind.

    Attributes:
        spoken: What stands on the terminal as the beginning of the answer.

    Args:
        write: Prints a text, without an end of line.
        width: Cells of the terminal's lines; words are not broken at their ends.
    """

    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self.spoken = ""
        self._write = write
        self._width = width
        self._wrapping = WordWrapper(width)
        self._asked: tuple[str, int] | None = None
        self._next = 0

    def take(self, piece: AnswerPiece) -> None:
        """Take a piece, as it comes."""
        asked = (piece.request, piece.attempt)
        if asked != self._asked:
            if self.spoken:
                self._write(f"{self._wrapping.rest()} [...]\n")
            self._asked, self._next, self.spoken = asked, 0, ""
            self._wrapping = WordWrapper(self._width)
        if piece.index != self._next:
            return  # a piece is missing (none is ever kept for anyone), or came twice: the answer will be shown whole
        text = printable(piece.text, keep="\n\t")
        self._next, self.spoken = self._next + 1, self.spoken + text
        self._write(self._wrapping.take(text))

    def end(self, more: str = "") -> None:
        """Put the rest of what was spoken on the terminal, with what the answer has behind it."""
        self._write(self._wrapping.take(more) + self._wrapping.rest())
