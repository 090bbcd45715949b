"""Replay: a true log verifies clean, every message is accounted for, and a decider that changed is named."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.registry import ACTORS
from events.log import Stored
from events.replay.replay import Replay
from schemas.actor import Actor, Emission, Message
from schemas.event import Event
from schemas.persistent import state_hash
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexBlocked
from tests.actors.scenario import MS
from tests.events.plans import conversations, diaries, few, streams
from tests.events.recording import PARTITIONS, Kept, Recording
from tests.events.replaying import HERE, PARTITION, asked, consumed, first_difference, verified
from tests.events.small_actors import DIARIST, blocked, deciding, folding, write_down

every_actor = pytest.mark.parametrize("actor", ACTORS.values(), ids=list(ACTORS))


def assert_true(recording: Recording) -> None:
    """Every decision comes out as recorded, the states are the leaders', and every message is accounted for."""
    report = verified(recording.actors, recording.log)
    assert report.clean, report.differences
    assert not report.fold_errors
    assert (report.events, report.last_seq) == (len(recording.log), len(recording.log))
    assert report.state_hashes == {
        f"{name}/{partition}": state_hash(leader.state)
        for (name, partition), leader in recording.leaders.items()
        if any(True for _ in recording.of((name, partition)))
    }
    for actor in recording.actors:
        coverage = report.coverage[actor.name]
        assert coverage.identical == consumed(recording, actor)
        assert (coverage.different, coverage.pending, coverage.unverified) == (0, 0, {})
        assert coverage.silent <= coverage.identical


@given(recording=conversations())
@few
def test_every_conversation_verifies_clean(recording: Recording) -> None:
    assert_true(recording)


@every_actor
@given(data=st.data())
@few
def test_any_stream_of_an_actor_verifies_clean(actor: Actor[Any], data: st.DataObject) -> None:
    assert_true(data.draw(streams(actor)))


@given(recording=diaries())
@few
def test_decisions_of_several_events_verify_clean(recording: Recording) -> None:
    assert_true(recording)


@given(recording=conversations(), backlog=st.integers(1, 5))
@few
def test_how_much_may_wait_changes_nothing(recording: Recording, backlog: int) -> None:
    patient, brief = (verified(recording.actors, recording.log, backlog=each) for each in (10_000, backlog))
    assert patient == brief


def settings_between(*texts: str) -> Recording:
    """Record settings by a leader that has read two inputs but decided only the first."""
    recording = Recording([DIARIST])
    for text in texts:
        recording.send(InputReceived(text=text))
    recording.work(HERE, most=1)
    recording.configure()
    recording.settle()
    return recording


def test_looking_whether_an_event_is_owed_leaves_everything_as_it_was() -> None:
    recording = settings_between("0", "1")
    assert verified([DIARIST], recording.log, backlog=1) == verified([DIARIST], recording.log)


def test_settings_of_a_leader_further_behind_than_may_wait_are_left_unverified() -> None:
    recording = settings_between("0", "0")
    assert verified([DIARIST], recording.log).coverage["reflex"].facts == PARTITIONS.sessions
    coverage = verified([DIARIST], recording.log, backlog=1).coverage["reflex"]
    assert coverage.unverified == {"beyond_backlog": 1}
    assert (coverage.identical, coverage.facts) == (2, PARTITIONS.sessions - 1)


@given(recording=conversations())
@few
def test_two_replays_of_a_log_report_the_same(recording: Recording) -> None:
    assert verified(recording.actors, recording.log) == verified(recording.actors, recording.log)
    plain = verified(recording.actors, recording.log, verify=False)
    assert plain.state_hashes == verified(recording.actors, recording.log).state_hashes


@given(recording=conversations(), data=st.data())
@few
def test_a_replay_of_any_beginning_is_clean_and_counts_what_was_not_decided_yet(
    recording: Recording, data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, len(recording.log)))
    report = verified(recording.actors, recording.log[:length])
    assert report.clean, report.differences
    begun = Recording(recording.actors)
    begun.log = recording.log[:length]
    for actor in recording.actors:
        coverage = report.coverage[actor.name]
        assert coverage.identical + coverage.pending == consumed(begun, actor)


@given(recording=conversations(), data=st.data())
@few
def test_a_beginning_leads_to_the_states_that_its_leaders_had(recording: Recording, data: st.DataObject) -> None:
    """When a view has just written, its state is what a replay up to there finds.

    What it decides after that without writing shows in the log only with its next event.
    """
    key = data.draw(st.sampled_from(sorted(recording.leaders)))
    last_own = [stored.seq for stored, own in recording.of(key) if own]
    written: dict[int, Kept] = {}
    for each in recording.kept[key]:
        if each.length in last_own:
            written.setdefault(each.length, each)
    kept = data.draw(st.sampled_from(list(written.values())))
    replay = Replay(recording.actors, PARTITIONS)
    for stored in recording.log[: kept.length]:
        replay.feed(stored)
    assert state_hash(replay.views[key].state) == state_hash(kept.standing.state)


def test_a_decider_that_does_not_repeat_itself_is_found_and_named() -> None:
    coin: list[None] = []

    def fickle(diary: Any, message: Message) -> tuple[Event, ...]:
        coin.append(None)
        return (blocked(len(coin)),)

    recording = asked("", "", actor=deciding(fickle))
    difference = first_difference(recording, recording.log)
    assert (difference.actor, difference.partition, difference.seq) == ("reflex", PARTITION, 1)
    assert (difference.topic, difference.exchange) == ("forged_id.input.received", "exchange-0")
    assert difference.field == "body"
    assert '"pattern 1"' in difference.recorded
    assert '"pattern 3"' in difference.redecided


def test_a_fold_that_does_not_repeat_itself_is_found_by_what_follows_from_it() -> None:
    coin: list[None] = []

    def fickle(diary: Any, message: Message) -> Any:
        coin.append(None)
        return diary if len(coin) == 1 else write_down(diary, message)

    recording = asked("1", "1", actor=folding(fickle))
    difference = first_difference(recording, recording.log)
    assert (difference.seq, difference.field) == (2, "body")


def test_a_changed_decider_is_found_at_the_first_decision_that_it_changes() -> None:
    recording = asked("0", "1", "1")

    def stricter(diary: Any, message: Message) -> Iterable[Event | Emission]:
        return () if message.seq == 3 else DIARIST.decide(diary, message)

    report = verified([deciding(stricter)], recording.log)
    [difference] = report.differences
    assert (difference.seq, difference.field) == (3, "count")
    assert difference.recorded == "1 events: forged_id.reflex.blocked"
    assert difference.redecided == "0 events: "
    assert report.coverage["reflex"].identical == 2


def test_messages_not_decided_yet_are_counted_from_the_first_that_leads_to_an_event() -> None:
    recording = asked("1", apart=True)
    for text in ("0", "1", "0", "1"):
        recording.send(InputReceived(text=text))
    report = verified(recording.actors, recording.log)
    coverage = report.coverage["reflex"]
    assert report.clean
    assert (coverage.identical, coverage.silent, coverage.pending) == (2, 1, 3)


def test_what_a_broker_refused_is_not_decided_again() -> None:
    recording = Recording([DIARIST])
    view = recording.leaders[HERE]
    for text in ("1", "3", "1"):
        recording.send(InputReceived(text=text))
    for refused in (False, True, False):
        recording.append(view, view.decide_next(refused=refused))
    report = verified(recording.actors, recording.log)
    assert report.clean
    assert report.coverage["reflex"].unverified == {"append_refused": 1}
    assert report.coverage["reflex"].identical == 2
    assert report.state_hashes[f"reflex/{PARTITION}"] == state_hash(view.state)


def test_failures_are_decided_again_like_everything_else() -> None:
    def difficult(diary: Any, message: Message) -> Iterable[Event | Emission]:
        if message.seq == 1:
            raise ValueError
        return DIARIST.decide(diary, message)

    actor = replace(deciding(difficult), evolve=fragile)
    recording = Recording([actor])
    recording.send(InputReceived(text="1"))
    recording.send(InputReceived(text="fragile"))
    recording.send(InputReceived(text="1"), body=b"{")
    recording.send(InputReceived(text="2"))
    recording.settle()
    report = verified(recording.actors, recording.log)
    assert report.clean, report.differences
    assert report.coverage["reflex"].identical == 4
    assert report.unreadable == {"undecodable": 1}
    reasons = Counter(
        msgspec.json.decode(stored.data)["reason"] for stored in recording.log if b"reason" in stored.data
    )
    assert reasons == {"decider_raised": 1, "fold_raised": 1, "undecodable": 1}
    other = verified([deciding(difficult)], recording.log)
    assert [(one.seq, one.field) for one in other.differences] == [(2, "count")], "it folds what could not be folded"


def fragile(diary: Any, message: Message) -> Any:
    if isinstance(message.event, InputReceived) and message.event.text == "fragile":
        raise ValueError
    return write_down(diary, message)


def silent(diary: Any, message: Message) -> tuple[Event, ...]:
    return ()


def test_what_another_behaviour_decided_is_left_unverified() -> None:
    recording = Recording([DIARIST])
    recording.configure()
    recording.send(InputReceived(text="1"))
    recording.send(InputReceived(text="0"))
    recording.send(InputReceived(text="1"))
    recording.settle()
    report = verified([replace(deciding(silent), behaviour=2, oldest=2)], recording.log)
    assert report.clean
    coverage = report.coverage["reflex"]
    assert coverage.unverified == {"behaviour_1": 3}
    assert (coverage.identical, coverage.facts) == (0, PARTITIONS.sessions)


def test_what_rests_on_a_model_that_is_not_here_is_left_unverified() -> None:
    recording = asked("1", "0", "1")

    def missing(event: Event) -> str:
        return "sage-1" if isinstance(event, ReflexBlocked) else ""

    report = verified([replace(deciding(silent), missing_model=missing)], recording.log)
    assert report.clean
    coverage = report.coverage["reflex"]
    assert coverage.unverified == {"model_sage-1": 2}
    assert coverage.identical == 1


def test_what_another_behaviour_decided_is_not_taken_for_silence_however_much_waits() -> None:
    recording = Recording([DIARIST])
    recording.configure()
    for _ in range(9):
        recording.send(InputReceived(text="1"))
    recording.settle()
    report = verified([replace(deciding(silent), behaviour=2, oldest=2)], recording.log, backlog=2)
    assert report.clean, report.differences
    assert report.coverage["reflex"].unverified == {"behaviour_1": 9}
    assert report.state_hashes[f"reflex/{PARTITION}"] == state_hash(recording.leaders[HERE].state)


def test_only_the_first_differences_are_kept_and_all_are_counted() -> None:
    recording = asked(*"11111")
    report = verified([deciding(silent)], recording.log, keep=2)
    assert [one.seq for one in report.differences] == [1, 2]
    assert report.coverage["reflex"].different == 5


def test_facts_whose_fold_raises_make_a_report_unclean() -> None:
    recording = asked("1", "0", "1")

    def brittle(diary: Any, message: Message) -> Any:
        if message.seq == 2:
            raise ValueError
        return write_down(diary, message)

    report = verified([folding(brittle)], recording.log)
    assert report.fold_errors == 1
    assert not report.clean


def test_a_decision_that_comes_out_the_same_but_cannot_be_folded_any_more_is_a_difference() -> None:
    recording = asked("1", "0", "1")

    def brittle(diary: Any, message: Message) -> Any:
        if isinstance(message.event, ReflexBlocked) and message.seq == 1:
            raise ValueError
        return write_down(diary, message)

    report = verified([folding(brittle)], recording.log)
    difference = report.differences[0]
    assert (report.fold_errors, report.coverage["reflex"].different) == (1, 2)
    assert (difference.seq, difference.field) == (1, "subject")
    assert difference.redecided.endswith("reflex.failed")


def test_subjects_of_nobody_are_counted_and_passed_over() -> None:
    recording = asked("1")
    others: list[Callable[[int], Stored]] = [
        lambda seq: Stored(seq, MS, "log.00.01.alert.raised", {}, b"{}"),
        lambda seq: Stored(seq, MS, "nowhere", {}, b""),
    ]
    log = [*recording.log, *(make(seq) for seq, make in enumerate(others, 3))]
    report = verified(recording.actors, log)
    assert report.clean
    assert (report.events, report.first_seq, report.last_seq) == (4, 1, 4)
    assert report.unreadable == {}


def test_an_actors_filters_cover_all_that_its_replay_needs() -> None:
    replay = Replay([DIARIST], PARTITIONS)
    assert set(replay.filters) == {"log.*.*.input.received", "log.*.*.reflex.>", "log.*.*.ledger.loss_recorded"}
