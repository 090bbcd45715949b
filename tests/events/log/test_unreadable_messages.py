"""A message that rotted away within the log holds back no readable one, wherever it stands.

The server looks for the next match of several filters subject by subject, and passes over a whole subject whose first
message it cannot read.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from events.jetstream.log import JetStreamLog
from events.jetstream.reading.durable_pull import DurablePull
from events.loss_recording import record_loss
from schemas.vocabulary.ledger import LossRecorded
from tests.actors.runtime.waiting import until
from tests.broker import Broker
from tests.events.setting import Setting, back, collect, plain, read, record
from tests.faults.cuts import flip_bit_of

PASSED, OTHER, UNREAD = "log.00.00.reflex.passed", "log.00.00.router.mode_selected", "log.00.00.act.planned"
ONE, SEVERAL = ("log.*.*.reflex.>",), ("log.*.*.reflex.>", "log.*.*.router.>")

LAYOUTS = {
    "first of the log": ([PASSED] * 6 + [UNREAD] * 6, [1]),
    "first of its subject": ([UNREAD] * 3 + [PASSED] * 4 + [UNREAD] * 6 + [OTHER], [4]),
    "first of two subjects": ([PASSED, OTHER] * 3 + [UNREAD] * 6, [1, 2]),
    "in the middle": ([PASSED] * 6 + [UNREAD] * 6, [3]),
    "apart": ([PASSED] * 4 + [OTHER] * 6 + [UNREAD] * 6, [1, 5]),
    "last of its filters": ([PASSED] * 6 + [UNREAD] * 6, [6]),
    "last of the log": ([UNREAD] * 6 + [OTHER] * 3 + [PASSED], [10]),
    "the only one": ([UNREAD] * 6 + [PASSED] + [UNREAD] * 6, [7]),
}
"""What a log holds, and which of its messages rot."""

Found = dict[str, list[int]]
Look = Callable[[JetStreamLog, str], Awaitable[list[int]]]


def _readable(name: str, filters: Sequence[str]) -> list[int]:
    subjects, rotten = LAYOUTS[name]
    wanted = [subject.split(".")[3] in {filter.split(".")[3] for filter in filters} for subject in subjects]
    return [seq for seq, is_wanted in enumerate(wanted, 1) if is_wanted and seq not in rotten]


def _on_each(folder: Path, look: Look, before: Callable[[JetStreamLog], Awaitable[None]]) -> Found:
    """Have messages of every layout rot, each on a broker of its own, and record it; return what looks find."""

    async def main() -> Found:
        found = await asyncio.gather(
            *(_on_one(folder / name.replace(" ", "_"), name, look, before) for name in LAYOUTS)
        )
        return dict(zip(LAYOUTS, found, strict=True))

    return asyncio.run(main())


async def _on_one(folder: Path, name: str, look: Look, before: Callable[[JetStreamLog], Awaitable[None]]) -> list[int]:
    subjects, rotten = LAYOUTS[name]
    with ExitStack() as stack:
        broker = Broker(folder)
        stack.callback(broker.kill)
        # In threads: a server that takes long to start must not use up the time in which another layout connects.
        await asyncio.to_thread(broker.start)
        log = await JetStreamLog.connect(broker.url)
        try:
            for subject in subjects:
                await log.append([plain(record(subject, b"x" * 100))])
            await before(log)
            await asyncio.to_thread(broker.stop)
            for seq in rotten:
                flip_bit_of(broker.store, seq)
            await asyncio.to_thread(broker.start)
            await back(Setting(log, broker.kill, broker.start))
            for seq in rotten:
                loss = LossRecorded(first_seq=seq, through_seq=seq, known_by="stream", given_again=False)
                await record_loss(log, loss, "test", "2026-01-01T00:00:00Z", "")
            return await look(log, name)
        finally:
            await log.close()


async def _nothing(log: JetStreamLog) -> None:
    """Do nothing before messages rot."""


@pytest.mark.parametrize("filters", [ONE, SEVERAL], ids=["one filter", "several filters"])
def test_a_history_reads_all_that_can_be_read(filters: Sequence[str], tmp_path: Path) -> None:
    async def look(log: JetStreamLog, name: str) -> list[int]:
        return [stored.seq for stored in await collect(log, filters=filters)]

    assert _on_each(tmp_path, look, _nothing) == {name: _readable(name, filters) for name in LAYOUTS}


@pytest.mark.parametrize("filters", [ONE, SEVERAL], ids=["one filter", "several filters"])
def test_a_tail_reads_all_that_can_be_read_and_goes_on(filters: Sequence[str], tmp_path: Path) -> None:
    async def look(log: JetStreamLog, name: str) -> list[int]:
        tail = await log.tail(filters, 0)
        new = await log.append([plain(record(PASSED))])
        found = [stored.seq for stored in await read(tail, len(_readable(name, filters)) + 1)]
        await tail.close()
        assert found.pop() == new
        return found

    assert _on_each(tmp_path, look, _nothing) == {name: _readable(name, filters) for name in LAYOUTS}


@pytest.mark.parametrize("made_before", [True, False], ids=["made before", "made anew"])
def test_a_durable_consumer_delivers_all_that_can_be_read_and_goes_on(made_before: bool, tmp_path: Path) -> None:
    async def before(log: JetStreamLog) -> None:
        if made_before:
            async with _pulled(log):
                pass

    async def look(log: JetStreamLog, name: str) -> list[int]:
        new = await log.append([plain(record(PASSED))])
        wanted = {*_readable(name, SEVERAL), new}
        async with _pulled(log) as found:
            await until(lambda: found >= wanted, "all to be delivered")
        return sorted(found - {new})

    assert _on_each(tmp_path, look, before) == {name: _readable(name, SEVERAL) for name in LAYOUTS}


@asynccontextmanager
async def _pulled(log: JetStreamLog) -> AsyncIterator[set[int]]:
    """Pull from a durable consumer; give the sequences that it delivers."""
    found = set[int]()
    pull = DurablePull(log.connection, log.stream, "nx-test", SEVERAL)
    losses = await log.losses()
    pull.note_loss(losses.last_seq, losses.gap_ends)

    async def take() -> None:
        while True:
            delivery = await pull.next()
            found.add(delivery.stored.seq)
            await delivery.acknowledge()

    tasks = [asyncio.create_task(pull.run()), asyncio.create_task(take())]
    try:
        await pull.began.wait()
        yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
