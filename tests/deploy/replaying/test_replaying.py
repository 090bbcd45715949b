"""A mere replay decides nothing, and yet folds what led to nothing, as a living actor did."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.registry import ACTORS
from events.log import Stored
from events.partition_fold import View
from events.replay.replay import Replay, Report
from events.replay.run_replay import END, Point, run_replay
from events.replay.sources import LedgerSource
from events.replay.states.bisecting import first_holding
from events.replay.states.conditions import condition_of
from events.replay.states.diffing import changed_between
from events.replay.states.partition_state import state_at
from schemas.actor import Actor, Emission, Message
from schemas.event import Event
from schemas.persistent import state_hash
from schemas.vocabulary.gateway import InputReceived
from tests.actors.scenario import Address
from tests.each import each
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS, Recording, part_of, read_into
from tests.events.whatif.asking import live
from tests.fixtures import FOLDER

TALK = [("noon", "Hello!"), ("noon", "What is the capital of Peru?"), ("morning", "Thanks!"), ("noon", "Bye.")]
NEWEST = max(FOLDER.glob("*.nxb"))


class Decided(Exception):
    """A decider was called."""


def mute(actor: Actor[Any]) -> Actor[Any]:
    """Return an actor whose decider must not be called."""

    def decide(state: Any, message: Message) -> Iterable[Event | Emission]:
        raise Decided(f"{actor.name} decided sequence {message.seq}")

    return replace(actor, decide=decide)


MUTE = [mute(actor) for actor in ACTORS.values()]


@contextmanager
def opened(path: Path) -> Iterator[LedgerSource]:
    source = LedgerSource(path)
    try:
        yield source
    finally:
        source.close()


def folded(source: LedgerSource, upto: Point = END, actors: Sequence[Actor[Any]] = MUTE, **more: Any) -> Report:
    return asyncio.run(run_replay(source, Replay(actors, source.partitions, **more), upto, progress=lambda _: None))


def folded_by_deciding(log: Sequence[Stored], recording: Recording) -> dict[str, str]:
    """Return the state hashes of partitions that decide what waits, and fold it as long as it leads to nothing."""
    states = {}
    for name, partition in recording.leaders:
        view = View(ACTORS[name], partition, PARTITIONS)
        read_into(view, part_of(log, view.actor, partition, PARTITIONS))
        while view.waiting and view.fold_silent():
            pass
        states[f"{name}/{partition}"] = state_hash(view.state)
    return states


def test_a_replay_calls_no_decider_and_ends_in_the_states_of_the_living(tmp_path: Path) -> None:
    recording = live(TALK)
    write(tmp_path / "log.db", recording.log, partitions=PARTITIONS)
    with opened(tmp_path / "log.db") as source:
        hashes = folded(source).state_hashes
    living = {f"{name}/{part}": state_hash(view.state) for (name, part), view in recording.leaders.items()}
    assert hashes == {unit: living[unit] for unit in hashes}
    assert len(hashes) > len(ACTORS)


def test_a_replay_up_to_any_point_folds_what_led_to_nothing_and_leaves_what_was_decided_behind_it(
    tmp_path: Path,
) -> None:
    recording = live(TALK[:2])
    write(tmp_path / "log.db", recording.log, partitions=PARTITIONS)
    with opened(tmp_path / "log.db") as source:
        for seq in range(1, len(recording.log), 7):
            hashes = folded(source, Point(seq=seq)).state_hashes
            decided = folded_by_deciding(recording.log[:seq], recording)
            assert hashes == {unit: decided[unit] for unit in hashes}, f"up to {seq}"


def test_a_point_in_time_is_looked_behind_as_a_sequence_is(tmp_path: Path) -> None:
    log = live(TALK[:2]).log
    write(tmp_path / "log.db", log, partitions=PARTITIONS)
    with opened(tmp_path / "log.db") as source:
        for seq in (40, 60):
            assert folded(source, Point(time_ns=log[seq - 1].time_ns)) == folded(source, Point(seq=seq))


def test_the_states_of_a_verification_are_those_of_a_replay() -> None:
    with opened(NEWEST) as source:
        for upto in (END, Point(seq=77), Point(seq=130)):
            verified = folded(source, upto, tuple(ACTORS.values()), verify=True)
            assert folded(source, upto).state_hashes == verified.state_hashes


def late(texts: int) -> Recording:
    """Record a set whose reflex stands still for the whole talk, and catches up at its end."""
    recording = Recording([ACTORS[name] for name in ("reflex", "intuition", "clock")])
    recording.configure()
    stood = [key for key in recording.leaders if key[0] == "reflex"]
    for number in range(texts):
        recording.send(InputReceived(text="Hello!"), Address("ann", f"s{number % 5}", f"exchange-{number}"))
        for key in recording.leaders.keys() - set(stood):
            recording.work(key)
    recording.settle()
    return recording


@pytest.mark.parametrize("backlog", [20, 100, 1_000_000])
def test_what_an_actor_decided_long_after_is_folded_at_its_place_at_any_backlog(tmp_path: Path, backlog: int) -> None:
    recording = late(60)
    write(tmp_path / "log.db", recording.log, partitions=PARTITIONS)
    with opened(tmp_path / "log.db") as source:
        hashes = folded(source, END, list(map(mute, recording.actors)), backlog=backlog).state_hashes
    living = {f"{name}/{part}": state_hash(view.state) for (name, part), view in recording.leaders.items()}
    assert hashes == {unit: living[unit] for unit in hashes}


@pytest.mark.parametrize("backlog", [20, 1_000_000])
def test_settings_of_a_leader_that_was_far_behind_are_verified_at_its_place(tmp_path: Path, backlog: int) -> None:
    recording = Recording([ACTORS[name] for name in ("swarm", "clock")])
    recording.configure()
    swarm = next(key for key in recording.leaders if key[0] == "swarm")
    for number in range(60):
        recording.send(InputReceived(text="Hello!"), Address("ann", f"s{number % 5}", f"exchange-{number}"))
        if number == 30:
            recording.work(swarm)  # it has read half of what it will have to decide
    recording.configure()
    recording.settle()
    write(tmp_path / "log.db", recording.log, partitions=PARTITIONS)
    with opened(tmp_path / "log.db") as source:
        report = folded(source, END, recording.actors, verify=True, backlog=backlog)
    assert report.clean
    assert report.coverage["swarm"].unverified == {}
    assert report.coverage["swarm"].facts == 2
    living = {f"{name}/{part}": state_hash(view.state) for (name, part), view in recording.leaders.items()}
    assert report.state_hashes == {unit: living[unit] for unit in report.state_hashes}


def test_what_leads_to_nothing_does_not_keep_a_replay_s_memory(tmp_path: Path) -> None:
    recording = late(200)
    write(tmp_path / "log.db", recording.log, partitions=PARTITIONS)
    replay = Replay([mute(ACTORS["clock"])], PARTITIONS, backlog=50)
    most = 0

    def look(_: int) -> None:
        nonlocal most
        most = max([most, *(len(view.waiting) for view in replay.views.values())])

    with opened(tmp_path / "log.db") as source:
        source_history = source.history

        async def one_by_one(filters: Sequence[str], after: int, upto: int) -> Any:
            async for batch in source_history(filters, after, upto):
                for stored in batch:
                    yield [stored]

        source.history = one_by_one  # type: ignore[method-assign]
        asyncio.run(run_replay(source, replay, progress=look))
    assert 0 < most <= 50


@each("ask", [
    lambda source, actor: state_at(source, actor, "00", "ann", Point(seq=77), lambda _: None),
    lambda source, actor: changed_between(source, [actor], None, (Point(seq=50), Point(seq=77)), lambda _: None),
    lambda source, actor: first_holding(
        source, actor, "00", "ann", condition_of("nowhere exists"), Point(seq=77), lambda _: None
    ),
], named=["state", "diff", "bisect"])  # fmt: skip
def test_looking_at_states_calls_no_decider(ask: Callable[[LedgerSource, Actor[Any]], Any]) -> None:
    with opened(NEWEST) as source:
        for actor in MUTE:
            asyncio.run(ask(source, actor))
