"""A log that lost messages: the projector notices, keeps the ledger that has them, says so in the log, and goes on."""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.ledger import LedgerProjector, LedgerSettings, projector
from events.errors import LedgerDamaged, Misconfigured
from events.jetstream.log import JetStreamLog
from events.ledger import LedgerReader, LedgerWriter, compare, verify
from events.log import LogInfo, Stored
from events.losses import LOSS_FILTER, Losses
from schemas.vocabulary.ledger import LossRecorded
from tests.actors.ledger.test_projector import SETTINGS, Run, in_world, is_back, log_of, records
from tests.broker import Broker
from tests.events.ledger.messages import PARTITIONS, exchanges, flip, query
from tests.faults.cuts import cut_tail, drop_index, flip_bit
from tests.simulated import SimulatedConnection, SimulatedLog, SimulatedStream
from tests.simulated.log import SimulatedTail


async def _follow(stream: SimulatedStream, path: Path, count: int, *more: int) -> list[LossRecorded]:
    """Store the first ``count`` messages of some exchanges, and others; have a projector follow; return the losses."""
    log = log_of(stream)
    if count:
        await log.append(records(exchanges(20)[:count]))
    if more:
        await log.append(records(exchanges(40)[more[0] : more[1]]))
    run = Run(log, path)
    await run.reaches(max(1, len(stream.store.messages)))
    await run.stop()
    losses = await Losses.of(log, len(stream.store.messages))
    assert (await compare(path, log)).ok
    return [loss.event for loss in losses.found]


@pytest.mark.parametrize("more", [(), (100, 104), (100, 160)], ids=["nothing", "a little", "more than was lost"])
@pytest.mark.parametrize("left", [0, 1, 30])
def test_a_ledger_ahead_of_its_log_is_kept_and_another_begun(left: int, more: tuple[int, ...], tmp_path: Path) -> None:
    """A sequence says nothing: the log may have come to where it was, with other messages."""
    path, told = tmp_path / "ledger.db", []
    later = [10**18]

    async def before(stream: SimulatedStream) -> None:
        assert await _follow(stream, path, 40) == []

    async def after(stream: SimulatedStream) -> None:
        if not left:
            stream.clock = lambda: later[0] + 10**12  # a log without anything in common is younger
        told.extend(await _follow(stream, path, left, *more))

    in_world(before)
    rows = verify(path).rows
    in_world(after)
    kept = tmp_path / f"ledger-before-loss-{left + 1}.db"
    assert told == [
        LossRecorded(first_seq=left + 1, through_seq=rows, known_by="ledger", given_again=True, kept_as=kept.name)
    ]
    assert verify(kept).ok
    assert verify(kept).rows == rows
    found = verify(path)
    assert found.ok, found
    assert [loss.event for loss in found.losses] == told


class Trimmed(SimulatedLog):
    """A log whose beginning was removed; its ledger alone has it."""

    removed = 0

    @property
    def trimmed_through(self) -> int:
        return self.removed

    async def at(self, seq: int) -> Stored | None:
        return await super().at(seq) if seq > self.removed else None

    async def info(self) -> LogInfo:
        return msgspec.structs.replace(await super().info(), first_seq=self.removed + 1)

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        async for batch in super().history(filters, max(after, self.removed), upto):
            yield batch

    async def tail(self, filters: Sequence[str], after: int, *, on_demand: bool = False) -> SimulatedTail:
        return await super().tail(filters, max(after, self.removed), on_demand=on_demand)


@pytest.mark.parametrize("more", [(), (100, 104), (100, 160)], ids=["nothing", "a little", "more than was lost"])
@pytest.mark.parametrize("removed", [5, 25])
def test_a_ledger_that_alone_has_a_logs_beginning_is_kept_and_another_begun_with_that(
    removed: int, more: tuple[int, ...], tmp_path: Path
) -> None:
    """Else the beginning would be in no ledger that the log agrees with, and its states could not be folded anew."""
    path, left, told = tmp_path / "ledger.db", 30, []

    async def after(stream: SimulatedStream) -> None:
        log = Trimmed(SimulatedConnection(stream))
        log.removed = removed
        await log.append(records(exchanges(20)[:left]))
        if more:
            await log.append(records(exchanges(40)[more[0] : more[1]]))
        run = Run(log, path)
        await run.reaches(len(stream.store.messages))
        await run.stop()
        told.extend((await Losses.of(log, len(stream.store.messages))).found)
        compared = await compare(path, log)
        assert compared.ok, compared
        assert compared.archived == removed

    in_world(lambda stream: _follow_only(stream, path))
    rows = verify(path).rows
    in_world(after)
    kept = tmp_path / f"ledger-before-loss-{left + 1}.db"
    assert [loss.event for loss in told] == [
        LossRecorded(first_seq=left + 1, through_seq=rows, known_by="ledger", given_again=True, kept_as=kept.name)
    ]
    assert (verify(kept).ok, verify(kept).rows) == (True, rows)
    found = verify(path)
    assert found.ok, found
    assert found.first_seq == 1
    assert sorted(file.name for file in tmp_path.glob("*.db")) == [kept.name, path.name]


class Killed(BaseException):
    """Ends a projector as a signal does."""


@pytest.mark.parametrize("step", ["half written", "ledger-begun.db", "ledger-before-loss-31.db", "ledger.db"])
def test_a_beginning_that_its_ledger_alone_has_outlives_a_kill_at_each_step(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the copy of it is half written, once it is whole, while there is no ledger, and once the copy is that."""
    path, removed, kept = tmp_path / "ledger.db", 25, tmp_path / "ledger-before-loss-31.db"
    rename, append = Path.rename, LedgerWriter.append

    async def killed_append(writer: LedgerWriter, batch: Sequence[Stored], *more: Any) -> Any:
        if writer._path != path:
            await append(writer, batch[:5], *more)
            raise Killed
        return await append(writer, batch, *more)

    def killed_rename(file: Path, to: Path) -> Path:
        rename(file, to)
        if to.name == step:
            raise Killed
        return to

    async def follow(stream: SimulatedStream, *, again: bool) -> None:
        log = Trimmed(SimulatedConnection(stream))
        log.removed = removed
        if not again:
            await log.append(records(exchanges(20)[:30]))
            with monkeypatch.context() as patched:
                patched.setattr(Path, "rename", killed_rename)
                if step == "half written":
                    patched.setattr(LedgerWriter, "append", killed_append)
                with pytest.raises(Killed):
                    await LedgerProjector(log, path).run(asyncio.Event())
            assert path.exists() is (step != kept.name)
        run = Run(log, path)
        await run.reaches(len(stream.store.messages))
        await run.stop()
        compared = await compare(path, log)
        assert compared.ok, compared
        assert compared.archived == removed

    async def twice(stream: SimulatedStream) -> None:
        await follow(stream, again=False)
        await follow(stream, again=True)

    in_world(lambda stream: _follow_only(stream, path))
    in_world(twice)
    assert verify(kept).ok
    assert (verify(path).ok, verify(path).first_seq) == (True, 1)
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".db") == [kept.name, path.name]


def refuse_renames(monkeypatch: pytest.MonkeyPatch, path: Path, times: int) -> list[str]:
    """Refuse the first renames to a path, as a folder that cannot be written; return the names of the refused files."""
    rename, refused = Path.rename, list[str]()

    def refuse(file: Path, to: Path) -> Path:
        if to == path and len(refused) < times:
            refused.append(file.name)
            raise PermissionError(errno.EACCES, "the folder cannot be written now")
        return rename(file, to)

    monkeypatch.setattr(Path, "rename", refuse)
    return refused


def test_a_copy_of_the_beginning_is_put_in_place_once_its_folder_can_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"

    async def after(stream: SimulatedStream) -> None:
        log = Trimmed(SimulatedConnection(stream))
        log.removed = 25
        await log.append(records(exchanges(20)[:30]))
        run = Run(log, path)
        await run.reaches(31)
        await run.stop()
        assert (await compare(path, log)).archived == 25

    in_world(lambda stream: _follow_only(stream, path))
    refused = refuse_renames(monkeypatch, path, 2)
    in_world(after)
    assert refused == ["ledger-begun.db"] * 2
    assert verify(path).ok


def test_a_ledger_set_aside_for_a_gap_is_set_aside_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the copy of the beginning is put in its place at the second attempt."""
    path = tmp_path / "ledger.db"

    async def after(stream: SimulatedStream) -> None:
        log = Trimmed(SimulatedConnection(stream))
        log.removed = 25
        await log.append(records(exchanges(20)[:40]))
        writer = LedgerProjector(log, path, settings=SETTINGS)
        writer._gap_losses = [LossRecorded(first_seq=30, through_seq=31, known_by="ledger", given_again=False)]
        async with asyncio.timeout(30):
            assert await writer._with_retries(writer._set_aside_for_gaps, asyncio.Event())
        assert len((await Losses.of(log, len(stream.store.messages))).found) == 1

    in_world(lambda stream: _follow_only(stream, path))
    refused = refuse_renames(monkeypatch, path, 1)
    in_world(after)
    assert refused == ["ledger-begun.db"]
    assert sorted(file.name for file in tmp_path.glob("*.db")) == ["ledger-before-loss-30.db", path.name]
    assert (verify(path).ok, verify(path).rows) == (True, 25)


def test_an_older_copy_of_a_ledger_that_lacks_what_was_removed_from_the_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def after(stream: SimulatedStream) -> None:
        log = Trimmed(SimulatedConnection(stream))
        await log.append(records(exchanges(40)))
        log.removed = 60
        with pytest.raises(Misconfigured, match="put the one in its place that holds all"):
            await LedgerProjector(log, path).run(asyncio.Event())

    in_world(lambda stream: _follow_only(stream, path))
    in_world(after)
    assert verify(path).ok
    assert sorted(file.name for file in tmp_path.glob("*.db")) == [path.name]


@pytest.mark.parametrize(("left", "name"), [(30, "ledger-before-loss-31-2.db"), (25, "ledger-before-loss-26.db")])
def test_a_log_that_lost_its_tail_twice_keeps_both_ledgers(left: int, name: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def again(stream: SimulatedStream) -> None:
        await _follow(stream, path, 30, 100, 130)

    async def and_again(stream: SimulatedStream) -> None:
        await _follow(stream, path, left, 140, 170)

    in_world(lambda stream: _follow_only(stream, path))
    in_world(again)
    in_world(and_again)
    assert {file.name for file in tmp_path.glob("*.db")} == {name, "ledger-before-loss-31.db", "ledger.db"}
    assert verify(path).ok
    # The record of the first loss was lost with the end of the log.
    assert [(loss.event.first_seq, loss.event.kept_as) for loss in verify(path).losses] == [
        (31, "ledger-before-loss-31.db"),
        (left + 1, name),
    ]


async def _follow_only(stream: SimulatedStream, path: Path) -> None:
    await _follow(stream, path, 40)


def _in_the_middle(store: Path) -> None:
    flip_bit(store, 0.5)


def _at_the_end(store: Path) -> None:
    cut_tail(store, 2_000)


def _at_the_end_without_index(store: Path) -> None:
    cut_tail(store, 2_000)
    drop_index(store)


@pytest.mark.parametrize(
    ("harm", "recent"),
    [(_in_the_middle, projector.RECENT), (_in_the_middle, 1), (_at_the_end, 1), (_at_the_end_without_index, 1)],
)
def test_whatever_a_real_broker_makes_of_a_harmed_store_is_recorded(
    harm: Callable[[Path], None], recent: int, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nats-server leaves a gap where its index is whole, and gives the sequences again where it is not.

    However much of the file is looked at without a rest.
    """
    monkeypatch.setattr(projector, "RECENT", recent)
    path = tmp_path / "ledger.db"
    settings = LedgerSettings(anchor_every=10)

    async def follow(count: int, upto: int) -> Losses:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        try:
            await is_back(log)
            await log.append(records(exchanges(40)[upto - count : upto]))
            run = Run(log, path, settings)
            last = (await log.info()).last_seq
            await run.reaches(last)
            await run.until(lambda: run.reports[-1].rows > 0)
            if upto > 40:
                await _recorded(log)
            await run.reaches((await log.info()).last_seq)
            await run.stop()
            losses = await Losses.of(log, (await log.info()).last_seq)
            comparison = await compare(path, log)
            assert comparison.ok, comparison
            return losses
        finally:
            await log.close()

    assert asyncio.run(follow(40, 40)).found == []
    before = verify(path)
    broker.stop()
    harm(broker.store)
    broker.start()
    losses = asyncio.run(follow(20, 60))
    (loss,) = losses.found
    assert loss.event.given_again is (harm is _at_the_end_without_index)
    kept = tmp_path / loss.event.kept_as
    with LedgerReader(kept) as reader:
        assert reader.at(loss.event.first_seq) is not None
    assert verify(kept).ok
    assert verify(kept).rows >= before.rows
    found = verify(path)
    assert found.ok, found
    assert [known.event for known in found.losses] == [loss.event]


async def _recorded(log: JetStreamLog) -> None:
    async with asyncio.timeout(30):
        tail = await log.tail([LOSS_FILTER], 0)
        await tail.next()
        await tail.close()


def _last_row_rots(path: Path) -> None:
    """Flip a bit of the body of a ledger's last row, as a rotten disk does."""
    ((seq, data),) = query(path, "SELECT seq, data FROM events ORDER BY seq DESC LIMIT 1")
    query(path, "UPDATE events SET data = ? WHERE seq = ?", flip(data, 8 * (len(data) // 2)), seq)


def _is_copied_halfway(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _first_page_rots(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\xaa" * 16384)


def _is_emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [_last_row_rots, _is_copied_halfway, _first_page_rots, _is_emptied])
def test_a_damaged_ledger_is_put_aside_and_no_loss_of_the_log_is_claimed(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    """Its rows are not the log's messages: but it is the file that lost them."""
    path = tmp_path / "ledger.db"
    in_world(lambda stream: _follow_only(stream, path))
    harm(path)
    content = path.read_bytes()

    async def after(stream: SimulatedStream) -> None:
        assert await _follow(stream, path, 40) == []

    in_world(after)
    assert verify(path).ok
    assert len((tmp_path / "ledger-damaged.db").read_bytes()) == len(content)


@pytest.mark.parametrize("content", [b"my notes, and nothing else", None], ids=["notes", "database"])
def test_the_file_of_another_program_is_left_alone(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    if content is None:
        query(path, "CREATE TABLE events (seq INTEGER PRIMARY KEY)")
    else:
        path.write_bytes(content)

    async def body(stream: SimulatedStream) -> None:
        with pytest.raises(LedgerDamaged, match="not a"):
            await projector.LedgerProjector(log_of(stream), path).run(asyncio.Event())

    in_world(body)
    assert [file.name for file in tmp_path.glob("*.db")] == ["ledger.db"]
