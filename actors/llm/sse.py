"""Server-sent events as Chat Completions use them: the data of each event, from bytes that come in any pieces."""

from collections.abc import Iterator

DONE = b"[DONE]"
"""Data of the event that ends a stream."""


class Events:
    """Collects the events of a stream."""

    def __init__(self) -> None:
        self._line = b""
        self._data: list[bytes] = []

    def take(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that ends within ``piece``; other fields and comments are passed over."""
        # A lone carriage return may end a line too, but no endpoint writes that, and it could be half of a pair.
        *lines, self._line = (self._line + piece).split(b"\n")
        for line in lines:
            yield from self._read(line.removesuffix(b"\r"))

    def end(self) -> Iterator[bytes]:
        """Yield the last event, where the stream ended without the blank line that should close it."""
        line, self._line = self._line, b""
        yield from self._read(line.removesuffix(b"\r"))
        yield from self._read(b"")

    def _read(self, line: bytes) -> Iterator[bytes]:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif not line and self._data:
            data, self._data = b"\n".join(self._data), []
            yield data
