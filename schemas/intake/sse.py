"""Server-sent events as Chat Completions use them: parsed from bytes in pieces of any size."""

from collections.abc import Iterator
from typing import NamedTuple

DONE = b"[DONE]"
"""Data of the event that ends a stream."""

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data", b"event", b"id", b"retry")


class Event(NamedTuple):
    """An event of a stream: its name (empty for none) and its data.

    ``closed``: whether the blank line that ends it was received.
    """

    name: bytes
    data: bytes
    closed: bool = True


def is_stream(start: bytes) -> bool:
    """Whether a body that starts so is a stream of events, whatever its content type says."""
    line = start.removeprefix(_BOM).lstrip()
    return line[:1] == b":" or line.partition(b":")[0].strip() in _FIELDS


class Events:
    """A parser of one stream: takes its bytes in pieces, yields its events."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._first = True
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Yield each event that ends within ``piece``; other fields and comments are skipped."""
        # A line may come in thousands of pieces: they are joined when it ends.
        line_ended = bool(self._line) and self._line[-1].endswith(b"\r")
        self._line.append(piece)
        if not line_ended and b"\n" not in piece and b"\r" not in piece:
            return
        text = b"".join(self._line)
        # A carriage return at the end may be the first half of a line end (CR LF): wait for the next piece.
        held = b"\r" if text.endswith(b"\r") else b""
        *lines, rest = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._line = [rest + held]
        for line in lines:
            yield from self._read(line)

    def end(self) -> Iterator[Event]:
        """Yield the last event, where the stream ended without the blank line that should close it."""
        line, self._line = b"".join(self._line).removesuffix(b"\r"), []
        yield from self._read(line)
        yield from (event._replace(closed=False) for event in self._read(b""))

    def _read(self, line: bytes) -> Iterator[Event]:
        if self._first:
            self._first, line = False, line.removeprefix(_BOM)
        name, _, value = line.partition(b":")
        if name.strip() == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._name = value.strip()
        elif line.lstrip()[:1] in (b"{", b"["):
            # Some servers write a line end between the field's name and its value, or no name at all.
            self._data.append(line)
        elif not line:
            data, name, self._data, self._name = b"\n".join(self._data), self._name, [], b""
            if data.strip():
                yield Event(name, data)
