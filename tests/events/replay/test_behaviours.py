"""What was decided under an older behaviour is decided again under that one, stretch by stretch."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from actors.registry import ACTORS
from events.partition_fold import Checkpoint, View
from events.replay.unread_events import newer_behaviours_text
from events.snapshot import pack, unpack
from schemas.actor import NEWEST_BEHAVIOUR, Actor, Emission, Message
from schemas.event import Event, topic_of
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed
from tests.actors.scenario import Address, Partition, configured
from tests.events.recording import PARTITIONS, Recording, own_cause, read_into
from tests.events.releases import LaterRelease, later
from tests.events.replaying import HERE, PARTITION, verified
from tests.events.small_actors import DIARIST, Diary, answer_by_number, blocked, write_down
from tests.events.whatif.asking import live, whatif

__all__ = ["later"]

TALK = [("noon", "Hello!"), ("noon", "What is the capital of Peru?"), ("evening", "Thanks!")]


def passing_more(diary: Diary, message: Message) -> Iterable[Event | Emission]:
    """Answer as the diarist does; since behaviour 2, an input that is no number is let pass."""
    answered = tuple(answer_by_number(diary, message))
    if not answered and message.behaviour >= 2 and isinstance(message.event, InputReceived):
        return (ReflexPassed(),)
    return answered


def shouting(diary: Diary, message: Message) -> Diary:
    """Write down as the diarist does; since behaviour 2, who speaks is in capitals."""
    if message.behaviour >= 2:
        return Diary((*diary.lines, *(line.upper() for line in write_down(Diary(), message).lines)))
    return write_down(diary, message)


SECOND = replace(DIARIST, behaviour=2, decide=passing_more, evolve=shouting)
FIRST = replace(SECOND, behaviour=1)


def upgraded(*texts: str) -> Recording:
    """Record inputs under the first behaviour, and as many again under the second."""
    recording = Recording([FIRST])
    for actor in (FIRST, SECOND):
        for view in recording.leaders.values():
            view.actor = actor
        recording.configure()
        for text in texts:
            recording.send(InputReceived(text=text))
        recording.settle()
    return recording


def upgrade(recording: Recording, newer: Actor[Any]) -> None:
    """Have an actor decide as this one does from here on, and record that."""
    for view in recording.leaders.values():
        if view.actor.name == newer.name:
            view.actor = newer
            cause = f"upgrade-{view.partition}"
            event = Emission(configured(newer, newer.settings_type()))
            recording.append(view, view.spontaneous_event(own_cause(view, cause), event))


def test_each_stretch_of_a_log_is_decided_again_under_the_behaviour_that_was_in_force() -> None:
    recording = upgraded("1", "hello")
    report = verified([SECOND], recording.log)
    assert report.clean, report.differences
    assert (report.unverified, report.identical) == ({}, 4)
    assert report.state_hashes == verified([SECOND], recording.log, verify=False).state_hashes
    said = [stored.subject.rpartition(".")[2] for stored in recording.log if ".reflex." in stored.subject]
    assert said.count("passed") == 1, "the second behaviour alone lets words pass"


def test_a_decider_that_has_lost_its_old_branch_is_found_out() -> None:
    log = upgraded("1", "hello").log

    def forgetful(diary: Diary, message: Message) -> Iterable[Event | Emission]:
        return passing_more(diary, Message(message.event, message.seq, message.id, message.time_ns))

    report = verified([replace(SECOND, decide=forgetful)], log)
    assert [(one.field, one.redecided) for one in report.differences] == [
        ("count", "1 events: forged_id.reflex.passed")
    ]


def test_what_a_newer_release_decided_is_left_unverified_and_nothing_before_it() -> None:
    report = verified([FIRST], upgraded("1", "hello", "1").log)
    assert report.clean, report.differences
    assert report.unverified == {"behaviour_2": 3}
    assert report.identical == 3


def test_what_was_decided_under_a_behaviour_whose_branch_is_gone_is_left_unverified() -> None:
    report = verified([replace(SECOND, oldest=2)], upgraded("1", "hello").log)
    assert (report.unverified, report.identical) == ({"behaviour_1": 2}, 2)


def test_what_differs_since_its_state_lacks_a_branch_that_is_gone_is_left_unverified() -> None:
    """Nobody can tell whether it would differ with the state that the old branch had left."""

    def answering_in_letters(diary: Diary, message: Message) -> Iterable[Event | Emission]:
        if isinstance(message.event, InputReceived):
            yield blocked(sum(map(str.isupper, "".join(diary.lines))))

    def only_shouting(diary: Diary, message: Message) -> Diary:
        return Diary((*diary.lines, *(line.upper() for line in write_down(Diary(), message).lines)))

    def folding(diary: Diary, message: Message) -> Diary:
        return only_shouting(diary, message) if message.behaviour >= 2 else write_down(diary, message)

    both = replace(DIARIST, behaviour=2, decide=answering_in_letters, evolve=folding)
    recording = Recording([replace(both, behaviour=1)])
    for actor in (replace(both, behaviour=1), both):
        for view in recording.leaders.values():
            view.actor = actor
        recording.configure()
        recording.send(InputReceived(text="hello"))
        recording.settle()
    assert verified([both], recording.log).identical == 2
    report = verified([replace(both, oldest=2, evolve=only_shouting)], recording.log)
    assert report.clean, report.differences
    assert report.unverified == {"behaviour_1": 2}


def test_a_what_if_changes_nothing_for_a_branch_that_is_gone(later: LaterRelease) -> None:
    """The state was folded without that branch. As nothing is changed, what was recorded on it stands."""
    appraisal = ACTORS["appraisal"]
    recording = live(TALK[:2])
    upgrade(recording, replace(appraisal, behaviour=2))
    recording.send(InputReceived(text="Hello!"), Address("ann", "noon", "exchange-2"))
    recording.settle()

    def without_the_branch(state: Any, message: Message) -> Any:
        return appraisal.evolve(state, message) if message.behaviour >= 2 else state

    later.actor(replace(appraisal, behaviour=2, oldest=2, evolve=without_the_branch))
    report = whatif(recording.log)
    assert (report.changed, report.compared, report.tallies["appraisal"].different) == (0, 3, 0)
    assert set(report.tallies["appraisal"].held) == {"behaviour_1"}


def test_states_that_a_newer_release_decided_otherwise_are_told() -> None:
    log = upgraded("1", "hello").log
    first_of_second = min(stored.seq for stored in log if b'"behaviour":2' in stored.data)
    for verify in (False, True):
        assert verified([FIRST], log, verify=verify).newer_behaviours == {"reflex": first_of_second}
        assert verified([SECOND], log, verify=verify).newer_behaviours == {}
    assert f"from sequence {first_of_second}" in newer_behaviours_text({"reflex": first_of_second})


@pytest.mark.parametrize("now", ["as-then", "other-weights"])
def test_a_decision_that_was_cut_off_is_completed_under_what_was_in_force(now: str) -> None:
    """Its behaviour, and the models that its first events name; other ones may be in use by now."""

    def in_pairs(diary: Diary, message: Message, default: str = "as-then") -> Iterable[Event | Emission]:
        model = next(iter(message.models), default)
        if message.behaviour >= 2 and isinstance(message.event, InputReceived):
            yield from (blocked(len(model)), ReflexPassed())

    def models_of(event: Event) -> tuple[str, ...]:
        return ("as-then",) if isinstance(event, ReflexBlocked) else ()

    actor = replace(DIARIST, behaviour=2, decide=in_pairs, models=models_of)
    recording = Recording([actor])
    recording.configure()
    recording.send(InputReceived(text="hello"))
    recording.settle()
    view = View(replace(actor, decide=partial(in_pairs, default=now)), PARTITION, PARTITIONS)
    read_into(view, [*recording.of(HERE)][:-1])
    assert [missing.topic for missing in view.complete_decision()] == [topic_of(ReflexPassed)]
    assert view.state == recording.leaders[HERE].state


def test_a_decision_that_an_older_release_began_is_completed_by_one_that_says_more(later: LaterRelease) -> None:
    def in_pairs(diary: Diary, message: Message) -> Iterable[Event | Emission]:
        if isinstance(message.event, InputReceived):
            yield from (blocked(1), ReflexPassed())

    recording = Recording([replace(DIARIST, decide=in_pairs)])
    recording.configure()
    recording.send(InputReceived(text="hello"))
    recording.settle()
    begun = [*recording.of(HERE)][:-1]
    wider = later.event(ReflexBlocked, [("words", int, 0)], lambda body: {**body, "words": 1})

    def saying(words: int) -> Actor[Diary]:
        first = msgspec.convert({**msgspec.to_builtins(blocked(words)), "words": words}, wider)
        return replace(DIARIST, decide=lambda diary, message: (first, ReflexPassed()))

    for words, missing in ((1, [topic_of(ReflexPassed)]), (2, [])):  # the other one says something else
        view = View(saying(words), PARTITION, PARTITIONS)
        read_into(view, begun)
        assert [one.topic for one in view.complete_decision()] == missing


def test_a_view_of_an_older_release_is_of_no_use_behind_a_newer_behaviour() -> None:
    recording = upgraded("1", "hello")
    for actor, passed_over in ((FIRST, 1), (SECOND, 0)):
        view = View(actor, PARTITION, PARTITIONS)
        read_into(view, recording.of(HERE))
        assert view.passed_over == passed_over
        assert ("behaviour 2" in view.why_passed_over) is bool(passed_over)
        assert view.divided(PARTITION, PARTITIONS).passed_over == passed_over


def test_a_partition_that_recovers_folds_each_stretch_as_it_was_folded_live() -> None:
    recording = upgraded("1", "hello")
    view = View(SECOND, PARTITION, PARTITIONS)
    read_into(view, recording.of(HERE))
    assert view.state == recording.leaders[HERE].state
    assert view.behaviour == 2
    halves = [[line for line in view.state.lines if (line == line.upper()) is loud] for loud in (False, True)]
    assert all(halves), "both foldings are in it"


def test_a_snapshot_knows_the_behaviour_in_force() -> None:
    recording = Recording([FIRST])
    recording.configure()
    recording.send(InputReceived(text="1"))
    recording.settle()
    standing = unpack(SECOND, PARTITION, pack(SECOND, PARTITION, recording.leaders[HERE].checkpoint()))
    assert standing is not None
    view = View(SECOND, PARTITION, PARTITIONS, standing)
    assert view.behaviour == 1
    fresh = View(SECOND, PARTITION, PARTITIONS, Checkpoint(Diary()))
    assert fresh.behaviour == 2, "nothing is recorded: it will decide as its own release does"


def test_a_message_outside_a_view_is_decided_as_the_newest() -> None:
    assert Message(InputReceived(text="hello"), 1, "", 0).behaviour == NEWEST_BEHAVIOUR
    partition = Partition(SECOND)
    assert [type(each.event) for each in partition.hear(InputReceived(text="hello"))] == [ReflexPassed]


def test_timers_of_an_older_behaviour_are_checked_like_those_of_the_newest() -> None:
    recording = Recording([ACTORS["clock"]])
    recording.configure()
    recording.send(InputReceived(text="?", deadline_after_ms=10), Address(exchange="first"))
    recording.settle()
    recording.advance(20)
    assert any(stored.subject.endswith("clock.fired") for stored in recording.log)
    report = verified([replace(ACTORS["clock"], behaviour=2)], recording.log)
    assert (report.unverified, report.coverage["clock"].timers) == ({}, 1)


def blocking(actor: Actor[Any]) -> Actor[Any]:
    """Return reflex as a release has it that blocks every thanks, since behaviour 2."""

    def decide(state: Any, message: Message) -> Iterable[Event | Emission]:
        event = message.event
        if message.behaviour >= 2 and isinstance(event, InputReceived) and event.text == "Thanks!":
            return (
                ReflexBlocked(pattern="thanks", signature="", confidence=1.0, view="plain", span=(0, 1), matches=()),
            )
        return actor.decide(state, message)

    return replace(actor, behaviour=2, decide=decide)


def test_a_what_if_decides_under_the_recorded_behaviour_and_nothing_changes(later: LaterRelease) -> None:
    log = live(TALK).log
    later.actor(blocking(ACTORS["reflex"]))
    report = whatif(log)
    assert (report.behaviour, report.changed, report.held, report.held_by_reason) == ("recorded", 0, 0, {})
    assert set(report.tallies["reflex"].behaviours) == {1}


def test_a_what_if_under_the_latest_behaviours_tells_what_an_upgrade_changes(later: LaterRelease) -> None:
    log = live(TALK).log
    later.actor(blocking(ACTORS["reflex"]))
    report = whatif(log, latest=True)
    assert (report.behaviour, report.changed, report.compared) == ("latest", 1, 3)
    assert set(report.tallies["reflex"].behaviours) == {2}
    assert report.ends["DELIBERATIVE/EXECUTED"]["REFLEX/BLOCKED"] == 1


def test_a_stretch_of_a_newer_behaviour_is_taken_from_the_record_and_the_rest_is_decided(later: LaterRelease) -> None:
    newer = blocking(ACTORS["reflex"])
    recording = live(TALK[:2])
    upgrade(recording, newer)
    recording.send(InputReceived(text="Thanks!"), Address("ann", "evening", "exchange-2"))
    recording.settle()
    report = whatif(recording.log)
    # The input, and its end, at which reflex lets go of what it keeps of forwarded ones.
    assert (report.changed, report.tallies["reflex"].held) == (0, {"behaviour_2": 2})
    assert report.tallies["reflex"].decided == 4
    assert verified(ACTORS.values(), recording.log).unverified == {"behaviour_2": 2}
