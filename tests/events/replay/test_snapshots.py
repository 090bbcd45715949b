"""A state is folded from the nearest snapshot beside its ledger, and comes out as if folded from the first event."""

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from actors.registry import ACTORS
from events.bundles import unpack
from events.ledger import LedgerReader, LedgerWriter
from events.replay.replay import Replay
from events.replay.run_replay import END, Point, run_replay
from events.replay.sources import LedgerSource
from events.replay.states import from_snapshots, snapshot_folder
from events.replay.states.diffing import Changed, changed_between
from events.replay.states.partition_state import state_at
from schemas.persistent import state_hash
from tests.each import each

RECORDED = Path(__file__).parents[2] / "fixtures" / "0.1.0.nxb"
POINTS = (END, Point(seq=120), Point(seq=171), Point(seq=250))


@pytest.fixture(autouse=True)
def _for_small_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_snapshots, "MIN_SEQUENCES", 0)
    monkeypatch.setattr(from_snapshots, "SPACING_OF_ONE", 40)
    monkeypatch.setattr(from_snapshots, "SPACING_OF_MANY", 40)
    monkeypatch.setattr("events.ledger.rows.BATCH_ROWS", 8)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    asyncio.run(unpack(RECORDED, path))
    return path


def folder_of(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + snapshot_folder.SUFFIX)


def snapshots(ledger: Path) -> list[Path]:
    return sorted(folder_of(ledger).glob("*"))


def folded_from_the_first(ledger: Path, upto: Point) -> dict[tuple[str, str], str]:
    source = LedgerSource(ledger)
    try:
        replay = Replay(tuple(ACTORS.values()), source.partitions)
        asyncio.run(run_replay(source, replay, upto, progress=lambda _: None))
    finally:
        source.close()
    return {key: state_hash(view.state) for key, view in replay.views.items()}


def state_of(
    ledger: Path, actor: str, partition: str, upto: Point, progress: Callable[[int], None] = lambda _: None
) -> str:
    source = LedgerSource(ledger)
    try:
        return asyncio.run(state_at(source, ACTORS[actor], partition, "nobody", upto, progress)).state_hash
    finally:
        source.close()


def changes_of(ledger: Path, points: tuple[Point, Point]) -> tuple[Changed, ...]:
    source = LedgerSource(ledger)
    try:
        return asyncio.run(changed_between(source, tuple(ACTORS.values()), None, points, lambda _: None))
    finally:
        source.close()


def rows_read(ledger: Path, actor: str, partition: str, upto: Point = END) -> list[int]:
    """Return the sequences that the fold of a state was read up to, batch by batch."""
    reached: list[int] = []
    state_of(ledger, actor, partition, upto, reached.append)
    return reached


@each("upto", POINTS)
def test_every_state_is_as_if_folded_from_the_first_event(ledger: Path, upto: Point):
    expected = folded_from_the_first(ledger, upto)
    for _ in ("leaves snapshots", "begins at them"):
        assert {key: state_of(ledger, *key, upto) for key in expected} == expected


def test_the_nearest_snapshot_before_the_point_is_where_the_fold_begins(ledger: Path):
    actor, partition = "memory", "00"
    first = rows_read(ledger, actor, partition)
    assert min(first) < 80
    assert min(rows_read(ledger, actor, partition)) > 240
    assert 100 < min(rows_read(ledger, actor, partition, Point(seq=170))) <= 170


@each("points", [(Point(seq=60), Point(seq=200)), (Point(seq=130), END)])
def test_a_difference_of_all_actors_is_the_same_with_snapshots(ledger: Path, points: tuple[Point, Point]):
    without = changes_of(ledger, points)
    assert snapshots(ledger)
    assert changes_of(ledger, points) == without != ()


def test_a_snapshot_is_readable_by_its_owner_alone(ledger: Path):
    state_of(ledger, "memory", "00", END)
    assert stat.S_IMODE(folder_of(ledger).stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in snapshots(ledger)} == {0o600}


@each("damage", ["cut", "flipped", "empty", "foreign", "folder"])
def test_damage_to_snapshots_only_makes_the_fold_longer(ledger: Path, damage: str):
    expected = state_of(ledger, "memory", "00", END)
    assert snapshots(ledger)
    for file in snapshots(ledger):
        content = file.read_bytes()
        file.unlink()
        if damage == "folder":
            file.mkdir()
            continue
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        file.write_bytes({"cut": content[:-1], "flipped": flipped, "empty": b"", "foreign": b"x" * 100}[damage])
        file.chmod(0o600)
    assert min(rows_read(ledger, "memory", "00")) < 80
    assert state_of(ledger, "memory", "00", END) == expected


def test_a_folder_that_cannot_be_made_only_makes_the_fold_longer(ledger: Path):
    folder_of(ledger).write_text("in the way")
    assert state_of(ledger, "memory", "00", END) == folded_from_the_first(ledger, END)["memory", "00"]


def test_a_snapshot_of_other_code_is_not_used(ledger: Path, monkeypatch: pytest.MonkeyPatch):
    state_of(ledger, "memory", "00", END)
    monkeypatch.setattr(snapshot_folder, "code_fingerprint", lambda: b"of another release")
    assert min(rows_read(ledger, "memory", "00")) < 80


def test_snapshots_hold_for_a_ledger_that_has_grown_and_not_for_another(ledger: Path, tmp_path: Path):
    """At a log's end it is not known what was decided about the last messages: the log tells when it has grown."""
    with LedgerReader(ledger) as reader:
        messages = [stored for batch in reader.history() for stored in batch]
        partitions, stream = reader.partitions, reader.info().stream
    grown = tmp_path / "grown" / "ledger.db"
    grown.parent.mkdir()

    async def append(path: Path, first: int, upto: int) -> None:
        async with await LedgerWriter.open(path, stream, partitions) as writer:
            await writer.append(messages[first:upto])

    asyncio.run(append(grown, 0, 165))
    whole = folded_from_the_first(ledger, END)
    for actor, partition in whole:
        state_of(grown, actor, partition, END)
    assert snapshots(grown)
    asyncio.run(append(grown, 165, len(messages)))
    assert {key: state_of(grown, *key, END) for key in whole} == whole

    other = tmp_path / "other" / "ledger.db"
    other.parent.mkdir()
    messages = messages[:1] + messages[:-1]  # another log: the second message is lost, say
    messages = [stored.__class__(seq, *_fields(stored)) for seq, stored in enumerate(messages[1:], 1)]
    asyncio.run(append(other, 0, len(messages)))
    folder_of(grown).rename(folder_of(other))
    expected = folded_from_the_first(other, END)
    assert {key: state_of(other, *key, END) for key in expected} == expected


def _fields(stored: object) -> tuple[object, ...]:
    return tuple(getattr(stored, name) for name in stored.__struct_fields__[1:])  # type: ignore[attr-defined]


def test_a_bundle_and_a_small_log_get_none(ledger: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(from_snapshots, "MIN_SEQUENCES", 50_000)
    state_of(ledger, "memory", "00", END)
    assert snapshots(ledger) == []
    source = LedgerSource(RECORDED)
    assert not source.keeps_snapshots
    source.close()
