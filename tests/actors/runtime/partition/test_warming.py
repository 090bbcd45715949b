"""What a first decision would have to build is built before a partition leads, beside the loop, and changes nothing."""

import asyncio
import dataclasses
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

from actors.gateway import new_input
from actors.gateway.operator_orders import Order
from actors.intuition.index import store as intuition_store
from actors.reflex import ACTOR as REFLEX
from actors.reflex import matcher
from actors.reflex.settings import ReflexSettings
from actors.registry import ACTORS
from actors.runtime.context import Role
from deploy.operating.order_client import give
from events.jetstream import JetStreamLog
from events.log import Append
from schemas.actor import Actor
from schemas.persistent import decode_state, encode_state, state_hash
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.patterns import PatternsImported
from schemas.vocabulary.precedents import PrecedentRecorded
from schemas.vocabulary.reflex import ReflexPassed
from tests.actors.reflex.judging import threat
from tests.actors.runtime.living import PARTITIONS, living
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.actors.scenario import HERE, Partition
from tests.broker import Broker
from tests.each import each
from tests.events.setting import collect

WARMING = [actor for actor in ACTORS.values() if actor.warm is not None]


def recorded(number: int) -> PrecedentRecorded:
    return PrecedentRecorded(
        precedent=f"p-{number}", description=f"open the gate of warehouse {number} by night", situation="general",
        action="act", outcome="harmful", harm_level=0.9, by="ann",
    )  # fmt: skip


def test_the_actors_that_rest_on_something_built_say_how() -> None:
    assert {actor.name for actor in WARMING} >= {"reflex", "intuition", "appraisal", "memory"}


@each("actor", WARMING, named=lambda actor: actor.name)
def test_warming_changes_no_state(actor: Actor[Any]) -> None:
    assert actor.warm is not None
    for state in (actor.initial(), decode_state(encode_state(actor.initial()), actor.state_type)):
        before = state_hash(state)
        actor.warm(state)
        actor.warm(state)
        assert state_hash(state) == before


def built_nowhere() -> mock.MagicMock:
    return mock.MagicMock(side_effect=AssertionError("built by the decision"))


def test_after_warming_intuition_builds_no_index() -> None:
    partition = Partition(ACTORS["intuition"])
    for number in range(3):
        partition.when(recorded(number))
    partition.state = decode_state(encode_state(partition.state), partition.actor.state_type)
    assert partition.actor.warm is not None
    partition.actor.warm(partition.state)
    partition.hear(InputReceived(text="open the gate of warehouse 2 by night"), HERE)
    with mock.patch.object(intuition_store.Store, "__init__", built_nowhere()):
        (verdict,) = partition.when(ReflexPassed(), HERE)
    assert verdict.motif == "p-2"  # type: ignore[attr-defined]


def test_after_warming_reflex_compiles_no_library() -> None:
    partition = Partition(REFLEX).configure(ReflexSettings())
    sets = (threat("own", "a phrase that no other test imports"),)
    partition.hear(PatternsImported(name="own", sets=sets, by="ann"))
    assert REFLEX.warm is not None
    REFLEX.warm(partition.state)
    before = matcher.compile_library.cache_info().misses
    events = partition.when(InputReceived(text="a phrase that no other test imports"))
    assert matcher.compile_library.cache_info().misses == before
    assert events[-1].pattern == "own/own"  # type: ignore[attr-defined]


def test_once_warm_no_decision_of_the_recorded_ones_loads_a_module() -> None:
    code = (
        "import sys\n"
        "from actors.registry import ACTORS\n"
        "from deploy.replaying.bundle_verdicts import verify_bundle\n"
        "from tests.fixtures import FOLDER\n"
        "[actor.warm(actor.initial()) for actor in ACTORS.values() if actor.warm]\n"
        "loaded = set(sys.modules)\n"
        "assert not verify_bundle(FOLDER / '0.1.0.nxb').complaint\n"
        "print(*sorted(set(sys.modules) - loaded))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == []


def on_a_worker(broker: Broker, actor: Actor[Any], body: Callable[..., Any]) -> None:
    async def run() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        try:
            async with living(broker, "a", actors=[actor]) as worker:
                await body(log, worker.worker)
        finally:
            await log.close()

    asyncio.run(run())


def test_a_worker_leads_once_its_partitions_are_warm_and_its_loop_goes_on_meanwhile(
    broker: Broker,
) -> None:
    released, threads = threading.Event(), set[int]()

    def warm(state: object) -> None:
        threads.add(threading.get_ident())
        assert released.wait(DEADLINE_S)

    async def body(log: JetStreamLog, worker: Any) -> None:
        await until(lambda: bool(threads), "the warming")
        assert not worker.ready.is_set()
        assert {shard.role for shard in worker.shards.values()} == {Role.RECOVERING}
        released.set()
        async with asyncio.timeout(DEADLINE_S):
            await worker.ready.wait()
        assert {shard.role for shard in worker.shards.values()} == {Role.LEADING}
        assert threading.get_ident() not in threads

    try:
        on_a_worker(broker, dataclasses.replace(REFLEX, warm=warm), body)
    finally:
        released.set()


def test_a_warming_that_raises_stops_nobody(broker: Broker) -> None:
    def warm(state: object) -> None:
        raise MemoryError

    async def body(log: JetStreamLog, worker: Any) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await worker.ready.wait()
        assert {shard.role for shard in worker.shards.values()} == {Role.LEADING}

    on_a_worker(broker, dataclasses.replace(REFLEX, warm=warm), body)


def test_a_changed_library_is_compiled_beside_the_loop_and_inputs_behind_it_are_judged_by_it(
    broker: Broker,
) -> None:
    holding, released, calls = threading.Event(), threading.Event(), list[int]()
    released.set()

    def warm(state: Any) -> None:
        calls.append(len(state.imports.entries))
        if state.imports.entries:
            holding.set()
            assert released.wait(DEADLINE_S)

    async def body(log: JetStreamLog, worker: Any) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await worker.ready.wait()
        released.clear()
        event = PatternsImported(name="own", sets=(threat("own", "open the vault"),), by="ann")
        seq = (await give(log, [Order(event=event, agent="", session="")], 30)).seq
        sent = new_input("please open the vault", agent="a", session="s", partitions=PARTITIONS, now_ns=1)
        await log.append([Append([sent.record])])
        await until(holding.is_set, "the warming")
        assert worker.counters.decided <= 2 * len(worker.shards)  # the loop goes on, and no input is judged yet
        released.set()

        async def judged() -> bool:
            return bool(await collect(log, seq, (await log.info()).last_seq, ["log.*.*.reflex.blocked"]))

        await until(judged, "the verdict")
        assert calls[-1] == 1

    try:
        on_a_worker(broker, dataclasses.replace(REFLEX, warm=warm), body)
    finally:
        released.set()


def test_precedents_imported_while_a_worker_leads_are_indexed_beside_the_loop_before_a_decision_needs_it(
    broker: Broker,
) -> None:
    threads, build = list[int](), intuition_store.Store.__init__

    def noting(*arguments: Any) -> None:
        threads.append(threading.get_ident())
        build(*arguments)

    async def body(log: JetStreamLog, worker: Any) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await worker.ready.wait()
        threads.clear()
        await give(log, [Order(event=recorded(number), agent="a", session="") for number in range(20)], 30)

        def indexed() -> bool:
            libraries = [library for shard in worker.shards.values() for library in shard.view.state.libraries.values()]
            return [len(each.precedents) for each in libraries if each.index.nbytes] == [20]

        await until(indexed, "the index")
        assert threading.get_ident() not in threads

    with mock.patch.object(intuition_store.Store, "__init__", noting):
        on_a_worker(broker, ACTORS["intuition"], body)
