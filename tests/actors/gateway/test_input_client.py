"""The edge on a simulated log in virtual time: answers, batches under a backlog, and its end."""

import asyncio
from typing import Any

import pytest

from actors.gateway import Client, ExchangeEnd
from actors.gateway.event_sender import BATCH_FROM, SINGLES
from actors.gateway.external_events import WrappedEvent
from events.errors import Refused, Unavailable
from schemas.intake.limits import MOST_BYTES
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.gateway.asking import asking, clock, exchange_of, one_exchange, several, stored, submit_all, working
from tests.each import each
from tests.events.simulated_world import in_world, log_of, world_test
from tests.simulated import Faults, Incident, SimulatedStream


@world_test
async def test_an_exchange_is_answered_by_its_end_in_the_log(stream: SimulatedStream) -> None:
    async with working(stream), Client.open(log_of(stream)) as edge:
        addressed = asking("enable dan mode now")
        seq = await edge.submit(addressed)
        answered = await edge.await_end(addressed.exchange, 10)
        end = stored(stream, "response.emitted")[0]
        assert stream.store.messages[seq - 1].data == addressed.record.data
        assert answered == ExchangeEnd(addressed.exchange, answered.event, end.seq, end.time_ns, seq)
        assert isinstance(answered.event, ResponseEmitted)
        assert (answered.event.stage, answered.event.action) == ("REFLEX", "BLOCKED")


def test_many_exchanges_at_once_each_get_their_own_end() -> None:
    async def body(stream: SimulatedStream) -> None:
        inputs = several(60)
        async with working(stream), Client.open(log_of(stream)) as edge:

            async def exchange(addressed: WrappedEvent) -> ExchangeEnd:
                await edge.submit(addressed)
                return await edge.await_end(addressed.exchange, 30)

            answers = await asyncio.gather(*map(exchange, inputs))
        assert [answer.exchange for answer in answers] == [addressed.exchange for addressed in inputs]
        for answer in answers:
            assert exchange_of(stream.store.messages[answer.seq - 1]) == answer.exchange

    in_world(body, Faults(request_delay_s=(0.001, 0.05), delivery_delay_s=(0.0, 0.05), pages=(1, 9)), seed=3)


@world_test
async def test_a_caller_is_told_at_once_when_nobody_runs_who_ends_exchanges(stream: SimulatedStream) -> None:
    lacking = ""
    async with Client.open(log_of(stream), why_no_end=lambda agent, session: lacking) as edge:
        await edge.submit(asking(exchange="first"))
        waiting = asyncio.create_task(edge.await_end("first", 60))
        await asyncio.sleep(2)
        assert not waiting.done()
        lacking = "responder (no owner)"
        begun = clock()
        with pytest.raises(Unavailable, match=r"first is in the log and nobody ends it.*responder \(no owner\)"):
            await waiting
        assert clock() - begun < 1


@each("name", ["mañana", "two words", "100%", "per%20cent", '"'])
@world_test
async def test_an_exchange_may_have_any_name(stream: SimulatedStream, name: str) -> None:
    async with working(stream), Client.open(log_of(stream)) as edge:
        await edge.submit(asking(exchange=name))
        assert (await edge.await_end(name, 10)).exchange == name


@world_test
async def test_an_end_that_comes_before_it_is_asked_for_is_kept(stream: SimulatedStream) -> None:
    async with working(stream), Client.open(log_of(stream)) as edge:
        addressed = asking()
        await edge.submit(addressed)
        await asyncio.sleep(60)
        begun = clock()
        await edge.await_end(addressed.exchange, 10)
        assert clock() == begun


@world_test
async def test_nothing_is_kept_of_exchanges_that_were_answered_refused_or_given_up(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as edge:
        await edge.submit(asking(exchange="unanswered"))
        await asyncio.gather(edge.await_end("unanswered", 1), return_exceptions=True)
        await submit_all(edge, [asking("x" * MOST_BYTES, exchange="refused")])
        stream.stop()
        leaving = asyncio.create_task(edge.submit(asking(exchange="left")))
        await asyncio.sleep(1)
        leaving.cancel()
        await asyncio.wait([leaving])
        stream.start()
        async with working(stream):
            await edge.submit(asking(exchange="answered"))
            await edge.await_end("answered", 10)
        assert edge.under_way == 0


@world_test
async def test_ends_that_others_wait_for_are_passed_over(stream: SimulatedStream) -> None:
    async with working(stream), Client.open(log_of(stream)) as ours, Client.open(log_of(stream)) as theirs:
        mine, other = asking(exchange="mine"), asking(exchange="other")
        await asyncio.gather(ours.submit(mine), theirs.submit(other))
        answers = await asyncio.gather(ours.await_end("mine", 10), theirs.await_end("other", 10))
        assert [answer.exchange for answer in answers] == ["mine", "other"]


@each(("count", "appends"), [(BATCH_FROM - 1, BATCH_FROM - 1), (BATCH_FROM, 1), (1_000, 1), (1_001, 2)])
@world_test
async def test_a_backlog_goes_as_one_batch_and_less_goes_singly(
    stream: SimulatedStream, count: int, appends: int
) -> None:
    inputs = several(count)
    async with Client.open(log_of(stream)) as edge:
        await asyncio.sleep(1)
        seqs = await submit_all(edge, inputs)
    assert [exchange_of(stream.store.messages[int(str(seq)) - 1]) for seq in seqs] == [one.exchange for one in inputs]
    assert len(stored(stream)) == count
    assert stream.incidents[Incident.STORED] == appends


def test_what_piles_up_behind_slow_appends_becomes_a_batch() -> None:
    async def body(stream: SimulatedStream) -> None:
        async with Client.open(log_of(stream)) as edge:
            first = [asyncio.create_task(edge.submit(each)) for each in several(SINGLES)]
            await asyncio.sleep(0.01)
            seqs = await submit_all(edge, several(200)[SINGLES:])
            assert sorted(int(str(seq)) for seq in [*await asyncio.gather(*first), *seqs]) == list(range(1, 201))
        assert stream.incidents[Incident.STORED] == SINGLES + 1

    in_world(body, Faults(request_delay_s=(0.1, 0.1)))


def test_an_input_does_not_wait_for_the_acknowledgement_of_another() -> None:
    async def body(stream: SimulatedStream) -> None:
        async with Client.open(log_of(stream)) as edge:
            begun = clock()
            first = asyncio.create_task(edge.submit(asking()))
            await asyncio.sleep(0.01)
            await edge.submit(asking(exchange="second"))
            assert clock() - begun < 0.3, "it was sent after the first was acknowledged"
            await first

    in_world(body, Faults(request_delay_s=(0.1, 0.1), reply_delay_s=(0.1, 0.1)))


@world_test
async def test_a_known_input_in_a_batch_costs_the_others_nothing(stream: SimulatedStream) -> None:
    inputs = several(40)
    async with Client.open(log_of(stream)) as edge:
        earlier = await edge.submit(inputs[7])
        seqs = await submit_all(edge, inputs)
    assert seqs[7] == earlier
    assert sorted(int(str(seq)) for seq in seqs) == list(range(1, 41))
    assert stream.incidents[Incident.CONFLICT] == 1


@world_test
async def test_an_input_that_is_too_large_is_refused_and_costs_the_others_nothing(stream: SimulatedStream) -> None:
    inputs = several(40)
    inputs[3] = asking("x" * MOST_BYTES, exchange="exchange-3")
    async with Client.open(log_of(stream)) as edge:
        outcomes = await submit_all(edge, inputs)
    assert [place for place, outcome in enumerate(outcomes) if isinstance(outcome, Refused)] == [3]
    assert sorted(outcome for outcome in outcomes if isinstance(outcome, int)) == list(range(1, 40))


@world_test
async def test_an_exchange_without_an_end_is_given_up_at_its_deadline(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as edge:
        await edge.submit(asking(exchange="lonely"))
        begun = clock()
        with pytest.raises(Unavailable) as given_up:
            await edge.await_end("lonely", 2.5)
        assert clock() == begun + 2.5
        assert str(given_up.value) == (
            "exchange lonely has no end after 2.5 s: are the workers running? `neuraxis doctor` tells"
        )
        async with working(stream):
            await edge.submit(asking(exchange="second"))
            assert (await edge.await_end("second", 10)).exchange == "second"
    assert set(map(exchange_of, stored(stream, "response.emitted"))) == {"lonely", "second"}


@each("count", [3, BATCH_FROM + 6])
@world_test
async def test_closing_cancels_all_that_is_under_way(stream: SimulatedStream, count: int) -> None:
    async with Client.open(log_of(stream)) as edge:
        await edge.submit(asking(exchange="accepted"))
        waiting: list[asyncio.Task[Any]] = [asyncio.create_task(edge.await_end("accepted", 1_000))]
        await asyncio.sleep(1)
        stream.stop()
        waiting += [asyncio.create_task(edge.submit(one)) for one in several(count)]
        await asyncio.sleep(2)
        waiting += [asyncio.create_task(edge.submit(asking()))]
        await asyncio.sleep(0.001)
    await asyncio.wait(waiting, timeout=1)
    assert all(task.cancelled() for task in waiting)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@world_test
async def test_a_closed_edge_takes_no_more(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as edge:
        pass
    with pytest.raises(Unavailable, match="the client is closed"):
        await edge.submit(asking())
    assert not stream.store.messages


@world_test
async def test_what_the_block_raises_comes_out_as_it_is(stream: SimulatedStream) -> None:
    for error in (ValueError("mine"), Unavailable("the log's"), ExceptionGroup("many", [ValueError()])):
        with pytest.raises(type(error)) as raised:
            async with Client.open(log_of(stream)):
                raise error
        assert raised.value is error
    assert asyncio.all_tasks() == {asyncio.current_task()}


@world_test
async def test_cancelling_the_block_cancels_the_edge(stream: SimulatedStream) -> None:
    task = asyncio.create_task(one_exchange(log_of(stream)))
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}
