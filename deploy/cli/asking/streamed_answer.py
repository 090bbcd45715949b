"""A streamed answer on the terminal: pieces of a model's text that come to the caller's inbox before the answer."""

from collections.abc import Callable

from actors.gateway import AnswerPiece
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.wrapping import WordWrapper


class StreamedAnswer:
    """Prints the pieces of an answer to the terminal as they come.

    If the model has to be asked again, the answer begins anew; the text so far stays on the terminal, above it.

    Attributes:
        spoken: The part of the answer that is on the terminal.

    Args:
        write: Prints a text, without an end of line.
        width: Width of the terminal in cells; lines are wrapped between words.
    """

    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self.spoken = ""
        self._write = write
        self._width = width
        self._wrapper = WordWrapper(width)
        self._call: tuple[str, int] | None = None
        self._next_index = 0

    def take(self, piece: AnswerPiece) -> None:
        """Print the next piece of the answer, except for a word that may go on in the next piece."""
        call = (piece.request, piece.attempt)
        if call != self._call:
            if self.spoken:
                self._write(f"{self._wrapper.rest()} [...]\n")
            self._call, self._next_index, self.spoken = call, 0, ""
            self._wrapper = WordWrapper(self._width)
        if piece.index != self._next_index:
            return  # a piece was lost (pieces are never stored) or came twice: the whole answer is shown at the end
        text = printable(piece.text, keep="\n\t")
        self._next_index, self.spoken = self._next_index + 1, self.spoken + text
        self._write(self._wrapper.take(text))

    def end(self, more: str = "") -> None:
        """Print the word that was held back, and ``more``: the end of the answer, of which no piece came."""
        self._write(self._wrapper.take(more) + self._wrapper.rest())
