"""The dashboard in a real Chromium while exchanges end at 100 a second: its frames, and the delay until one is shown.

The page's own files are served with made-up answers, so that the page alone is measured: each exchange that ends is in
the list at once, and is announced by an event. It prints the time from the end of an exchange until its row is in the
page, the time between frames, and how long the page's main thread was at work. It needs Playwright and a Chromium on
PATH. Run it with ``python -m bench.system.dashboard [SECONDS]``.
"""

import asyncio
import itertools
import json
import shutil
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import uvicorn
from playwright.async_api import CDPSession, async_playwright

from actors.gateway.http.dashboard import endpoints
from bench.harness.table import Row, show
from bench.system.pass_through import answer

RATE = 100
"""Exchanges a second."""

SECONDS = 10.0
"""Seconds that are measured, by default."""

SETTLE_S = 2.0
"""Seconds after the page is open before anything is measured."""

LONG_MS = 50.0
"""A frame that takes longer than this is seen as a stutter."""

_EVENT = "forged_id.response.emitted"
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
# Run in the page: notes when each exchange's row appears, the milliseconds between frames, and those of long tasks.
_WATCH = """
  window.seen = {}; window.frames = []; window.long = [];
  const noted = () => { for (const row of document.querySelectorAll("tr[data-exchange]")) {
    if (row.dataset.action !== "OPEN") window.seen[row.dataset.exchange] ??= Date.now(); } };
  new MutationObserver(noted).observe(document.getElementById("rows"), {childList: true, subtree: true});
  let last = performance.now();
  const frame = (now) => { window.frames.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => window.long.push(...list.getEntries().map((each) => each.duration)))
    .observe({entryTypes: ["longtask"]});
"""


class FakeGateway:
    """An ASGI application that serves the page, and answers it like a gateway at which exchanges end all the time."""

    def __init__(self) -> None:
        self.ended: dict[str, float] = {}
        self._latest: deque[dict[str, Any]] = deque(maxlen=500)
        self._head = 0
        self._streams: set[asyncio.Queue[int]] = set()

    async def end_exchanges(self) -> None:
        """End exchanges at the rate, until cancelled."""
        began_s = time.monotonic()
        for number in itertools.count():
            await asyncio.sleep(max(0.0, began_s + number / RATE - time.monotonic()))
            self._end(number)

    def _end(self, number: int) -> None:
        self._head += 10
        exchange = f"{number:032x}"
        blocked = number % 7 == 0
        self._latest.appendleft(
            {
                "exchange": exchange,
                "agent": f"agent-{number % 5}",
                "session": f"session-{number % 50}",
                "seq": self._head - 9,
                "started": datetime.now(UTC).isoformat(),
                "ended_seq": self._head,
                "stage": "REFLEX" if blocked else "DELIBERATIVE",
                "action": "BLOCKED" if blocked else "EXECUTED",
                "reason": "ignore_instructions" if blocked else "forward",
                "mode": "",
                "first_mode": "",
                "latency_ms": 10 + number % 37,
            }
        )
        self.ended[exchange] = time.time() * 1e3
        for queue in self._streams:
            queue.put_nowait(self._head)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        path = scope["path"]
        if path == "/api/events":
            await self._stream(send)
        elif path.startswith("/api/"):
            query = dict(each.split("=") for each in scope["query_string"].decode().split("&") if each)
            found = self._list(int(query.get("limit", 100))) if path == "/api/exchanges" else self._overview()
            await answer(send, 200, "application/json", json.dumps(found).encode())
        else:
            name = path.removeprefix("/dashboard").strip("/") or "index.html"
            kinds = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
            static = files(endpoints.__package__).joinpath("static", name)
            await answer(send, 200, kinds.get(name.rpartition(".")[2], "text/plain"), static.read_bytes())

    async def _stream(self, send: Any) -> None:
        queue: asyncio.Queue[int] = asyncio.Queue()
        self._streams.add(queue)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        with suppress(asyncio.CancelledError):  # the server ends
            while True:
                seq = await queue.get()
                body = (
                    f"id: {seq}\nevent: {_EVENT}\ndata: {json.dumps({'topic': _EVENT, 'response': 'Lima. ' * 20})}\n\n"
                )
                await send({"type": "http.response.body", "body": body.encode(), "more_body": True})

    def _list(self, limit: int) -> dict[str, Any]:
        return {"exchanges": list(itertools.islice(self._latest, limit)), "before": 1, "head": self._head}

    def _overview(self) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat()
        whose = {"agent": "agent-1", "session": "session-1"}
        alert = {"severity": "warning", "event": "forged_id.reflex.blocked", "detail": "", "exchange": "", "since": now}
        breaker = {"state": "VIOLATED", "trust": 0.15, "stance": "guarded", "violations": self._head % 9, "seq": 1}
        recorded = {
            "at": self._head,
            "time": now,
            "head": self._head,
            "exchanges": min(self._head // 10, 1000),
            "open": 3,
            "ended": [
                {"stage": stage, "action": action, "count": self._head // share}
                for share, (stage, action) in enumerate((("DELIBERATIVE", "EXECUTED"), ("REFLEX", "BLOCKED")), 11)
            ],
            "p50_ms": 20.0 + self._head % 7,
            "p99_ms": 80.0,
            "decisions": 1000,
            "modes": [
                {"mode": mode, "count": 200, "share": (150 + self._head % 99) / 1e3, "low": 0.1, "high": 0.3}
                for mode in ("RESPOND", "CLARIFY", "ACT", "ACKNOWLEDGE", "IGNORE")
            ],
            "modes_by_agent": [],
            "alerts": [{"alert": f"a{n}", **alert, **whose, "figures": {}, "count": self._head + n} for n in range(50)],
            "alerts_firing": 50,
            "breakers": [{**breaker, "agent": "agent-1", "session": f"session-{n}", "time": now} for n in range(50)],
            "breakers_open": 50,
            "adjustments": [],
            "reviews": [],
        }
        stage = {"needed": True, "served": 16, "partitions": 16, "lack": None, "slow": 0, "worst_ms": 0.0}
        stages = [{"stage": f"stage-{n}", **stage, "waiting": self._head % (n + 1)} for n in range(20)]
        return {"recorded": recorded, "now": {"head": self._head, "stages": stages}}


@asynccontextmanager
async def serving(gateway: FakeGateway) -> AsyncIterator[str]:
    """Serve the application for the length of a block; yields its address."""
    server = uvicorn.Server(uvicorn.Config(gateway, port=0, lifespan="off", log_level="error", access_log=False))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        await running


async def measure(seconds: float, chromium: str) -> list[Row]:
    """Open the page while exchanges end, and return what was seen."""
    gateway = FakeGateway()
    async with async_playwright() as playwright, serving(gateway) as address:
        browser = await playwright.chromium.launch(executable_path=chromium, args=list(_FLAGS))
        page = await browser.new_page()
        ending = asyncio.create_task(gateway.end_exchanges())
        await page.goto(f"{address}/dashboard")
        await page.wait_for_selector("tr[data-exchange]")
        await asyncio.sleep(SETTLE_S)
        probe = await page.context.new_cdp_session(page)
        await probe.send("Performance.enable")
        before, since = await _work_of(probe), time.time() * 1e3
        await page.evaluate(_WATCH)
        await asyncio.sleep(seconds)
        after, until = await _work_of(probe), time.time() * 1e3
        seen, frames, long = await page.evaluate("[window.seen, window.frames, window.long]")
        ending.cancel()
        await browser.close()
    # What ended in the last second may be shown later than it was looked at.
    ended = {each: at for each, at in gateway.ended.items() if since <= at < until - 1e3}
    delays = sorted(seen[each] - at for each, at in ended.items() if each in seen)
    frames = sorted(frames)
    found = {
        "an exchange until its row is shown, p50": (_percentile(delays, 50), "ms"),
        "an exchange until its row is shown, p99": (_percentile(delays, 99), "ms"),
        "exchanges shown": (1e2 * len(delays) / max(len(ended), 1), "%"),
        "between frames, p50": (_percentile(frames, 50), "ms"),
        "between frames, p99": (_percentile(frames, 99), "ms"),
        "between frames, the longest": (frames[-1], "ms"),
        f"frames longer than {LONG_MS:.0f} ms": (1e2 * sum(each > LONG_MS for each in frames) / len(frames), "%"),
        "tasks longer than 50 ms, a second": (len(long) / seconds, ""),
        **{f"main thread, {name}": (1e3 * (after[name] - before[name]) / seconds, "ms a second") for name in after},
    }
    return [
        Row(case=case, setting=f"{RATE}/s", value=value, unit=unit, ratios={}) for case, (value, unit) in found.items()
    ]


async def _work_of(probe: CDPSession) -> dict[str, float]:
    metrics = {each["name"]: each["value"] for each in (await probe.send("Performance.getMetrics"))["metrics"]}
    return {name: metrics[name] for name in ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")}


def _percentile(found: list[float], percent: int) -> float:
    return found[len(found) * percent // 100] if found else float("nan")


def main() -> None:
    """Measure and print the rows; takes about a quarter of a minute."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no chromium on PATH: install it with `apt-get install --no-install-recommends chromium`")
    show(asyncio.run(measure(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS, chromium)))


if __name__ == "__main__":
    main()
