"""What was decided under an older behaviour is decided again under that one, stretch by stretch."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from actors.registry import ACTORS
from events.partition_fold import Checkpoint, View
from events.snapshot import pack, unpack
from schemas.actor import NEWEST_BEHAVIOUR, Actor, Emission, Message
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed
from tests.actors.scenario import Address, Partition, configured
from tests.events.recording import PARTITIONS, Recording, own_cause, read_into
from tests.events.releases import LaterRelease, later
from tests.events.replaying import HERE, PARTITION, verified
from tests.events.small_actors import DIARIST, Diary, answer_by_number, write_down
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
    for view in recording.leaders.values():
        if view.actor.name == "reflex":
            view.actor = newer
            cause = f"upgrade-{view.partition}"
            event = Emission(configured(newer, newer.settings_type()))
            recording.append(view, view.spontaneous_event(own_cause(view, cause), event))
    recording.send(InputReceived(text="Thanks!"), Address("ann", "evening", "exchange-2"))
    recording.settle()
    report = whatif(recording.log)
    # The input, and its end, at which reflex lets go of what it keeps of forwarded ones.
    assert (report.changed, report.tallies["reflex"].held) == (0, {"behaviour_2": 2})
    assert report.tallies["reflex"].decided == 4
    assert verified(ACTORS.values(), recording.log).unverified == {"behaviour_2": 2}
