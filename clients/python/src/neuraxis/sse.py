"""Decodes server-sent events, by the HTML standard, from the bytes of a response. No I/O."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from neuraxis.errors import BadAnswer

MOST_BYTES = 16 * 1024 * 1024
"""Most bytes of one line, and of all data of one message."""

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
        self._held: list[bytes] = []  # the pieces of the line that has no end yet
        self._held_bytes = 0
        self._id = ""
        self._data: list[str] = []
        self._data_bytes = 0

    def feed(self, piece: bytes) -> Iterator[Message]:
        """Yield the messages that a piece completes; raises BadAnswer for a line or a message that is too long."""
        if not piece:
            return
        # The line feed of a carriage return at the end of the last piece may begin this one.
        has_end = bool(self._held) and self._held[-1].endswith(b"\r")
        self._held.append(piece)
        self._held_bytes += len(piece)
        if has_end or b"\n" in piece or b"\r" in piece:  # else joining would copy a long line with each piece
            buffer, begin = b"".join(self._held), 0
            for end in _LINE_END.finditer(buffer):
                if end.group() == b"\r" and end.end() == len(buffer):
                    break  # its line feed may be in the next piece
                line, begin = buffer[begin : end.start()], end.end()
                if (message := self._take(line)) is not None:
                    yield message
            self._held, self._held_bytes = [buffer[begin:]], len(buffer) - begin
        if self._held_bytes > MOST_BYTES:
            raise BadAnswer(f"a line of the event stream has more than {MOST_BYTES:,} bytes: is this a Neuraxis?")

    def _take(self, line: bytes) -> Message | None:
        if not line:
            data, self._data, self._data_bytes = self._data, [], 0
            return Message(self._id, "\n".join(data)) if data else None
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._data_bytes += len(line)
            if self._data_bytes > MOST_BYTES:
                raise BadAnswer(f"an event of the stream has more than {MOST_BYTES:,} bytes: is this a Neuraxis?")
        elif name == "id" and "\0" not in value:
            self._id = value
        return None
