"""The edge in bad weather: what is accepted is stored once, whatever the broker does meanwhile."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from actors.gateway import Client
from actors.gateway.event_sender import BATCH_FROM
from actors.gateway.input_client import ACCEPT_S
from events.errors import LogError, Unavailable, UnknownOutcome
from events.log import Stored
from tests.actors.gateway.asking import asking, clock, exchange_of, one_exchange, several, stored, submit_all, working
from tests.each import each
from tests.events.simulated_world import in_world, log_of, world_test
from tests.simulated import CALM, Faults, Incident, SimulatedConnection, SimulatedLog, SimulatedStream, SimulatedTail
from tests.simulated.stream import REQUEST_DEADLINE_S


@each("seed", range(6))
@each("count", [1, BATCH_FROM + 6])
def test_inputs_sent_in_an_outage_are_stored_once_after_it(count: int, seed: int) -> None:
    async def body(stream: SimulatedStream) -> None:
        inputs = several(count)
        async with Client.open(log_of(stream)) as edge:
            stream.stop()
            asyncio.get_running_loop().call_later(20, stream.start)
            seqs = await submit_all(edge, inputs)
            assert clock() >= 20
            await asyncio.sleep(60)  # what was held or late has landed by now
        assert sorted(int(str(seq)) for seq in seqs) == list(range(1, count + 1))
        assert Counter(map(exchange_of, stored(stream))) == {one.exchange: 1 for one in inputs}
        assert {message.headers["Nats-Msg-Id"] for message in stored(stream)} == {
            one.record.headers["Nats-Msg-Id"] for one in inputs
        }

    in_world(body, seed=seed)


@each("seed", range(6))
def test_lost_and_late_requests_and_answers_store_nothing_twice(seed: int) -> None:
    async def body(stream: SimulatedStream) -> None:
        inputs = several(60)
        async with Client.open(log_of(stream)) as edge:
            stream.faults = weather
            seqs: list[int | BaseException] = []
            for some in (inputs[:30], inputs[30:40], inputs[40:]):
                seqs += await submit_all(edge, some)
            stream.faults = CALM
            await asyncio.sleep(60)
        assert [exchange_of(stream.store.messages[int(str(seq)) - 1]) for seq in seqs] == [
            one.exchange for one in inputs
        ]
        assert len(stored(stream)) == len(inputs)
        assert stream.incidents[Incident.REPLY_LOST]
        assert stream.incidents[Incident.DUPLICATE]

    weather = Faults(lost_reply=0.25, lost_request=0.1, late_request=0.1, busy=0.1, request_delay_s=(0.0, 0.1))
    in_world(body, seed=seed)


@each(
    ("weather", "error", "kept"),
    [
        (Faults(busy=1.0), Unavailable, 0),
        (Faults(lost_request=1.0), UnknownOutcome, 0),
        (Faults(lost_reply=1.0), UnknownOutcome, 1),
    ],
    named=["busy", "requests_lost", "answers_lost"],
)
@world_test
async def test_it_gives_up_after_its_deadline_and_says_whether_the_input_may_be_stored(
    stream: SimulatedStream, weather: Faults, error: type[LogError], kept: int
) -> None:
    async with Client.open(log_of(stream)) as edge:
        stream.faults = weather
        with pytest.raises(error):
            await edge.submit(asking())
        assert ACCEPT_S <= clock() <= ACCEPT_S + 2 * REQUEST_DEADLINE_S
    assert len(stored(stream)) == kept


@world_test
async def test_it_goes_on_after_it_gave_an_input_up(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as edge:
        stream.faults = Faults(busy=1.0)
        assert all(isinstance(outcome, Unavailable) for outcome in await submit_all(edge, several(30)))
        stream.faults = CALM
        assert await edge.submit(asking()) == 1


@world_test
async def test_an_answer_survives_an_outage_of_the_broker(stream: SimulatedStream) -> None:
    async with working(stream), Client.open(log_of(stream)) as edge:
        await edge.submit(asking(exchange="first"))
        stream.stop()
        asyncio.get_running_loop().call_later(7, stream.start)
        assert (await edge.await_end("first", 60)).exchange == "first"
        assert clock() >= 7


@world_test
async def test_a_caller_that_goes_away_leaves_the_others_alone(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as edge:
        stream.stop()
        asyncio.get_running_loop().call_later(3, stream.start)
        tasks = [asyncio.create_task(edge.submit(one)) for one in several(30)]
        await asyncio.sleep(1)
        tasks[4].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [place for place, outcome in enumerate(outcomes) if not isinstance(outcome, int)] == [4]
        assert isinstance(outcomes[4], asyncio.CancelledError)


class ClosedTail(SimulatedTail):
    """A reading whose connection is closed for good after a while."""

    async def next(self) -> Sequence[Stored]:
        await asyncio.sleep(3)
        raise Unavailable("the connection is closed")


class ClosingLog(SimulatedLog):
    """A log on such a connection."""

    async def tail(self, filters: Sequence[str], after: int, *, on_demand: bool = False) -> SimulatedTail:
        return ClosedTail(self.connection, tuple(filters), after)


@world_test
async def test_the_end_of_its_own_reading_ends_the_block_with_the_logs_error(stream: SimulatedStream) -> None:
    with pytest.raises(Unavailable, match="the connection is closed"):
        await one_exchange(ClosingLog(SimulatedConnection(stream)))
    assert clock() == 3
    assert asyncio.all_tasks() == {asyncio.current_task()}


@world_test
async def test_it_does_not_open_without_a_broker(stream: SimulatedStream) -> None:
    stream.stop()
    with pytest.raises(Unavailable):
        async with Client.open(log_of(stream)):
            pytest.fail("it opened")
