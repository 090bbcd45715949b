"""An endpoint that answers as it is told to, over real HTTP, and remembers what it was asked."""

import asyncio
import contextlib
import json
import queue
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

ANSWER = "Lima is the capital of Peru."
JSON = MappingProxyType({"Content-Type": "application/json"})
EVENT_STREAM = MappingProxyType({"Content-Type": "text/event-stream"})


class Reply(msgspec.Struct, frozen=True):
    """One reply: its body in pieces, sent one by one.

    ``then`` says what follows: ``end`` closes as HTTP does, ``hang`` keeps the caller waiting, ``cut`` drops the
    connection before the promised length was sent.
    """

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = JSON
    then: str = "end"


class Asked(msgspec.Struct, frozen=True):
    """One request: header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        """The body, read as JSON."""
        found: dict[str, Any] = json.loads(self.body)
        return found


class Endpoint:
    """The server; ``replies`` are given in order, the last again and again. Its list of models is ``models``.

    Where there is a ``judge`` of what is asked, its reply comes before those.
    """

    def __init__(
        self, replies: Sequence[Reply], models: Sequence[str], judge: Callable[[Asked], Reply | None] | None = None
    ) -> None:
        self.replies = list(replies)
        self.judge = judge
        self.models = models
        self.asked: list[Asked] = []
        self.base_url = ""
        self.connections: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's request."""
        self.connections.add(writer)
        try:
            asked = await _request(reader)
            if asked.path == "/v1/models":
                reply = lists(*self.models)
            else:
                self.asked.append(asked)
                reply = self.judge(asked) if self.judge is not None else None
                if reply is None:
                    reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            await self._answer(reply, writer)
            if reply.then == "hang":
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()  # what nobody reads any more is dropped with the connection
            self.connections.discard(writer)

    async def _answer(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        length = sum(map(len, reply.pieces)) + (0 if reply.then == "end" else 1)
        head = {**reply.headers, "Content-Length": str(length), "Connection": "close"}
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        if reply.then == "hang" and not reply.pieces:
            return
        writer.write("\r\n".join(lines).encode())
        for piece in reply.pieces:
            writer.write(piece)
            await writer.drain()

    def drop_all(self) -> None:
        """Drop the connections that are open."""
        for writer in tuple(self.connections):
            writer.transport.abort()


async def _request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, body)


async def close(server: asyncio.Server) -> None:
    """Let nobody in any more, and close a server once those who were let in are being served.

    Who is accepted in one turn of the loop has a transport in the next, a protocol in the second, and is served in the
    third. A server that is closed before drops a connection that has no transport yet, and leaves its socket open.
    """
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(4):
        await asyncio.sleep(0)
    server.close()


@contextlib.asynccontextmanager
async def serving(
    *replies: Reply,
    models: Sequence[str] = ("qwen3:8b", "qwen3:4b"),
    judge: Callable[[Asked], Reply | None] | None = None,
) -> AsyncIterator[Endpoint]:
    """Run an endpoint on a loopback port of its own."""
    endpoint = Endpoint(replies, models, judge)
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
    endpoint.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield endpoint
    finally:
        await close(server)
        async with asyncio.timeout(30):
            while endpoint.connections:
                endpoint.drop_all()
                await asyncio.sleep(0.001)
        await server.wait_closed()


@contextlib.contextmanager
def in_background(
    *replies: Reply,
    models: Sequence[str] = ("qwen3:8b", "qwen3:4b"),
    judge: Callable[[Asked], Reply | None] | None = None,
) -> Iterator[Endpoint]:
    """Run an endpoint in a thread, for tests of whole processes."""
    started: queue.SimpleQueue[tuple[Endpoint, asyncio.AbstractEventLoop, asyncio.Event]] = queue.SimpleQueue()

    async def run() -> None:
        ended = asyncio.Event()
        async with serving(*replies, models=models, judge=judge) as endpoint:
            started.put((endpoint, asyncio.get_running_loop(), ended))
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    endpoint, loop, ended = started.get(timeout=30)
    try:
        yield endpoint
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)


@contextlib.contextmanager
def nobody() -> Iterator[str]:
    """Give an address at which nobody listens, and nobody else can: its port is taken for the length of the block."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def says(text: str = ANSWER, *, model: str = "served", finish: str = "stop", **more: Any) -> Reply:
    """Return a whole answer."""
    usage = {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return Reply((json.dumps({"model": model, "choices": [choice], "usage": usage, **more}).encode(),))


def fails(status: int, body: bytes = b'{"error": {"message": "no"}}', **headers: str) -> Reply:
    """Return a refusal; ``Retry_After`` stands for the header of that name."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply((body,), status, {**JSON, **named})


def streams(*texts: str, ending: bool = True, then: str = "end", usage: bool = True) -> Reply:
    """Return an answer that comes in pieces of text, as OpenAI streams them."""
    chunks: list[dict[str, Any]] = [{"model": "served", "choices": [{"index": 0, "delta": {"role": "assistant"}}]}]
    chunks += [{"model": "served", "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    if ending:
        chunks.append({"model": "served", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if ending and usage:
        chunks.append({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 7}})
    pieces = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    if ending:
        pieces.append(b"data: [DONE]\n\n")
    return Reply(tuple(pieces), headers=EVENT_STREAM, then=then)


def lists(*models: str) -> Reply:
    """Return a list of models; ``NAME@TOKENS`` tells a context, too, as vLLM does."""
    named = [model.partition("@") for model in models]
    data = [{"id": name} | ({"max_model_len": int(tokens)} if tokens else {}) for name, _, tokens in named]
    return Reply((json.dumps({"object": "list", "data": data}).encode(),))


HANGS = Reply(then="hang")
