"""Reads one answer from a response, as one document or as a stream, however it is split into pieces.

The kind of answer is recognised by its first bytes, not by its header. A complete answer is used even if the connection
then breaks or hangs: asking again would mean paying twice.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress

import msgspec

from actors.llm.wire.decompression import BadEncoding, Decompressor
from actors.llm.wire.response_parsing import (
    Completion,
    NotTheProtocol,
    Piece,
    Refused,
    SurrogateJoiner,
    document_of,
    join_pieces,
    piece_of,
    read_answer,
)
from events.libraries.http_client import httpx
from schemas.intake.sse import DONE, Event, Events, is_stream

MOST_BYTES = 8 * 1024 * 1024
"""Most bytes of one answer that are read; a stream needs about 200 bytes of JSON for a token."""

USAGE_S = 1.0
"""Seconds that a stream may take from the end of its text to its usage, and then to its own end."""

_LONGER_WITH_TEXT = 10
"""Factor of ``USAGE_S`` if the finish reason comes with text: some endpoints write one in every piece."""

_MARGIN_S = 0.1
"""The end of a stream is waited for until this many seconds before its caller stops waiting."""

OnPiece = Callable[[str], Awaitable[None]]
"""Gets a piece of an answer's text."""


class CutShort(Exception):
    """The answer broke off before it was complete."""


async def body_of(response: httpx.Response, most: int) -> AsyncGenerator[bytes, None]:
    """Yield a body decompressed; raises NotTheProtocol beyond ``most`` bytes, or if it cannot be decompressed."""
    decompressor = Decompressor(response.headers.get("Content-Encoding", ""), most)
    try:
        async for piece in response.aiter_raw():
            if decompressed := decompressor.take(piece):
                yield decompressed
        if rest := decompressor.end():
            yield rest
    except BadEncoding as wrong:
        raise NotTheProtocol("ContentEncoding") from wrong
    except OverflowError as wrong:
        raise NotTheProtocol("TooLong") from wrong


async def whole_body(response: httpx.Response, most: int) -> bytes:
    """Return a body; raises as :func:`body_of`."""
    return b"".join([piece async for piece in body_of(response, most)])


async def answer_in(response: httpx.Response, on_piece: OnPiece, until: float | None = None) -> Completion:
    """Read the answer in a response; if it is a stream, ``on_piece`` gets each piece as it arrives.

    ``until`` is when the caller stops waiting, by the event loop's clock (seconds): the usage that may follow an answer
    is not waited for any longer.

    Raises:
        NotTheProtocol: it is not an answer.
        Refused: it is an error.
        CutShort: it broke off.
    """
    body, next_length = bytearray(), 0
    async with aclosing(body_of(response, MOST_BYTES)) as pieces:
        try:
            async for piece in pieces:
                body += piece
                if is_stream(bytes(body[:64])) and b":" in body:
                    return await _streamed(bytes(body), pieces, on_piece, until)
                if len(body) >= next_length and body.rstrip().endswith((b"}", b"]")):
                    if (found := _complete(bytes(body))) is not None:
                        return found
                    next_length = len(body) + len(body) // 8  # so that a long body is not parsed for each of its pieces
        except httpx.HTTPError as broken:
            with suppress(NotTheProtocol):
                piece_of(document_of(bytes(body)))  # raises Refused if the body is an error, wherever it broke off
            raise CutShort from broken
    return _read(bytes(body))


def _complete(body: bytes) -> Completion | None:
    """Return the answer in the bytes so far; None if it may be incomplete."""
    try:
        document = document_of(body)
        first = document[0] if isinstance(document, list) and document else document
        choices = first.get("choices") if isinstance(first, dict) else None
        is_piece = isinstance(choices, list) and any(isinstance(each, dict) and "delta" in each for each in choices)
        return read_answer(body) if choices and not is_piece else None
    except (NotTheProtocol, Refused):
        return None


def _read(body: bytes) -> Completion:
    """Parse a complete body: one document, or the events of a stream as lines."""
    try:
        return read_answer(body)
    except NotTheProtocol as wrong:
        lines = [line for line in body.splitlines() if line.strip()]
        if len(lines) < 2 or not all(line.lstrip()[:1] == b"{" for line in lines):
            raise
        pieces = [piece_of(document_of(line)) for line in lines]
        if not any(piece.choices for piece in pieces):
            raise NotTheProtocol("NoChoice") from wrong
        return join_pieces(pieces)


async def _streamed(beginning: bytes, rest: AsyncIterator[bytes], on_piece: OnPiece, until: float | None) -> Completion:
    found: list[Piece] = []
    joiner, ended = SurrogateJoiner(), False
    try:
        async with asyncio.timeout(None) as limit:
            async for event in _events(beginning, rest):
                if event.data.strip().upper() == DONE:
                    return join_pieces(found)
                for piece in (_new_of(each, found) for each in _pieces(event)):
                    found.append(piece)
                    if text := joiner.take(piece.text):
                        await on_piece(text)
                    if piece.finish_reason or piece.text:
                        ended = bool(piece.finish_reason)
                        limit.reschedule(_wait_until(piece, until) if ended else None)
    except (httpx.HTTPError, NotTheProtocol, Refused, CutShort, TimeoutError) as broken:
        if ended and (not isinstance(broken, TimeoutError) or limit.expired()):
            return join_pieces(found)
        if isinstance(broken, httpx.HTTPError):
            raise CutShort from broken
        if isinstance(broken, Refused):
            raise Refused(broken.status, broken.said, midway=True) from broken
        raise
    if not any(piece.text for piece in found) and not ended:
        raise CutShort
    return join_pieces(found)


def _new_of(piece: Piece, earlier: list[Piece]) -> Piece:
    """Return what a piece adds: some streams end with a message of the whole text, or repeat it in every piece."""
    so_far = "".join(each.text for each in earlier if not each.whole) if piece.whole else ""
    if so_far and piece.text.startswith(so_far):
        return msgspec.structs.replace(piece, text=piece.text.removeprefix(so_far))
    return piece


def _wait_until(piece: Piece, until: float | None) -> float:
    """Return until when to wait for the usage after the end of an answer, since some streams never end."""
    now = asyncio.get_running_loop().time()
    latest = now + USAGE_S * (_LONGER_WITH_TEXT if piece.text else 1)
    return latest if until is None else max(now, min(latest, until - _MARGIN_S))


async def _events(beginning: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    events = Events()
    for event in events.feed(beginning):
        yield event
    async for piece in rest:
        for event in events.feed(piece):
            yield event
    for event in events.end():
        yield event


def _pieces(event: Event) -> list[Piece]:
    """Parse one event; anything that is neither an object nor an error is ignored: a keep-alive, ``null``."""
    data = event.data.removeprefix(b"\xef\xbb\xbf").strip()
    if event.name == b"error":
        raise Refused(*_error_in(data))
    if data[:1] not in (b"{", b"["):
        return []
    try:
        return [piece_of(document_of(data))]
    except NotTheProtocol as wrong:
        lines = [line for line in data.splitlines() if line.strip()]
        if len(lines) < 2 and not event.closed:
            raise CutShort from wrong  # a body without a length seems complete even if its endpoint has crashed
        if len(lines) < 2:
            raise
        # Events without a blank line between them.
        return [piece_of(document_of(line)) for line in lines if line.strip().upper() != DONE]


def _error_in(data: bytes) -> tuple[int, str]:
    try:
        document = document_of(data)
        piece_of(document if isinstance(document, dict) and document.get("error") else {"error": document})
    except Refused as refused:
        return refused.status, refused.said
    except NotTheProtocol:
        pass
    return 0, data.decode("utf-8", "replace")
