"""A request that the gateway passes on to another model, compared with a plain proxy and with the endpoint itself.

The endpoint answers at once, so that only the time around it is measured. The proxy is an ASGI application on the same
server and HTTP client as the gateway, which reads a request whole and passes it on. ``neuraxis`` is a whole set as
``neuraxis up`` runs it, input guards on, each append flushed before it is acknowledged: an answer comes once it is
recorded. Requests come at a fixed rate without waiting for answers, a session each. Sides take turns; the median round
counts. The p50 should be at most 10 ms more than the proxy's. It also prints the processor time of each process of the
set, and the highest rate at which the set answers everything within a second of the last request.

Run it with ``python -m bench.system.pass_through [ROUNDS]``.
"""

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec

from bench.harness.processes import used_by_set
from bench.harness.table import Row, in_turns, is_brief, percentile_rows, rows_of, show
from bench.system.guards_inputs import text_of
from deploy.processes.running_set import RunFile

ROUNDS = 3
RATE = 50
"""Requests a second: half of what two cores should handle, since load, proxy and endpoint share them here."""

RATES = range(50, 401, 25)
"""Requests a second that are tried in turn, for the most that the set holds."""

UNDER_WAY = 32
"""Requests that are kept under way where a set is saturated."""

STEADY_S = 5.0
"""Seconds of a round."""

BEHIND_S = 1.0
"""Seconds within which the last answer must come after the last request, or a backlog has grown."""

WARM_UP_S = 3.0
"""Seconds of requests to each side before any is measured."""

OURS, PROXY, ENDPOINT = "neuraxis", "a bare proxy", "the endpoint itself"
ENDPOINT_MODEL, SET_MODEL = "bench", "neuraxis"
"""What a request names as its model: the endpoint's, to which the set passes it on, or the set, which answers it."""

_PATH = "/v1/chat/completions"
_START_TIMEOUT_S = 60.0
_CLIENTS, _CONNECTIONS = 32, 8
"""Clients of a load, which take turns, and the connections of each.

httpx looks at all connections of a pool for each request. With one pool of 256 it takes a whole core once they are
open, which is measured as the set's latency.
"""
_ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "bench",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Lima."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    }
).encode()


async def endpoint(scope: Any, receive: Any, send: Any) -> None:
    """Answer every request at once, as an ASGI application."""
    await _body_of(receive)
    await answer(send, 200, "application/json", _ANSWER)


def proxy_to(url: str) -> Any:
    """Return an ASGI application that passes every request on, and does nothing else."""
    http = httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=256, max_keepalive_connections=256))

    async def proxy(scope: Any, receive: Any, send: Any) -> None:
        body = await _body_of(receive)
        response = await http.post(f"{url}{scope['path']}", content=body, headers={"content-type": "application/json"})
        await answer(send, response.status_code, "application/json", response.content)

    return proxy


async def _body_of(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def answer(send: Any, status: int, kind: str, body: bytes) -> None:
    """Send a whole answer of a content type, as an ASGI application does."""
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _serve(url: str) -> None:
    """Serve the endpoint, or the proxy to ``url``, in this process, and say where."""
    import socket

    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(listener.getsockname()[1], flush=True)
    app = proxy_to(url) if url else endpoint
    # Keep connections open that are idle while the other sides have their turn.
    config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, timeout_keep_alive=600)
    uvicorn.Server(config).run(sockets=[listener])


@contextlib.contextmanager
def served(url: str = "") -> Iterator[str]:
    """Run the endpoint, or the proxy to ``url``, in a process of its own; yields its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.system.pass_through", "serve", url], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@contextlib.contextmanager
def running_set(
    url: str, program: str = "deploy.cli", options: Sequence[str] = (), **environment: str
) -> Iterator[RunFile]:
    """Run a set that passes on to ``url``, or to nobody if it is empty; yields its run file.

    ``options`` are more options of ``neuraxis up``, and ``environment`` variables for it.
    """
    with tempfile.TemporaryDirectory(prefix="neuraxis-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        ready, output_file = folder / "ready", folder / "output"
        flags = ["--http", "127.0.0.1:0", "--llm", "composer", "--ready-file", str(ready), *options]
        flags += ["--set", f"gateway.upstream.url={url}/v1"] if url else []
        with output_file.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", program, "up", *flags],
                cwd=folder,
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
            )
        try:
            deadline = time.monotonic() + _START_TIMEOUT_S
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the set did not start:\n{output_file.read_text()}")
                time.sleep(0.05)
            yield msgspec.json.decode((folder / ".neuraxis" / "run.json").read_bytes(), type=RunFile)
        finally:
            process.terminate()
            process.wait(30)


class Load:
    """Requests to one side that name ``model``: the set answers ``neuraxis`` itself, and the endpoint any other.

    They come from ``people`` in turn, a session each; 0: each from somebody new.
    """

    def __init__(self, clients: Sequence[httpx.AsyncClient], model: str, people: int = 0) -> None:
        self._clients = clients
        self._model = model
        self._people = people
        self._next = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, url: str, model: str = ENDPOINT_MODEL, people: int = 0) -> AsyncIterator["Load"]:
        """Open connections to a side for the length of the block."""
        limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
        async with contextlib.AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(
                    httpx.AsyncClient(base_url=url, trust_env=False, verify=False, limits=limits, timeout=30)
                )
                for _ in range(_CLIENTS)
            ]
            yield cls(clients, model, people)

    async def highest_rate(self) -> int:
        """Return the highest of ``RATES`` at which no backlog grows; 0 if one grows at the lowest."""
        highest = 0
        for rate in RATES:
            began_s = time.perf_counter()
            try:
                await self.steady(STEADY_S, rate)
            except ExceptionGroup:  # so many wait that some are refused
                break
            if time.perf_counter() - began_s > STEADY_S + BEHIND_S:
                break
            highest = rate
        return highest

    async def steady(self, seconds: float, rate: float = RATE) -> list[float]:
        """Send requests at a rate for a while; return the seconds that each took, sorted."""
        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(self.ask()) async for _ in _ticks(seconds, rate)]
        return sorted(task.result() for task in asking)

    async def steady_or_refused(self, seconds: float, rate: float) -> tuple[list[float], int]:
        """Send requests at a rate; return the seconds that the answered ones took, sorted, and how many were not."""
        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(self._ask_or_refused()) async for _ in _ticks(seconds, rate)]
        took = sorted(found for task in asking if (found := task.result()) is not None)
        return took, len(asking) - len(took)

    async def _ask_or_refused(self) -> float | None:
        try:
            return await self.ask()
        except (RuntimeError, httpx.HTTPError):
            return None

    async def saturated(self, under_way: int, seconds: float) -> float:
        """Keep ``under_way`` requests under way for ``seconds``; return how many were answered per second."""
        began_s = time.perf_counter()

        async def ask_on() -> int:
            count = 0
            while time.perf_counter() < began_s + seconds:
                await self.ask()
                count += 1
            return count

        counts = await asyncio.gather(*(ask_on() for _ in range(under_way)))
        return sum(counts) / (time.perf_counter() - began_s)

    async def send(self, under_way: int, requests: int) -> None:
        """Send a number of requests, and keep ``under_way`` of them under way."""
        numbers = iter(range(requests))

        async def ask_on() -> None:
            for _ in numbers:
                await self.ask()

        await asyncio.gather(*(ask_on() for _ in range(under_way)))

    async def ask(self) -> float:
        """Send a request; return the seconds that its answer took."""
        self._next += 1
        body = {
            "model": self._model,
            "user": f"bench-{self._next % self._people if self._people else self._next}",
            "messages": [{"role": "user", "content": _question(self._next)}],
        }
        began_s = time.perf_counter()
        response = await self._clients[self._next % len(self._clients)].post(_PATH, json=body)
        took = time.perf_counter() - began_s
        answered = response.content == _ANSWER if self._model == ENDPOINT_MODEL else response.status_code == 200
        if not answered:
            raise RuntimeError(f"not the answer: {response.status_code} {response.text[:200]}")
        return took


async def _ticks(seconds: float, rate: float) -> AsyncIterator[int]:
    """Yield numbers at a rate a second for a while."""
    began_s = time.perf_counter()
    for number in range(round(rate * seconds)):
        await asyncio.sleep(max(0.0, began_s + number / rate - time.perf_counter()))
        yield number


def _question(number: int) -> str:
    """Return the question of a number: one of the guards' inputs, without the attacks among them."""
    turn, index = divmod(number, 8)
    return text_of(10 * turn + index)


async def _run(rounds: int) -> list[Row]:
    samples: dict[str, list[Sequence[float]]] = defaultdict(list)
    cpu_ms: dict[str, list[float]] = defaultdict(list)
    async with contextlib.AsyncExitStack() as stack:
        endpoint_url = stack.enter_context(served())
        run = stack.enter_context(running_set(endpoint_url))
        urls = {ENDPOINT: endpoint_url, PROXY: stack.enter_context(served(endpoint_url)), OURS: run.http}
        loads = {name: await stack.enter_async_context(Load.open(url)) for name, url in urls.items()}
        for load in loads.values():
            await load.steady(WARM_UP_S)
        for name in in_turns(loads, rounds):
            before = used_by_set(run)
            samples[name].append(await loads[name].steady(STEADY_S))
            for process, one in used_by_set(run).items() if name == OURS else ():
                cpu_ms[process].append(one.since(before[process], len(samples[name][-1])).cpu_us / 1e3)
        highest = 0 if is_brief() else await loads[OURS].highest_rate()
    added = [
        [max(0.0, ours - bare) for ours, bare in zip(*pair, strict=True)]
        for pair in zip(samples[OURS], samples[PROXY], strict=True)
    ]
    setting = f"{RATE}/s"
    medians = {process: statistics.median(found) for process, found in cpu_ms.items()}
    medians["all of them"] = sum(medians.values())
    return [
        *percentile_rows(samples, {OURS: (PROXY,), PROXY: (ENDPOINT,)}, setting),
        *percentile_rows({f"{OURS}, beyond the proxy": added}, {}, setting),
        *rows_of(medians, {}, f"{setting}, processor", "ms an exchange"),
        *(rows_of({OURS: float(highest)}, {}, "most held", "exchanges/s") if highest else ()),
    ]


def main() -> None:
    """Measure every case and print the rows; takes about two minutes."""
    if sys.argv[1:2] == ["serve"]:
        _serve(sys.argv[2])
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1 if is_brief() else ROUNDS
    show(asyncio.run(_run(rounds)))


if __name__ == "__main__":
    main()
