"""What a client waits for: ends of exchanges that are sent again, answers to orders, and less of it in a hurry."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial

import msgspec
import pytest

from actors.gateway import (
    AnswerPiece,
    Client,
    ExchangeEnd,
    InvalidInput,
    NoEnd,
    Order,
    PassedInput,
    Receipt,
    UnreadableEnd,
    answer_of,
    is_answer_to,
)
from events.log import Append, Record
from schemas.catalogue import entry_of
from schemas.event import Event, encode_event, topic_of
from schemas.subjects import stored_subject, topic_filter
from schemas.vocabulary.arbiter import ArbiterPassed
from schemas.vocabulary.breaker import BreakerReset
from schemas.vocabulary.gateway import AnswerChoice
from schemas.vocabulary.loops import TickObserved
from schemas.vocabulary.operator import BreakerResetOrdered
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.gateway.asking import PARTITIONS, asking, clock, exchange_of, stored, working
from tests.each import each
from tests.events.simulated_world import log_of, world_test
from tests.simulated import SimulatedStream

RESET = Order(event=BreakerResetOrdered(by="ann", why="reviewed"), agent="ann", session="morning")
ANSWERS = [topic_filter("forged_id.breaker.reset")]


@world_test
async def test_an_input_that_is_sent_again_after_its_end_has_that_end_and_begins_nothing_new(
    stream: SimulatedStream,
) -> None:
    async with working(stream):
        async with Client.open(log_of(stream)) as before:
            first = await before.exchange(asking(exchange="e1"), 10)
            again = await before.exchange(asking(exchange="e1"), 10)
        async with Client.open(log_of(stream)) as after:
            begun = clock()
            anew = await after.exchange(asking(exchange="e1"), 10)
            assert clock() - begun < 1
        assert first == again == anew
        assert len(stored(stream)) == len(stored(stream, "response.emitted")) == 1


@world_test
async def test_a_forwarded_input_that_is_sent_again_after_its_end_is_not_let_pass_again(
    stream: SimulatedStream,
) -> None:
    async with working(stream):
        async with Client.open(log_of(stream)) as before:
            await before.submit(asking(exchange="e1", purpose="forward"))
            passed = await before.await_passed("e1", 10)
            assert isinstance(passed, PassedInput)
            async with Client.open(log_of(stream)) as meanwhile:
                await meanwhile.submit(asking(exchange="e1", purpose="forward"))
                assert await meanwhile.await_passed("e1", 10) == passed
            await before.settle(passed, answer_of([AnswerChoice(text="Lima.")]))
            end = await before.await_end("e1", 10)
        async with Client.open(log_of(stream)) as after:
            await after.submit(asking(exchange="e1", purpose="forward"))
            assert await after.await_passed("e1", 10) == end
            assert after.under_way == 0


@world_test
async def test_several_may_wait_for_one_exchange_and_one_of_them_may_leave(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as client:
        waits = [asyncio.create_task(client.exchange(asking(exchange="e1"), 30)) for _ in range(3)]
        await asyncio.sleep(1)
        waits[0].cancel()
        async with working(stream):
            answers = await asyncio.gather(*waits[1:])
        assert answers[0] == answers[1]
        assert client.under_way == 0


@each("version", ["2", "x"])
@each("kind", [ResponseEmitted, ArbiterPassed])
@world_test
async def test_an_end_that_cannot_be_read_is_told_at_once_and_not_as_one_that_did_not_come(
    stream: SimulatedStream, kind: type[Event], version: str
) -> None:
    """A later release may write it: workers are upgraded before gateways."""
    topic, begun = topic_of(kind), clock()
    subject = stored_subject(topic, PARTITIONS.agent_token("ann"), PARTITIONS.session_token("morning"))
    headers = {"ce-id": "later", "ce-type": topic, "ce-exchange": "e1", "ce-dataversion": version}
    record = Record(subject, headers, encode_event(entry_of(kind).sample))
    async with Client.open(log_of(stream)) as client:
        await client.submit(asking(exchange="e1", purpose="forward"))
        wait = asyncio.create_task(client.await_passed("e1", 30))
        await asyncio.sleep(1)
        await log_of(stream).append([Append((record,))])
        with pytest.raises(UnreadableEnd, match=r"^exchange e1 .*\(sequence 2\), by an event that .* cannot read"):
            await wait
        assert clock() - begun < 5
        assert client.under_way == 0
    async with Client.open(log_of(stream)) as after:
        await after.submit(asking(exchange="e1", purpose="forward"))
        with pytest.raises(UnreadableEnd):
            await after.await_passed("e1", 30)
        assert clock() - begun < 10


@world_test
async def test_an_answer_to_an_order_that_cannot_be_read_is_told_at_once(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as client:
        order, begun = await client.order([RESET]), clock()
        topic = "forged_id.breaker.reset"
        subject = stored_subject(topic, PARTITIONS.agent_token("ann"), PARTITIONS.session_token("morning"))
        headers = {"ce-id": "later", "ce-type": topic, "ce-causeseq": str(order.seq), "ce-dataversion": "2"}
        data = encode_event(entry_of(BreakerReset).sample)
        others = Record(subject, headers | {"ce-id": "other", "ce-causeseq": str(order.seq - 1)}, data)
        await log_of(stream).append([Append((others, Record(subject, headers, data)))])
        with pytest.raises(UnreadableEnd, match=r"^the order was answered \(sequence 3\), .* cannot read"):
            await client.first(ANSWERS, order.seq, partial(is_answer_to, order.id), what="the order", within=30)
        assert clock() - begun < 5


@world_test
async def test_what_was_never_sent_here_cannot_be_waited_for(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as client:
        with pytest.raises(LookupError, match="exchange e1 was not submitted by this client"):
            await client.await_end("e1", 1)


@world_test
async def test_an_answer_to_an_order_is_found_whether_it_came_before_the_wait_or_comes_after_an_outage(
    stream: SimulatedStream,
) -> None:
    async with Client.open(log_of(stream)) as client, working(stream):
        order = await client.order([RESET])
        await asyncio.sleep(2)
        assert stored(stream, "breaker.reset")
        found = await client.first(ANSWERS, order.seq, partial(is_answer_to, order.id), what="it", within=1)
        assert isinstance(found.message.event, BreakerReset)
        other = await client.order([RESET])
        stream.stop()
        asyncio.get_running_loop().call_later(7, stream.start)
        later = await client.first(ANSWERS, order.seq, partial(is_answer_to, other.id), what="it", within=60)
        assert later.stored.seq > found.stored.seq
    assert asyncio.all_tasks() == {asyncio.current_task()}


@world_test
async def test_a_wait_of_no_number_of_seconds_is_refused(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as client:
        with pytest.raises(InvalidInput, match=r"^a wait is nan seconds: give it a number of them$"):
            await client.first(ANSWERS, 0, lambda _: False, what="it", within=float("nan"))


@world_test
async def test_an_answer_that_does_not_come_is_told_at_the_deadline_and_nothing_is_left_of_the_wait(
    stream: SimulatedStream,
) -> None:
    async with Client.open(log_of(stream)) as client:
        order = await client.order([RESET])
        tasks, begun = len(asyncio.all_tasks()), clock()
        with pytest.raises(NoEnd, match=r"^the order has no end after 2\.5 s"):
            await client.first(ANSWERS, order.seq, lambda _: False, what="the order", within=2.5)
        assert clock() == begun + 2.5
        assert len(asyncio.all_tasks()) == tasks
        with pytest.raises(ZeroDivisionError):  # what looks may end the wait
            await client.first([topic_filter("forged_id.operator.>")], 0, lambda _: bool(1 / 0), what="it", within=2.5)
        assert len(asyncio.all_tasks()) == tasks


@world_test
async def test_a_wait_that_is_under_way_when_its_client_is_closed_is_cancelled(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as client:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waits: list[asyncio.Task[object]] = [
            asyncio.create_task(client.first(ANSWERS, 0, lambda _: False, what="it", within=600)),
            asyncio.create_task(client.wait(never, what="it", within=600)),
        ]
        await asyncio.sleep(1)
    await asyncio.wait(waits, timeout=1)
    assert all(each.cancelled() for each in waits)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@world_test
async def test_every_wait_ends_soon_when_the_process_is_to_stop_and_says_so(stream: SimulatedStream) -> None:
    async with Client.open(log_of(stream)) as client:
        await client.submit(asking(exchange="e1"))
        await client.submit(asking(exchange="e2", purpose="forward"))
        order = await client.order([RESET])
        waits: list[asyncio.Task[object]] = [
            asyncio.create_task(client.await_end("e1", 600)),
            asyncio.create_task(client.await_passed("e2", 600)),
            asyncio.create_task(
                client.first(ANSWERS, order.seq, partial(is_answer_to, order.id), what="it", within=600)
            ),
            asyncio.create_task(client.ask("Where?", agent="ann", session="s", within=600)),
        ]
        await asyncio.sleep(1)
        client.shorten_waits(3)
        begun = clock()
        waits.append(asyncio.create_task(client.ask("When?", agent="ann", session="s", within=600)))
        said = await asyncio.gather(*waits, return_exceptions=True)
        assert clock() - begun <= 3.5
        assert all(isinstance(each, NoEnd) and "this process stops" in str(each) for each in said)
        assert client.under_way == 0


@world_test
async def test_what_is_reported_twice_under_a_key_is_stored_once(stream: SimulatedStream) -> None:
    tick = TickObserved(arousal=0.5)
    async with Client.open(log_of(stream)) as client:
        first = await client.report(tick, agent="ann", key="k")
        assert await client.report(tick, agent="ann", key="k") == first == Receipt(first.id, 1)
        assert (await client.report(tick, agent="ann")).seq == 2


@world_test
async def test_whoever_asks_is_given_what_a_model_says_and_the_inbox_is_closed_when_they_leave(
    stream: SimulatedStream,
) -> None:
    takers: list[Callable[[bytes], None]] = []

    @contextlib.asynccontextmanager
    async def open_inbox(take: Callable[[bytes], None]) -> AsyncIterator[str]:
        takers.append(take)
        try:
            yield "_INBOX.test"
        finally:
            takers.remove(take)

    said: list[AnswerPiece] = []
    piece = AnswerPiece(request="r", attempt=1, index=0, text="Lima", done=False)
    async with Client.open(log_of(stream), open_inbox=open_inbox) as client:
        asked = asyncio.create_task(client.ask("Where?", agent="ann", session="s", take=said.append))
        await asyncio.sleep(1)
        assert b"_INBOX.test" in stored(stream)[0].data
        takers[0](msgspec.json.encode(piece))
        takers[0](b"no piece")
        async with working(stream):
            assert isinstance(answered := await asked, ExchangeEnd)
            assert answered.exchange == exchange_of(stored(stream)[0])
        assert (said, takers) == ([piece], [])
        leaving = asyncio.create_task(client.ask("When?", agent="ann", session="s", take=said.append))
        await asyncio.sleep(1)
        leaving.cancel()
        await asyncio.wait((leaving,))
        assert (takers, client.under_way) == ([], 0)
