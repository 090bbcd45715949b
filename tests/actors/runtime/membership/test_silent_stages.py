"""What workers notice of stages that fall silent, and what they must not take for it; in virtual time."""

import asyncio
import contextlib
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from actors.registry import ACTORS
from actors.runtime.partition.shard import Shard
from deploy.cli.rendering.why.tree import render
from events.partition_fold import Delivery
from events.replay.explain import explain
from schemas.input_path import WITNESSES
from schemas.vocabulary.alerts import Alert
from schemas.vocabulary.swarm import OverBudget, StageFound, SwarmMeasured, WithinBudget
from tests.actors.runtime.virtual_set import (
    DEADLINE_S,
    GRACE_S,
    LEASE_S,
    PARTITIONS,
    SLACK_S,
    START_S,
    Set,
    lived,
    lost,
    without,
)
from tests.actors.runtime.waiting import until
from tests.each import each
from tests.simulated import SimulatedConnection


@each(
    ("guard", "stage"),
    [
        ("reflex", "REFLEX"),
        ("intuition", "INTUITION"),
        ("appraisal", "COHERENCE"),
        ("coherence", "COHERENCE"),
        ("breaker", "BREAKER"),
        ("arbiter", "ARBITER"),
        ("memory", "DELIBERATIVE"),
        ("router", "DELIBERATIVE"),
    ],
)
def test_an_input_that_waits_for_a_guard_nobody_runs_fails_as_soon_as_that_is_certain(guard: str, stage: str) -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without(guard)):
            first, took = await running.ask()
            assert (first.event.stage, first.event.action) == (stage, "FAILED")
            if stage == "DELIBERATIVE":
                assert first.event.reason == "deliberation_deadline", "five seconds, without a model"
            else:
                assert first.event.reason == f"no_owner: {guard}"
                assert START_S - SLACK_S < took < START_S + SLACK_S
            await until(lambda: bool(lost(running)), "certainty")
            second, took = await running.ask()
            assert (second.event.stage, second.event.reason) == (stage, f"no_owner: {guard}")
            assert took < 1.0, "certain already"
            measured = running.recorded(SwarmMeasured)[-1]
            assert measured.sci < 0.70
            async with running.worker("guard", (guard,)):
                await until(lambda: bool(running.recorded(StageFound)), "the stage to be found")
                answered, _ = await running.ask()
                assert answered.event.action == "EXECUTED"

    running = lived(body)
    assert {actor for actor, *_ in lost(running)} == {guard}
    told = [alert.status for alert in running.recorded(Alert) if alert.event == "forged_id.swarm.stage_lost"]
    assert told == ["firing", "resolved"]
    assert running.recorded(SwarmMeasured)[-1].healthy


def test_a_worker_that_is_killed_is_missed_after_its_lease_and_the_grace() -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without("arbiter")):
            with contextlib.suppress(BaseException):
                async with running.worker("guard", ("arbiter",)) as (_, connection):
                    await asyncio.sleep(20)
                    connection.kill()
            end, took = await running.ask()
            assert end.event.reason == "no_owner: arbiter"
            assert took < LEASE_S + GRACE_S + SLACK_S

    lived(body)


@each("witness", WITNESSES)
def test_a_guard_that_dies_together_with_who_would_tell_of_it_is_missed_all_the_same(witness: str) -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without("arbiter", witness)):
            with contextlib.suppress(BaseException):
                async with running.worker("guard", ("arbiter", witness)) as (_, connection):
                    await asyncio.sleep(20)
                    connection.kill()
            end, took = await running.ask()
            assert end.event.reason == "no_owner: arbiter"
            assert took < LEASE_S + GRACE_S + SLACK_S
            async with running.worker("guard again", ("arbiter", witness)):
                await until(lambda: bool(running.recorded(StageFound)), "the stage to be found")
                answered, _ = await running.ask()
                assert answered.event.action == "EXECUTED"

    running = lived(body)
    told = [alert.status for alert in running.recorded(Alert) if alert.event == "forged_id.swarm.stage_lost"]
    assert (told[0], told[-1]) == ("firing", "resolved")
    assert {actor for actor, *_ in lost(running)} == {"arbiter"}, "who is stood in for is not lost"


def test_who_hosts_an_actor_runs_it_and_those_who_stand_in_do_only_while_nobody_does() -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without("swarm")) as (deputy, _):
            await until(lambda: ("swarm", "all") in deputy.shards, "somebody to stand in")
            async with running.worker("own", ("swarm",)) as (own, _):
                await until(lambda: ("swarm", "all") not in deputy.shards, "the deputy to step back")
                assert ("swarm", "all") in own.shards
            await until(lambda: ("swarm", "all") in deputy.shards, "somebody to stand in again")

    assert lost(lived(body)) == []


def test_a_worker_that_is_stopped_as_by_a_signal_is_missed_and_found_when_it_goes_on() -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without("arbiter")), running.worker("guard", ("arbiter",)) as (_, frozen):
            await asyncio.sleep(20)
            frozen.freeze(30.0)
            end, took = await running.ask()
            assert end.event.reason == "no_owner: arbiter"
            assert took < LEASE_S + GRACE_S + SLACK_S
            await until(lambda: bool(running.recorded(StageFound)), "the stage to be found")
            answered, _ = await running.ask()
            assert answered.event.action == "EXECUTED"

    lived(body)


def test_a_partition_that_is_led_and_does_not_advance_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    work, stuck = Shard.work, ("arbiter", "00")

    def idle(shard: Shard) -> None:
        if (shard.actor.name, shard.partition) != stuck:
            work(shard)

    async def body(running: Set) -> None:
        sessions = {PARTITIONS.session_token(name): name for name in map(str, range(9))}
        async with running.worker("all", tuple(ACTORS)):
            monkeypatch.setattr(Shard, "work", idle)
            (end, took), (other, _) = await asyncio.gather(running.ask(sessions["00"]), running.ask(sessions["01"]))
            assert end.event.reason == "stalled: arbiter"
            assert took < DEADLINE_S / 2
            assert other.event.action == "EXECUTED"
            monkeypatch.setattr(Shard, "work", work)

    assert set(lost(lived(body))) == {("arbiter", "stalled", ("00",))}


def test_a_worker_is_ready_once_it_has_decided_what_came_while_nobody_did(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Shard.work

    async def body(running: Set) -> None:
        waiting = [asyncio.create_task(running.ask()) for _ in range(3)]
        await asyncio.sleep(1)
        monkeypatch.setattr(Shard, "work", lambda shard: None)
        connection, stop = SimulatedConnection(running.stream, "all"), asyncio.Event()
        worker = running.made(connection, "all", tuple(ACTORS))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(stop))
            await until(
                lambda: bool(worker.shards) and all(s.role is s.wanted_role for s in worker.shards.values()), "roles"
            )
            await asyncio.sleep(5)
            assert not worker.ready.is_set()
            assert "reflex" in worker.heartbeat().recovering
            assert worker.heartbeat().waiting["reflex"] >= 3
            monkeypatch.setattr(Shard, "work", work)
            for shard in worker.shards.values():
                shard.turn()
            await worker.ready.wait()
            assert worker.heartbeat().recovering == ()
            for each in waiting:
                await each
            stop.set()

    lived(body)


@each("what", ["one worker after the other", "all workers", "the guard's worker, soon back"])
def test_a_restart_is_no_loss(what: str) -> None:
    async def body(running: Set) -> None:
        async with running.worker("a", without("arbiter")):
            async with running.worker("b", tuple(ACTORS)):
                await asyncio.sleep(20)
            if what == "one worker after the other":
                async with running.worker("c", tuple(ACTORS)):
                    await asyncio.sleep(20)
                return
            if what == "the guard's worker, soon back":
                await asyncio.sleep(5)
                async with running.worker("d", ("arbiter",)):
                    await asyncio.sleep(20)
                return
        await asyncio.sleep(30)
        async with running.worker("e", tuple(ACTORS)):
            end, _ = await running.ask()
            assert end.event.action == "EXECUTED"

    assert lost(lived(body)) == []


def test_an_outage_of_the_broker_is_no_loss() -> None:
    async def body(running: Set) -> None:
        async with running.worker("a", without("arbiter")), running.worker("b", ("arbiter",)):
            await asyncio.sleep(20)
            running.stream.stop()
            await asyncio.sleep(40)
            running.stream.start()
            end, _ = await running.ask()
            assert end.event.action == "EXECUTED"
            await asyncio.sleep(20)

    assert lost(lived(body)) == []


def test_a_short_input_does_not_wait_for_long_ones_that_came_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = {PARTITIONS.session_token(name): name for name in map(str, range(9))}
    long = "The plan for the harbour was read out, and the people of the town had their say. " * 2_000
    take, held = Shard.on_message, list[tuple[Shard, Delivery]]()

    def hold(shard: Shard, delivery: Delivery, own: bool) -> None:
        if shard.actor.name == "reflex" and not own:
            held.append((shard, delivery))
        else:
            take(shard, delivery, own)

    async def body(running: Set) -> None:
        async with running.worker("all", tuple(ACTORS)):
            monkeypatch.setattr(Shard, "on_message", hold)
            asked = [(sessions["00"], long), (sessions["01"], "What is the capital of Peru?")]
            asking = [asyncio.create_task(running.ask(session, text)) for session, text in asked]
            await until(lambda: len(held) == len(asked), "both inputs")
            monkeypatch.setattr(Shard, "on_message", take)
            held.sort(key=lambda each: each[0].partition)
            for shard, delivery in held:
                shard.on_message(delivery, False)
            assert [len(shard.outbox) for shard, _ in held] == [0, 1], "the short one is decided, the long one in turn"
            for each in asking:
                end, _ = await each
                assert end.event.action == "EXECUTED"

    lived(body)


def test_decisions_over_their_budget_are_facts_in_the_log_that_alert_and_end() -> None:
    async def body(running: Set) -> None:
        async with running.worker("all", tuple(ACTORS)):
            for number in range(3):
                await running.ask(f"s-{number}")
            running.clock.took_ms = 0
            while not running.recorded(WithinBudget):
                await asyncio.sleep(1)
                assert len(running.recorded(OverBudget)) <= 8, "at most one an actor and window"

    running = lived(body, took_ms=25)
    over = {event.actor: event for event in running.recorded(OverBudget)}
    # Three inputs and their ends, of which reflex hears, too.
    assert (over["reflex"].count, over["reflex"].budget_ms, over["reflex"].worst_ms) == (6, 10.0, 25.0)
    assert "coherence" not in over, "its budget is 30 ms"
    told = [alert.status for alert in running.recorded(Alert) if alert.event == "forged_id.swarm.over_budget"]
    assert told.count("firing") == len(over)
    assert "resolved" in told


def test_why_tells_which_stage_an_exchange_waited_for_and_from_where() -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without("arbiter")):
            await running.ask()  # waits until it is certain
            await running.ask()  # ends as soon as the arbiter has the next word

    running = lived(body)
    for exchange in running.exchanges:
        explanation = explain(
            stored for stored in running.stream.store.messages if stored.headers.get("ce-exchange") == exchange
        )
        assert explanation is not None
        assert explanation.complete, "from the end back to the input"
        assert explanation.absent["arbiter"] == (
            "the exchange ended first: nobody served arbiter, which had the next word"
        )


def test_why_marks_a_decision_that_took_longer_than_its_budget() -> None:
    async def body(running: Set) -> None:
        async with running.worker("all", tuple(ACTORS)):
            await running.ask()

    running = lived(body, took_ms=25)
    own = [each for each in running.stream.store.messages if each.headers.get("ce-exchange") in running.exchanges]
    # In virtual time everything happens at once, and there would be nothing to show of where the time went.
    explanation = explain(
        msgspec.structs.replace(stored, time_ns=stored.time_ns + 1_000_000 * number)
        for number, stored in enumerate(own)
    )
    assert explanation is not None
    console = Console(width=200, file=StringIO())
    console.print(render(explanation))
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    assert any(line.startswith("reflex.passed") and "over 10: 25.000" in line for line in lines)
    assert any(line.startswith("coherence.passed") and "over" not in line for line in lines)
