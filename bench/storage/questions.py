"""Questions about a ledger as it grows: what they cost, and how many bytes it takes.

The real deciders make the ledger. It is measured at each size on the way to the largest:

- events a second decided and appended since the size before, and folded into the states of all actors;
- processor time of ``state`` (of one partition at a point of the log), ``diff`` (between two points), ``bisect`` (the
  first event after which a condition holds) and ``why`` (an exchange ended as it did). ``again``: the same question a
  second time, with the snapshots that the first has left (from 50,000 events on);
- bytes per event in the ledger, and in a stream without and with the compression ``s2``; bytes of the encoded states
  per session.

Processor time, since a shared machine's clock tells little. Run it with ``python -m bench.storage.questions [EVENTS]``.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path

import nats
from nats.js.api import StoreCompression, StreamConfig

from actors.registry import ACTORS
from bench.harness import replay_ledger
from bench.harness.server import nats_server
from bench.harness.table import Row, show
from events.ledger import LedgerReader, LedgerWriter
from events.log import Stored
from events.replay.explain import explain
from events.replay.replay import Replay
from events.replay.run_replay import END, Point, run_replay
from events.replay.sources import LedgerSource
from events.replay.states.bisecting import first_holding
from events.replay.states.conditions import condition_of
from events.replay.states.diffing import changed_between
from events.replay.states.from_snapshots import snapshot_keeper
from events.replay.states.partition_state import state_at
from schemas.persistent import encode_state

EVENTS = 100_000
"""Events of the largest ledger, by default."""

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
"""Numbers of events at which it is measured on the way there."""

STREAMED = 20_000
"""Events that are put into a stream to measure its size."""

_ACTOR, _PARTITION, _KEY = ACTORS["router"], "03", "session-3"
"""Whose state is asked for: that of a session in a partition of an actor."""

_WINDOW = 10_000
"""Sequences between the two points of ``diff``."""

_IN_FLIGHT = 1_000
"""The most messages that are published and not yet acknowledged."""


async def measure(path: Path, most: int) -> list[Row]:
    """Write a ledger of ``most`` events, at least, and measure it at each size up to that."""
    rows: list[Row] = []
    batches, written = replay_ledger.recorded_batches(most), 0
    for size in [each for each in SIZES if each < most] + [most]:
        before, began = written, time.process_time()
        async with await LedgerWriter.open(path, "BENCH", replay_ledger.PARTITIONS) as writer:
            while written < size and (batch := next(batches, None)) is not None:
                await writer.append(batch, anchor_every=10_000)
                written = batch[-1].seq
        spent = time.process_time() - began
        rows += _rows(written, {"decided and appended": (written - before) / spent}, "events/s")
        rows += await _questions(path, written)
    return rows


async def _questions(path: Path, size: int) -> list[Row]:
    with closing(LedgerSource(path)) as source:
        exchange = await source.last_exchange()
        assert exchange is not None
    seconds = {
        "why": await _seconds(path, lambda source: _why(source, exchange)),
        "state": await _seconds(path, _state),
        "state again": await _seconds(path, _state),
        "diff": await _seconds(path, lambda source: _diff(source, size)),
        "diff again": await _seconds(path, lambda source: _diff(source, size)),
        "bisect": await _seconds(path, _bisect),
    }
    began = time.process_time()
    with closing(LedgerSource(path)) as source:
        replay = Replay(tuple(ACTORS.values()), source.partitions)
        report = await run_replay(source, replay, progress=await snapshot_keeper(source, replay, lambda _: None))
    folded = report.events / (time.process_time() - began)
    # An exchange of these logs has some thirteen events, and their exchanges are of 499 sessions in turn.
    sessions = min(size // 13, 499) or 1
    states = sum(len(encode_state(view.state)) for view in replay.views.values())
    with LedgerReader(path) as reader:
        bytes_used = {"ledger": reader.info().bytes / size, "states a session": states / sessions}
    return [
        *_rows(size, {"fold, all actors": folded}, "events/s"),
        *_rows(size, {case: each * 1_000 for case, each in seconds.items()}, "ms"),
        *_rows(size, bytes_used, "bytes"),
    ]


async def _seconds(path: Path, ask: Callable[[LedgerSource], Awaitable[None]]) -> float:
    began = time.process_time()
    with closing(LedgerSource(path)) as source:
        await ask(source)
    return time.process_time() - began


async def _why(source: LedgerSource, exchange: str) -> None:
    assert explain(await source.exchange(exchange)) is not None


async def _state(source: LedgerSource) -> None:
    await state_at(source, _ACTOR, _PARTITION, _KEY, END, lambda _: None)


async def _diff(source: LedgerSource, size: int) -> None:
    points = Point(seq=max(1, size - _WINDOW)), Point(seq=size)
    await changed_between(source, (_ACTOR,), _PARTITION, points, lambda _: None)


async def _bisect(source: LedgerSource) -> None:
    never = condition_of('settings.profile == "none"')
    await first_holding(source, _ACTOR, _PARTITION, _KEY, never, END, lambda _: None)


async def measure_stream_size(stored: Sequence[Stored]) -> list[Row]:
    """Put messages into a stream without and with compression; return bytes per event on disk."""
    found = {}
    for name, compression in (("stream", StoreCompression.NONE), ("stream, s2", StoreCompression.S2)):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            with nats_server("2m", Path(folder)) as url:
                await _publish(url, stored, compression)
            found[name] = _blocks(Path(folder)) / len(stored)
    return _rows(len(stored), found, "bytes")


def _blocks(folder: Path) -> int:
    """Return the bytes of a stream's blocks, which hold its messages."""
    return sum(file.stat().st_size for file in folder.rglob("*.blk"))


async def _publish(url: str, stored: Sequence[Stored], compression: StoreCompression) -> None:
    client = await nats.connect(url)
    stream = client.jetstream(publish_async_max_pending=_IN_FLIGHT)
    await stream.add_stream(StreamConfig(name="BENCH", subjects=["log.>"], compression=compression))
    for each in stored:
        await stream.publish_async(each.subject, each.data, headers=dict(each.headers))
    await stream.publish_async_completed()
    await client.close()


def _rows(size: int, found: dict[str, float], unit: str) -> list[Row]:
    setting = f"{size:,} events"
    return [
        Row(case=case, setting=setting, value=round(value, 1), unit=unit, ratios={}) for case, value in found.items()
    ]


async def _measure_all(path: Path, most: int) -> list[Row]:
    rows = await measure(path, most)
    with LedgerReader(path) as reader:
        stored = [each for batch in reader.history(upto=STREAMED) for each in batch]
    return rows + await measure_stream_size(stored)


def main() -> None:
    """Print the rows as a table."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    with tempfile.TemporaryDirectory() as folder:
        show(asyncio.run(_measure_all(Path(folder) / "ledger.db", most)))


if __name__ == "__main__":
    main()
