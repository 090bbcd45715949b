"""The projector on a log: it follows, resumes, waits, anchors, and refuses another log."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from actors.ledger import PROJECTOR, LedgerProjector, LedgerSettings, Progress
from events.errors import Conflict, LogError, Misconfigured, Unavailable
from events.jetstream.log import JetStreamLog
from events.ledger import LedgerWriter, compare, verify
from events.log import Append, Log, Record, Stored
from tests.broker import Broker
from tests.events.ledger.messages import PARTITIONS, exchanges, fetched, query, read
from tests.simulated import SimulatedConnection, SimulatedLog, SimulatedStream

SETTINGS = LedgerSettings(anchor_every=10, batch_rows=7, rest_ms=0, retry_first_s=0.001, retry_most_s=0.01)
DEADLINE_S = 30.0


class Run:
    """A projector at work in the background; ``position`` can be waited for."""

    def __init__(self, log: Log, path: Path, settings: LedgerSettings = SETTINGS, stream: str = "NEURAXIS") -> None:
        self.reports: list[Progress] = []
        self._stop = asyncio.Event()
        self._news = asyncio.Event()
        self.projector = LedgerProjector(log, path, stream=stream, settings=settings, on_progress=self._note)
        self._task = asyncio.create_task(self.projector.run(self._stop))
        self._task.add_done_callback(lambda _: self._news.set())

    def _note(self, progress: Progress) -> None:
        self.reports.append(progress)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                if self._task.done():
                    await self._task
                    raise AssertionError("the projector ended")
                self._news.clear()
                await self._news.wait()

    async def reaches(self, seq: int) -> None:
        await self.until(lambda: self.projector.progress.position >= seq)

    async def stop(self) -> None:
        self._stop.set()
        async with asyncio.timeout(DEADLINE_S):
            await self._task

    async def kill(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))


def records(messages: Sequence[Stored]) -> list[Append]:
    return [Append([Record(each.subject, each.headers, each.data) for each in messages])]


def in_world(body: Callable[[SimulatedStream], Awaitable[None]]) -> None:
    """Run a body on a simulated stream without faults, in real time: SQLite's threads need it."""

    async def main() -> None:
        ticks = iter(range(10**9))
        async with asyncio.timeout(60):
            await body(SimulatedStream(clock=lambda: 10**18 + next(ticks), partitions=PARTITIONS))

    asyncio.run(main())


def log_of(stream: SimulatedStream) -> SimulatedLog:
    return SimulatedLog(SimulatedConnection(stream))


def anchors(stream: SimulatedStream) -> list[int]:
    """Return the sequences that the stream's anchors vouch for."""
    found = [stored for stored in stream.store.messages if stored.subject == "log._._.ledger.anchored"]
    return [int(stored.headers["ce-causeseq"]) for stored in found]


def test_the_package_names_its_projector() -> None:
    assert PROJECTOR is LedgerProjector


def test_everything_in_the_log_is_written_and_anchored(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger.db"

    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        await log.append(records(exchanges(6)))
        run = Run(log, path)
        await run.reaches(24)
        await log.append(records(exchanges(9)[24:]))
        await run.reaches(39)
        await run.stop()
        assert run.reports[-1].rows == run.projector.progress.position
        assert anchors(stream) == [10, 20, 30, 39]
        report = await compare(path, log)
        assert report.ok
        assert report.anchors == 4

    in_world(body)
    report = verify(path)
    assert report.ok
    assert report.anchors == 3
    assert query(path, "SELECT count(*) FROM exchanges WHERE ended_seq IS NOT NULL") == [(9,)]


def test_an_event_that_nobody_reads_is_told_once_for_its_subject(tmp_path: Path) -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        strays = [msgspec.structs.replace(each, subject="log.77.88.input.received") for each in exchanges(2)[4:6]]
        await log.append(records([*exchanges(1), *strays]))
        run = Run(log, tmp_path / "ledger.db")
        await run.reaches(6)
        await run.stop()

    with capture_logs() as lines:
        in_world(body)
    [told] = [line for line in lines if line["event"] == "event_unroutable"]
    assert (told["seq"], told["subject"]) == (5, "log.77.88.input.received")
    assert "there is no partition" in told["reason"]


def test_rows_that_come_while_it_rests_share_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches, plain = list[int](), LedgerWriter.append

    async def counted(self: LedgerWriter, batch: Sequence[Stored], anchor_every: int = 0) -> Any:
        batches.append(len(batch))
        return await plain(self, batch, anchor_every)

    monkeypatch.setattr(LedgerWriter, "append", counted)

    async def body(stream: SimulatedStream) -> None:
        log = SimulatedLog(SimulatedConnection(stream))
        first, *others = exchanges(1)
        run = Run(log, tmp_path / "ledger.db", LedgerSettings(rest_ms=1_000))
        await log.append(records([first]))
        await run.reaches(1)
        for each in others:
            await log.append(records([each]))
        await run.reaches(1 + len(others))
        await run.stop()
        assert batches[:2] == [1, len(others)]

    in_world(body)


def test_a_stop_without_news_anchors_nothing_more(tmp_path: Path) -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        await log.append(records(exchanges(1)))
        for _ in range(3):
            run = Run(log, tmp_path / "ledger.db")
            await run.reaches(len(stream.store.messages))
            await run.stop()
        assert anchors(stream) == [4]

    in_world(body)


def test_a_projector_killed_anywhere_goes_on_from_its_last_row(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        await log.append(records(exchanges(50)))
        for yields in range(0, 120, 7):
            run = Run(log, path)
            for _ in range(yields):
                await asyncio.sleep(0)
            await run.kill()
        run = Run(log, path)
        await run.reaches(200)
        await run.stop()
        assert (await compare(path, log)).ok

    in_world(body)
    assert verify(path).ok


def test_projectors_of_one_log_write_one_anchor_a_row(tmp_path: Path) -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        runs = [Run(log_of(stream), tmp_path / f"{number}.db") for number in range(3)]
        for start in range(0, 200, 20):
            await log.append(records(exchanges(50)[start : start + 20]))
            for run in runs:
                await run.reaches(len(stream.store.messages))
        for run in runs:
            await run.stop()
        found = anchors(stream)
        assert len(found) == len(set(found))
        assert all(through % 10 == 0 for through in found[:-1])  # the last one is the first projector's at its stop
        assert len(found) >= 15
        for number in range(3):
            assert (await compare(tmp_path / f"{number}.db", log)).ok

    in_world(body)


def test_projectors_on_one_file_are_harmless(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        runs = [Run(log_of(stream), path) for _ in range(3)]
        await log.append(records(exchanges(50)))
        for run in runs:
            await run.reaches(200)
        for run in runs:
            await run.stop()
        assert (await compare(path, log)).ok

    in_world(body)
    assert verify(path).ok


def test_a_full_disk_is_waited_out_and_nothing_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    writers: list[LedgerWriter] = []
    really_open = LedgerWriter.open

    async def open_small(path: Path, stream: str, partitions: object) -> LedgerWriter:
        writer = await really_open(path, stream, PARTITIONS)
        await fetched(writer, "PRAGMA max_page_count = 12")
        writers.append(writer)
        return writer

    monkeypatch.setattr(LedgerWriter, "open", open_small)

    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        await log.append(records(exchanges(100)))
        run = Run(log, path)
        with capture_logs() as lines:
            await run.until(lambda: sum(bool(each.trouble) for each in run.reports) > 4)
        assert [line["event"] for line in lines].count("ledger_waits") == 1, "there is a line for each attempt"
        assert "is full" in run.reports[-1].trouble
        stuck = run.projector.progress.position
        assert 0 < stuck < 400
        assert [message.seq for message in read(path)] == list(range(1, stuck + 1))
        await fetched(writers[0], "PRAGMA max_page_count = 100000")
        await run.reaches(400)
        assert run.reports[-1].trouble == ""
        await run.stop()
        assert (await compare(path, log)).ok

    in_world(body)
    assert verify(path).ok


def test_a_stop_ends_the_waiting_for_space(tmp_path: Path) -> None:
    path = tmp_path / "file" / "ledger.db"
    (tmp_path / "file").touch()  # no folder can be made here

    async def body(stream: SimulatedStream) -> None:
        run = Run(log_of(stream), path)
        await run.until(lambda: bool(run.reports and run.reports[-1].trouble))
        await run.stop()

    in_world(body)


def test_the_ledger_of_another_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def first(stream: SimulatedStream) -> None:
        log = log_of(stream)
        await log.append(records(exchanges(2)))
        run = Run(log, path)
        await run.reaches(8)
        await run.stop()

    async def another(stream: SimulatedStream) -> None:
        log = log_of(stream)
        await log.append(records(exchanges(5)[4:]))
        with pytest.raises(Misconfigured, match="none of its 8 rows is in the log, which is older"):
            await LedgerProjector(log, path).run(asyncio.Event())

    in_world(first)
    in_world(another)


@pytest.mark.parametrize("error", [Conflict("other"), Unavailable("away")])
def test_an_anchor_that_fails_stays_due(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(stream: SimulatedStream) -> None:
        log, own = log_of(stream), log_of(stream)
        await log.append(records(exchanges(3)))
        really_append = own.append
        failures = iter([error])

        async def append(appends: Sequence[Append]) -> int:
            for failure in failures:
                raise failure
            return await really_append(appends)

        monkeypatch.setattr(own, "append", append)
        run = Run(own, tmp_path / "ledger.db")
        await run.reaches(12)
        assert anchors(stream) == []
        await log.append(records(exchanges(4)[12:]))
        await run.reaches(17)
        assert anchors(stream) == [10]
        await run.stop()

    in_world(body)


def test_a_real_broker_is_followed_through_its_restart(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, stream="NEURAXIS", partitions=PARTITIONS)
        try:
            await log.append(records(exchanges(5)))
            run = Run(log, path, LedgerSettings(anchor_every=10))
            await run.reaches(20)
            broker.kill()
            broker.start()
            await is_back(log)
            await log.append(records(exchanges(10)[20:]))
            await run.reaches(40)
            await run.stop()
            report = await compare(path, log)
            assert report.findings == ()
            assert report.compared >= 40
            assert report.anchors >= 1
        finally:
            await log.close()

    asyncio.run(main())
    assert verify(path).ok


def test_what_the_log_holds_at_a_stop_is_written_before_the_end(broker: Broker, tmp_path: Path) -> None:
    """The ledger of a set that is stopped is all that is left to be read: it would lack what came while it rested."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, stream="NEURAXIS", partitions=PARTITIONS)
        try:
            await log.append(records(exchanges(1)))
            run = Run(log, tmp_path / "ledger.db", LedgerSettings(rest_ms=10_000))
            await run.reaches(1)
            await log.append(records(exchanges(10)[4:]))
            await run.stop()
            assert run.projector.progress.position == 40
        finally:
            await log.close()

    asyncio.run(main())


async def is_back(log: Log) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await log.info()
                return
            except LogError:
                await asyncio.sleep(0.01)
