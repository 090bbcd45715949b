"""A message that rotted away within the log holds back no readable one, wherever it stands.

The server looks for the next match of several filters subject by subject, and passes over a whole subject whose first
message it cannot read.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

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

Looks = dict[str, list[int]]
Look = Callable[[JetStreamLog, str], Awaitable[Looks]]


def _readable(name: str, filters: Sequence[str]) -> list[int]:
    subjects, rotten = LAYOUTS[name]
    wanted = [subject.split(".")[3] in {filter.split(".")[3] for filter in filters} for subject in subjects]
    return [seq for seq, is_wanted in enumerate(wanted, 1) if is_wanted and seq not in rotten]


def _on_each(folder: Path, look: Look, before: Callable[[JetStreamLog], Awaitable[None]]) -> dict[str, Looks]:
    """Have messages of every layout rot, each on a broker of its own, and record it; return what looks find."""

    async def main() -> dict[str, Looks]:
        found = await asyncio.gather(
            *(_on_one(folder / name.replace(" ", "_"), name, look, before) for name in LAYOUTS)
        )
        return dict(zip(LAYOUTS, found, strict=True))

    return asyncio.run(main())


async def _on_one(folder: Path, name: str, look: Look, before: Callable[[JetStreamLog], Awaitable[None]]) -> Looks:
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


FILTERS = {"one filter": ONE, "several filters": SEVERAL}
DURABLES = ("made-before", "made-anew")


def test_every_reader_reads_all_that_can_be_read_and_goes_on(tmp_path: Path) -> None:
    """The layouts are made once for all that reads: histories, tails, and durable consumers, one after another."""

    async def before(log: JetStreamLog) -> None:
        async with _pulled(log, "made-before"):
            pass

    async def look(log: JetStreamLog, name: str) -> Looks:
        seen: Looks = {}
        new = list[int]()
        for kind, filters in FILTERS.items():
            seen[f"history, {kind}"] = [stored.seq for stored in await collect(log, filters=filters)]
        for kind, filters in FILTERS.items():
            tail = await log.tail(filters, 0)
            new.append(await log.append([plain(record(PASSED))]))
            read_now = [stored.seq for stored in await read(tail, len(_readable(name, filters)) + len(new))]
            await tail.close()
            assert read_now[-len(new) :] == new, (name, kind)
            seen[f"tail, {kind}"] = read_now[: -len(new)]
        for durable in DURABLES:
            new.append(await log.append([plain(record(PASSED))]))
            wanted = {*_readable(name, SEVERAL), *new}
            async with _pulled(log, durable) as delivered:
                await until(partial(delivered.issuperset, wanted), f"all to be delivered: {name}, {durable}")
            seen[durable] = sorted(delivered.difference(new))
        return seen

    def wanted(name: str) -> Looks:
        readable = {kind: _readable(name, filters) for kind, filters in FILTERS.items()}
        by_filters = {f"{way}, {kind}": seqs for way in ("history", "tail") for kind, seqs in readable.items()}
        return by_filters | dict.fromkeys(DURABLES, _readable(name, SEVERAL))

    assert _on_each(tmp_path, look, before) == {name: wanted(name) for name in LAYOUTS}


@asynccontextmanager
async def _pulled(log: JetStreamLog, name: str) -> AsyncIterator[set[int]]:
    """Pull from a durable consumer of a name; give the sequences that it delivers."""
    found = set[int]()
    pull = DurablePull(log.connection, log.stream, f"nx-{name}", SEVERAL)
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
