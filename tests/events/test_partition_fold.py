"""The fold: whatever crashed, stood by or led, the same log gives the same state and the same further events."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.registry import ACTORS
from actors.runtime.envelopes import to_record
from events import partition_fold as view_module
from events.decoding import Recorded, decode
from events.errors import Misconfigured
from events.log import Record, Stored
from events.make_decision import Cause, NewEvent, address_events
from events.partition_fold import Checkpoint, View
from events.snapshot import pack, unpack
from schemas.actor import Actor, Emission, Message
from schemas.catalogue import CATALOGUE
from schemas.event import encode_event, topic_of
from schemas.persistent import state_hash
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexBlocked, ReflexConfigured, ReflexPassed
from tests.actors.scenario import Address, configured
from tests.events.plans import conversations, diaries, few, many, streams
from tests.events.recording import PARTITIONS, Key, Recording, decide_all, own_cause, part_of, read_into
from tests.events.small_actors import DIARIST, folding, write_down

every_actor = pytest.mark.parametrize("actor", ACTORS.values(), ids=list(ACTORS))
HERE = ("reflex", PARTITIONS.session_token("session"))


def fresh(recording: Recording, key: Key, standing: Checkpoint | None = None) -> View:
    return View(recording.leaders[key].actor, key[1], recording.partitions, standing)


def crashed(recording: Recording, key: Key, length: int, standing: Checkpoint | None) -> View:
    """Return a view recovered when the log was ``length`` long, from ``standing`` or from nothing."""
    view = fresh(recording, key, standing)
    past = part_of(recording.log[:length], view.actor, key[1], recording.partitions)
    return read_into(view, [(stored, own) for stored, own in past if stored.seq > view.position])


def carry_on(view: View, rest: Iterable[tuple[Stored, bool]]) -> list[NewEvent]:
    """Lead from here on; events that no message led to come again where they came before."""
    written: list[NewEvent] = []
    for stored, own in rest:
        recorded = decode(stored)
        if not own:
            view.receive(recorded)
        elif isinstance(recorded, Recorded) and CATALOGUE[recorded.envelope.topic].spontaneous:
            while view.waiting and view.waiting[0].stored.seq <= recorded.envelope.cause_seq:
                written += view.decide_next()
            message = recorded.message
            emission = Emission(message.event, message.agent, message.session, message.exchange)
            written += view.spontaneous_event(own_cause(view, recorded.envelope.cause), emission)
    return written + decide_all(view)


def said(record: Record | Stored) -> tuple[str, dict[str, str], bytes]:
    """Return all that is stored of an event but the time of writing it down."""
    headers = {name: value for name, value in record.headers.items() if name != "ce-time"}
    return record.subject, headers, record.data


def assert_recovers(recording: Recording, key: Key, data: st.DataObject) -> None:
    leader = recording.leaders[key]
    length = data.draw(st.integers(0, len(recording.log)), label="crash after")
    length = whole_decisions(recording.log, length)
    usable = [kept for kept in recording.kept[key] if kept.length <= length]
    kept = data.draw(st.none() | st.sampled_from(usable) if usable else st.none(), label="snapshot")
    standing = None
    if kept is not None:
        standing = unpack(leader.actor, key[1], pack(leader.actor, key[1], kept.standing))
        assert standing is not None
    view = crashed(recording, key, length, standing)
    decided_before = {said(stored)[1]["ce-id"] for stored, own in recording.of(key) if own and stored.seq <= length}
    rest = [(stored, own) for stored, own in recording.of(key) if stored.seq > length]
    written = [said(to_record(one, "test", "", 0, 7)) for one in carry_on(view, rest)]
    assert written == [said(stored) for stored, own in rest if own]
    assert decided_before.isdisjoint(headers["ce-id"] for _, headers, _ in written)
    assert state_hash(view.state) == state_hash(leader.state)
    assert_same_settings(view.checkpoint(), leader.checkpoint())


def assert_same_settings(one: Checkpoint, other: Checkpoint) -> None:
    assert (one.configured is None) == (other.configured is None)
    if one.configured is not None and other.configured is not None:
        assert encode_event(one.configured) == encode_event(other.configured)


def whole_decisions(log: list[Stored], length: int) -> int:
    """Return the least length from ``length`` on that does not cut the events of one decision apart."""
    while length < len(log) and log[length].headers.get("ce-index", "0") != "0":
        length += 1
    return length


@every_actor
@given(data=st.data())
@few
def test_a_crash_anywhere_changes_neither_the_state_nor_a_byte_of_what_follows(
    actor: Actor[Any], data: st.DataObject
) -> None:
    recording = data.draw(streams(actor))
    for key in recording.leaders:
        assert_recovers(recording, key, data)


@given(recording=conversations(), data=st.data())
@few
def test_a_crash_in_a_conversation_changes_neither_the_state_nor_a_byte_of_what_follows(
    recording: Recording, data: st.DataObject
) -> None:
    for key in recording.leaders:
        assert_recovers(recording, key, data)


@given(recording=diaries(), data=st.data())
@many
def test_a_crash_between_decisions_of_several_events_changes_nothing(recording: Recording, data: st.DataObject) -> None:
    for key in recording.leaders:
        assert_recovers(recording, key, data)


def assert_standby_equals_leader(recording: Recording) -> None:
    for key, leader in recording.leaders.items():
        standby = read_into(fresh(recording, key), recording.of(key))
        assert decide_all(standby) == [], "all that leads to an event was decided and recorded"
        ours, theirs = standby.checkpoint(), leader.checkpoint()
        assert (ours.position, ours.own_last, ours.time_ns) == (theirs.position, theirs.own_last, theirs.time_ns)
        assert ours.fenced == theirs.fenced
        assert_same_settings(ours, theirs)
        assert state_hash(ours.state) == state_hash(theirs.state)
        assert standby.fold_errors == 0


@every_actor
@given(data=st.data())
@few
def test_a_standby_ends_where_the_leader_stands(actor: Actor[Any], data: st.DataObject) -> None:
    assert_standby_equals_leader(data.draw(streams(actor)))


@given(recording=diaries())
@many
def test_a_standby_folds_in_the_very_order_of_the_leader(recording: Recording) -> None:
    assert_standby_equals_leader(recording)


def diary_of(view: View) -> list[str]:
    """Return the folded messages as ``sequence topic``, the topic without its root."""
    lines = [line.split(" ") for line in view.state.lines]
    return [f"{line[0]} {line[2].removeprefix('forged_id.')}" for line in lines]


def asked(*texts: str) -> Recording:
    """Store inputs of one session, to be decided by the diarist, which leads each to as many events as it says."""
    recording = Recording([DIARIST])
    for text in texts:
        recording.send(InputReceived(text=text))
    return recording


def test_a_message_is_folded_before_the_events_it_led_to_and_these_at_its_place() -> None:
    recording = asked("2", "0", "1")
    recording.settle()
    expected = ["1 input.received", "1 reflex.blocked", "1 reflex.passed"]
    expected += ["2 input.received", "3 input.received", "3 reflex.blocked"]
    assert diary_of(recording.leaders[HERE]) == expected
    assert diary_of(read_into(fresh(recording, HERE), recording.of(HERE))) == expected


def test_nothing_of_a_decision_is_folded_before_its_last_event_is_here() -> None:
    recording = asked("3")
    recording.settle()
    view = fresh(recording, HERE)
    seen = []
    for message in recording.of(HERE):
        read_into(view, [message])
        seen.append((len(view.state.lines), len(view.waiting), view.own_last, view.open_decision))
    assert seen == [(0, 1, 0, 0), (0, 1, 0, 2), (0, 1, 0, 3), (4, 0, 4, 0)]


def test_messages_that_led_to_nothing_wait_until_a_later_event_shows_it() -> None:
    recording = asked("0", "0", "1")
    recording.settle()
    view = read_into(fresh(recording, HERE), list(recording.of(HERE))[:-1])
    assert (len(view.waiting), view.position, diary_of(view)) == (3, 0, [])
    read_into(view, list(recording.of(HERE))[-1:])
    assert (len(view.waiting), view.position) == (0, 3)
    assert diary_of(view) == ["1 input.received", "2 input.received", "3 input.received", "3 reflex.blocked"]


def test_what_is_settled_is_reported_with_the_state_before_it() -> None:
    recording = asked("0", "2")
    recording.settle()
    view, settled = fresh(recording, HERE), []
    view.on_processed = lambda one: settled.append((one.delivery.stored.seq, len(one.before.lines), len(one.recorded)))
    read_into(view, recording.of(HERE))
    assert settled == [(1, 0, 0), (2, 1, 2)]


def test_an_event_that_no_message_led_to_keeps_its_place_between_messages() -> None:
    recording = asked("0")
    recording.settle()
    recording.configure()
    first, second = (recording.send(InputReceived(text=text)).seq for text in ("0", "1"))
    recording.settle()
    expected = ["1 input.received", "1 reflex.configured"]
    expected += [f"{first} input.received", f"{second} input.received", f"{second} reflex.blocked"]
    assert diary_of(recording.leaders[HERE]) == expected
    view = read_into(fresh(recording, HERE), recording.of(HERE))
    assert diary_of(view) == expected
    assert isinstance(view.checkpoint().configured, ReflexConfigured)
    assert view.checkpoint().configured == recording.leaders[HERE].configured


def test_an_event_that_no_message_led_to_does_not_settle_what_came_after_its_place() -> None:
    """Its leader had read the second message already, but not decided it."""
    recording = asked("0", "1")
    recording.work(HERE, most=1)
    recording.configure()
    view = read_into(fresh(recording, HERE), recording.of(HERE))
    assert diary_of(view) == ["1 input.received", "1 reflex.configured"]
    assert [one.stored.seq for one in view.waiting] == [2]


def test_a_fired_deadline_is_folded_where_the_clock_stood() -> None:
    recording = Recording([ACTORS["clock"]])
    recording.send(InputReceived(text="?", deadline_after_ms=10), Address(exchange="first"))
    recording.settle()
    recording.advance(20)
    recording.send(InputReceived(text="?", deadline_after_ms=10), Address(exchange="second"))
    view = read_into(fresh(recording, ("clock", "all")), recording.of(("clock", "all")))
    fired = decode(recording.log[1])
    assert isinstance(fired, Recorded)
    assert isinstance(fired.message.event, ClockFired)
    assert (view.position, view.own_last, len(view.state.pending)) == (1, 2, 0)
    decide_all(view)
    assert list(view.state.pending) == ["second"]


def test_an_own_event_of_a_newer_release_stops_the_reading_and_says_what_to_do() -> None:
    recording = asked("1")
    recording.settle()
    newer = recording.send(ReflexBlocked(**sample_of(ReflexBlocked)), ce_dataversion="2")
    view = fresh(recording, HERE)
    with pytest.raises(Misconfigured) as stopped:
        view.apply_own(decode(newer))
    assert str(stopped.value).startswith(f"reflex partition {HERE[1]}: its own event at sequence 3 cannot be read")
    assert str(stopped.value).endswith("): it was written by a newer release; run that release or a later one")


def test_an_own_event_of_an_unknown_subject_is_a_newer_releases_too() -> None:
    stored = Stored(
        5, 0, f"log.00.{HERE[1]}.reflex.pondered", {"ce-id": "x", "ce-type": "forged_id.reflex.pondered"}, b"{}"
    )
    with pytest.raises(Misconfigured, match=r"not in the catalogue.*run that release or a later one"):
        View(DIARIST, HERE[1], PARTITIONS).apply_own(decode(stored))


def test_a_damaged_own_event_stops_the_reading_and_says_how_to_find_out() -> None:
    recording = asked()
    damaged = recording.send(ReflexBlocked(**sample_of(ReflexBlocked)), body=b'{"topic": "forged_id.reflex.bl')
    with pytest.raises(Misconfigured, match=r"it is damaged \(`neuraxis log verify` tells\), or it was written by"):
        fresh(recording, HERE).apply_own(decode(damaged))


def sample_of(kind: type[Any]) -> dict[str, Any]:
    sample = CATALOGUE[topic_of(kind)].sample
    return {name: getattr(sample, name) for name in kind.__struct_fields__}


def raising_on(seq: int) -> Any:
    def evolve(state: Any, message: Message) -> Any:
        if message.seq == seq:
            raise ValueError("not today")
        return write_down(state, message)

    return evolve


def test_recorded_facts_whose_fold_raises_are_passed_over_and_counted() -> None:
    recording = asked("1", "2", "1")
    recording.settle()
    view = View(folding(raising_on(2)), HERE[1], PARTITIONS)
    read_into(view, recording.of(HERE))
    assert view.fold_errors == 1
    assert {line.split(" ")[0] for line in view.state.lines} == {"1", "3"}
    assert (view.position, view.own_last) == (3, 7)


def test_a_fact_that_no_message_led_to_is_passed_over_and_counted_when_its_fold_raises() -> None:
    recording = asked("0")
    recording.settle()
    recording.configure()
    view = View(folding(raising_on(1)), HERE[1], PARTITIONS)
    read_into(view, recording.of(HERE))
    assert view.fold_errors == 2
    assert view.state.lines == ()
    assert view.configured is not None, "settings are known even where the state cannot take them"


def test_what_was_folded_already_is_ignored() -> None:
    recording = asked("2", "0", "1")
    recording.settle()
    view = read_into(fresh(recording, HERE), recording.of(HERE))
    before = view.checkpoint()
    read_into(view, recording.of(HERE))
    assert view.checkpoint() == before
    assert not view.waiting


def test_events_whose_cause_lies_before_the_reading_are_folded_at_its_place_and_reported() -> None:
    recording = asked("2")
    recording.settle()
    view, stray = fresh(recording, HERE, Checkpoint(DIARIST.initial(), position=1, time_ns=9)), []
    view.on_orphan = lambda group: stray.append([own.stored.seq for own in group])
    read_into(view, recording.of(HERE))
    assert diary_of(view) == ["1 reflex.blocked", "1 reflex.passed"]
    assert stray == [[2, 3]]


def test_a_decision_that_lost_its_last_event_is_not_mixed_up_with_the_next() -> None:
    recording = asked("2", "1")
    recording.settle()
    damaged = [(stored, own) for stored, own in recording.of(HERE) if stored.seq != 4]
    view = read_into(fresh(recording, HERE), damaged)
    assert diary_of(view) == ["1 input.received", "1 reflex.blocked", "2 input.received", "2 reflex.blocked"]


def test_a_refused_message_is_passed_over_and_only_its_failure_folded() -> None:
    recording = asked("3")
    view = recording.leaders[HERE]
    [failure] = view.decide_next(refused=True)
    assert failure.message.event == DIARIST.failed(
        reason="append_refused", error="", failed_seq=1, failed_topic="forged_id.input.received"
    )
    assert diary_of(view) == ["1 reflex.failed"]
    assert view.position == 1


def test_an_event_that_no_message_led_to_is_folded_and_written_at_the_views_place() -> None:
    recording = asked("0")
    recording.settle()
    view = recording.leaders[HERE]
    event = configured(DIARIST, DIARIST.settings_type())
    [written] = view.spontaneous_event(own_cause(view, "why"), Emission(event))
    assert (written.cause, written.cause_seq, written.subject) == ("why", 1, f"log._.{HERE[1]}.reflex.configured")
    assert (written.message.seq, written.message.time_ns) == (1, view.time_ns)
    assert view.configured is event
    view.acknowledge([written.topic], 2)
    assert (view.checkpoint().own_last, view.checkpoint().fenced) == (2, 2)


def test_a_view_keeps_the_latest_messages_that_it_decided_and_the_log_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "MOST_LOST_CAUSES", 2)
    actor = ACTORS["reflex"]
    view, causes = View(actor, HERE[1], PARTITIONS), []
    for number in range(1, 5):
        cause = Cause(f"lost-{number}", 10 * number, 0, "agent", "session", f"exchange-{number}", "_", HERE[1])
        [decided] = address_events("reflex", cause, (ReflexPassed(),), PARTITIONS)
        record = to_record(decided, "test", "", 0, 0)
        view.apply_own(decode(Stored(10 * number + 1, 0, record.subject, record.headers, record.data)))
        causes.append(cause.id)
    assert list(view.checkpoint().lost_causes) == causes[-2:]
    again = View(actor, HERE[1], PARTITIONS, view.checkpoint())
    assert list(again.lost_causes) == causes[-2:]
