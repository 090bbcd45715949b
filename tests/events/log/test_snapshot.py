"""Snapshots come back as they were, or not at all."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.registry import ACTORS
from events.partition_fold import Checkpoint
from events.snapshot import pack, snapshot_key, unpack
from schemas.actor import Actor
from schemas.catalogue import CATALOGUE, entry_of
from schemas.entry import Grouping, Severity
from schemas.event import Event, encode_event, topic_of
from schemas.persistent import Map, state_hash, state_pieces
from schemas.subjects import NO_PARTITION
from schemas.versions import UPCASTERS
from schemas.vocabulary.breaker import BreakerWarned
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.scenario import configured
from tests.each import each
from tests.events.plans import few, streams
from tests.events.recording import Recording
from tests.events.small_actors import DIARIST, Diary

every_actor = pytest.mark.parametrize("actor", ACTORS.values(), ids=list(ACTORS))
ANY: Actor[Any] = DIARIST
SETTINGS = configured(DIARIST, DIARIST.settings_type())
STANDING = Checkpoint(Diary(("one", "two")), 40, 39, 1_700_000_000_000_000_000, SETTINGS)  # type: ignore[arg-type]
PACKED = pack(DIARIST, "01", STANDING)


def assert_same(found: Checkpoint | None, kept: Checkpoint) -> None:
    assert found is not None
    assert state_hash(found.state) == state_hash(kept.state)
    assert type(found.state) is type(kept.state)
    assert (found.position, found.own_last, found.time_ns) == (kept.position, kept.own_last, kept.time_ns)
    assert found.fenced == kept.fenced
    assert (found.configured is None) == (kept.configured is None)
    if found.configured is not None and kept.configured is not None:
        assert encode_event(found.configured) == encode_event(kept.configured)


@every_actor
@given(data=st.data())
@few
def test_every_standing_of_every_actor_comes_back_as_it_was(actor: Actor[Any], data: st.DataObject) -> None:
    recording = data.draw(streams(actor))
    for (_, partition), standings in recording.kept.items():
        for kept in standings:
            packed = pack(actor, partition, kept.standing)
            in_pieces = b"".join(state_pieces(kept.standing.state))
            assert pack(actor, partition, kept.standing, state=in_pieces) == packed
            found = unpack(actor, partition, packed)
            assert_same(found, kept.standing)
            assert found is not None
            assert pack(actor, partition, found) == packed


def test_a_standing_without_settings_comes_back_without() -> None:
    bare = Checkpoint(Diary(), 3, 2, 1)
    assert unpack(DIARIST, "01", pack(DIARIST, "01", bare)) == bare


class Renamed(msgspec.Struct, frozen=True):
    """The diary of a release that calls its lines otherwise."""

    entries: tuple[str, ...] = ()


class Widened(msgspec.Struct, frozen=True):
    """The diary of a release that keeps more."""

    lines: tuple[str, ...] = ()
    pages: int = 0


class Retyped(msgspec.Struct, frozen=True):
    """The diary of a release that keeps numbers."""

    lines: tuple[int, ...] = ()


@each(
    "other",
    [
        replace(DIARIST, behaviour=2),
        replace(DIARIST, name="router"),
        replace(ANY, state_type=Renamed),
        replace(ANY, state_type=Widened),
        replace(ANY, state_type=Retyped),
        ACTORS["clock"],
    ],
    named=["behaviour", "name", "renamed_field", "added_field", "retyped_field", "actor"],
)
def test_a_snapshot_of_another_actor_or_release_is_passed_over(other: Actor[Any]) -> None:
    assert unpack(other, "01", PACKED) is None


def as_of_an_earlier_release(packed: bytes, digest: str) -> bytes:
    """Return a snapshot with the hash of its state in the place of that of its structure."""
    fields = msgspec.msgpack.decode(packed[32:]) | {"state_hash": digest}
    del fields["structure"]
    body = msgspec.msgpack.encode(fields)
    return sha256(body).digest() + body


def test_a_snapshot_of_an_earlier_release_is_judged_by_its_states_hash() -> None:
    digest = state_hash(STANDING.state)
    earlier = as_of_an_earlier_release(PACKED, digest)
    assert_same(unpack(DIARIST, "01", earlier), STANDING)
    assert unpack(replace(ANY, state_type=Widened), "01", earlier) is None
    assert unpack(DIARIST, "01", as_of_an_earlier_release(PACKED, digest[::-1])) is None


def test_a_snapshot_of_another_partition_is_passed_over() -> None:
    assert_same(unpack(DIARIST, "01", PACKED), STANDING)
    assert unpack(DIARIST, "00", PACKED) is None


@each("event", [*DIARIST.consumes, DIARIST.configured])
def test_a_snapshot_from_before_an_event_got_another_meaning_is_passed_over(
    event: type[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state keeps what an event said, in the meaning it then had; its fields, and so its hash, are the same."""
    older = pack(DIARIST, "01", STANDING)
    monkeypatch.setitem(CATALOGUE, topic_of(event), msgspec.structs.replace(entry_of(event), version=2))
    assert unpack(DIARIST, "01", older) is None
    newer = pack(DIARIST, "01", STANDING)
    assert_same(unpack(DIARIST, "01", newer), STANDING)
    monkeypatch.undo()
    assert unpack(DIARIST, "01", newer) is None


def test_a_snapshot_of_a_release_in_which_the_actor_consumes_other_events_is_passed_over() -> None:
    """It holds what this release knows nothing of, or lacks what this release would have folded."""
    more = replace(DIARIST, consumes=(*DIARIST.consumes, ResponseEmitted))
    for writer, reader in ((more, DIARIST), (DIARIST, more)):
        packed = pack(writer, "01", STANDING)
        assert_same(unpack(writer, "01", packed), STANDING)
        assert unpack(reader, "01", packed) is None


@each(
    "change",
    [{"severity": Severity.CRITICAL}, {"grouping": Grouping(by_session=True)}, {"ended_by": (ResponseEmitted,)}],
    named=["severity", "grouping", "end"],
)
def test_a_snapshot_from_before_alerts_of_an_event_were_grouped_otherwise_is_passed_over(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open group of the former kind would be resolved as one that no receiver was told of, or not at all."""
    actor = ACTORS["alerts"]
    older = pack(actor, NO_PARTITION, Checkpoint(actor.initial(), 3, 2, 1))
    assert unpack(actor, NO_PARTITION, older) is not None
    changed = msgspec.structs.replace(entry_of(BreakerWarned), **change)
    monkeypatch.setitem(CATALOGUE, changed.topic, changed)
    assert unpack(actor, NO_PARTITION, older) is None


def test_settings_in_a_later_version_of_their_event_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topic_of(DIARIST.configured)

    def step(body: dict[str, Any]) -> dict[str, Any]:
        return body | {"behaviour": body["behaviour"] + 1}

    monkeypatch.setitem(CATALOGUE, topic, msgspec.structs.replace(CATALOGUE[topic], version=2))
    monkeypatch.setitem(UPCASTERS, (topic, 1), step)  # type: ignore[arg-type]
    assert_same(unpack(DIARIST, "01", pack(DIARIST, "01", STANDING)), STANDING)


def test_settings_that_this_release_cannot_read_make_a_snapshot_unusable() -> None:
    other = msgspec.structs.replace(STANDING, configured=InputReceived(text="no settings"))
    assert unpack(DIARIST, "01", pack(DIARIST, "01", other)) is None


@each("bit", range(8))
def test_no_flipped_bit_goes_unnoticed(bit: int) -> None:
    for place in range(len(PACKED)):
        damaged = PACKED[:place] + bytes([PACKED[place] ^ 1 << bit]) + PACKED[place + 1 :]
        assert unpack(DIARIST, "01", damaged) is None


def test_no_cut_goes_unnoticed() -> None:
    assert all(unpack(DIARIST, "01", PACKED[:length]) is None for length in range(len(PACKED)))
    assert unpack(DIARIST, "01", PACKED + b"\0") is None


@given(st.binary(max_size=200))
def test_bytes_that_are_no_snapshot_are_passed_over(data: bytes) -> None:
    assert unpack(DIARIST, "01", data) is None


@every_actor
@given(data=st.data())
@few
def test_damage_to_an_actors_own_snapshot_is_noticed(actor: Actor[Any], data: st.DataObject) -> None:
    recording = Recording([actor])
    recording.configure()
    recording.settle()
    (_, partition), view = next(iter(recording.leaders.items()))
    packed = pack(actor, partition, view.checkpoint())
    place = data.draw(st.integers(0, len(packed) - 1))
    changed = data.draw(st.integers(0, 255).filter(lambda byte: byte != packed[place]))
    assert unpack(actor, partition, packed[:place] + bytes([changed]) + packed[place + 1 :]) is None


def test_equal_states_of_different_histories_are_kept_alike() -> None:
    class Counted(msgspec.Struct, frozen=True):
        counts: Map[str, int] = Map()

    actor = replace(ANY, state_type=Counted)
    there_and_back = Counted(Map({"a": 1}).set("b", 2).delete("b"))
    found = unpack(actor, "01", pack(actor, "01", Checkpoint(there_and_back)))
    assert_same(found, Checkpoint(Counted(Map({"a": 1}))))


def test_a_partitions_snapshot_has_a_key_of_its_own() -> None:
    keys = {snapshot_key(actor, part) for actor in ACTORS.values() for part in ("00", "01", "all")}
    assert len(keys) == 3 * len(ACTORS)
    assert snapshot_key(DIARIST, "01") == "reflex.01"
