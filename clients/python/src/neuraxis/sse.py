"""Decodes server-sent events, by the HTML standard, from the bytes of a response. No I/O."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from neuraxis.errors import BadAnswer

MOST_BYTES = 16 * 1024 * 1024
"""Most bytes of one line."""

_LINE_END = re.compile(b"\r\n|\n|\r")


@dataclass(frozen=True)
class Message:
    """One message of a stream."""

    id: str
    data: str


class Decoder:
    """Decodes messages from bytes that come in pieces of any size.

    Lines end only where the standard says. ``str.splitlines`` would also cut at U+2028 and the like, which JSON may
    hold.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._id = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[Message]:
        """Yield the messages that a piece completes; raises BadAnswer for a line without an end."""
        buffer, begin = self._rest + piece, 0
        for end in _LINE_END.finditer(buffer):
            if end.group() == b"\r" and end.end() == len(buffer):
                break  # its line feed may be in the next piece
            line, begin = buffer[begin : end.start()], end.end()
            if (message := self._take(line)) is not None:
                yield message
        self._rest = buffer[begin:]
        if len(self._rest) > MOST_BYTES:
            raise BadAnswer(f"a line of the event stream has more than {MOST_BYTES:,} bytes: is this a Neuraxis?")

    def _take(self, line: bytes) -> Message | None:
        if not line:
            data, self._data = self._data, []
            return Message(self._id, "\n".join(data)) if data else None
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        return None
