"""The real effector: requests in a real broker's log, real micro services, answers in the log."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.micro.request import Request

from actors.delegate import EFFECTOR, DelegateSettings
from actors.delegate.discovery import find_specialist, subject_of
from actors.delegate.specialist_call import NoAnswer, checked_answer
from actors.runtime.clock import Clock, SystemClock
from actors.runtime.effectors.effector_worker import EffectorWorker
from actors.runtime.effectors.spec import EffectorContext
from actors.runtime.envelopes import to_record
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from events.jetstream.connection import Reply
from events.log import Append, Record
from events.make_decision import Cause, address_events
from schemas.actor import Message
from schemas.event import Event
from schemas.subjects import Partitions
from schemas.vocabulary.act import ActDelegationRequested, Action
from schemas.vocabulary.delegate import DelegateAnswered, DelegateFailed
from tests.actors.delegate.specialists import Handler, answering, specialist
from tests.actors.on_broker import log_test, on_broker
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.broker import Broker
from tests.each import each
from tests.events.setting import collect

PATIENT = DelegateSettings(discovery_ms=int(DEADLINE_S * 1000))
"""For a specialist that is there, however busy the machine is."""

IMPATIENT = DelegateSettings(discovery_ms=200)
"""For one that will not be found."""

STORED_NS = 1_750_000_000_000_000_000


def asked(name: str = "oracle", query: str = "What is 7 times 6?") -> ActDelegationRequested:
    action = Action(index=3, skill="delegate", query=query, specialist=name)
    return ActDelegationRequested(iteration=0, action=action, timeout_ms=int(DEADLINE_S * 1000))


def request(event: Event, number: int = 0) -> Record:
    cause = Cause(f"cause-{number}", 0, 0, "ann", "s", f"exchange-{number}", "_", "_")
    [decided] = address_events("act", cause, (event,), Partitions())
    return to_record(decided, "test", "", STORED_NS, 0)


@contextlib.asynccontextmanager
async def running(log: JetStreamLog, settings: DelegateSettings) -> AsyncIterator[None]:
    around = EffectorContext(log.connection, log.connection.publish, {}, SystemClock())
    stop = asyncio.Event()
    async with asyncio.timeout(90), EFFECTOR.open(settings, around) as effector, asyncio.TaskGroup() as tasks:
        tasks.create_task(EffectorWorker(log, effector, name="w", stop_deadline=0.1).run(stop))
        try:
            yield
        finally:
            stop.set()


async def answers_of(log: JetStreamLog, *events: Event, settings: DelegateSettings = PATIENT) -> list[Event]:
    """Store requests, and return what answers each."""
    requests = [request(event, number) for number, event in enumerate(events)]

    async def there() -> bool:
        return len(await collect(log, filters=("log.*.*.delegate.>",))) >= len(events)

    async with running(log, settings):
        await log.append([Append(requests)])
        await until(there, "the answers of delegate")
    found: dict[str, Event] = {}
    for recorded in map(decode, await collect(log, filters=("log.*.*.delegate.>",))):
        assert isinstance(recorded, Recorded)
        answer = recorded.message.event
        assert isinstance(answer, DelegateAnswered | DelegateFailed)
        assert answer.request not in found
        assert answer.index == 3
        assert requests[int(recorded.message.exchange.removeprefix("exchange-"))].headers["ce-id"] == answer.request
        found[answer.request] = answer
    return [found[each.headers["ce-id"]] for each in requests]


def failures(
    broker: Broker, *events: Event, by: Handler | None = None, settings: DelegateSettings = PATIENT, **service: Any
) -> list[tuple[str, str]]:
    """Return (reason, error) of requests that fail, with one specialist there, or none."""
    seen: list[Event] = []

    async def body(log: JetStreamLog) -> None:
        async with specialist(broker.url, by, **service) if by else contextlib.nullcontext():
            seen.extend(await answers_of(log, *events, settings=settings))

    on_broker(broker, body)
    failed = [each for each in seen if isinstance(each, DelegateFailed)]
    assert len(failed) == len(events), seen
    assert [each.failed_seq for each in failed] == list(range(1, len(events) + 1))
    assert {each.failed_topic for each in failed} == {"forged_id.act.delegation_requested"}
    return [(each.reason, each.error) for each in failed]


async def performed(log: JetStreamLog, event: Event, clock: Clock, settings: DelegateSettings) -> DelegateFailed:
    """Return how a request that was stored at ``STORED_NS`` fails by a clock of one's own."""
    around = EffectorContext(log.connection, log.connection.publish, {}, clock)
    async with EFFECTOR.open(settings, around) as effector:
        [failed] = await effector.handle(Message(event, seq=1, id="r", time_ns=STORED_NS))
    assert isinstance(failed, DelegateFailed)
    return failed


def test_a_specialist_is_found_by_its_name_and_its_answer_recorded(broker: Broker) -> None:
    """mode-router: Innate Skills, delegate external specialist consultation."""
    heard: list[tuple[dict[str, Any], dict[str, str]]] = []

    async def think(question: Request) -> None:
        heard.append((json.loads(question.data), question.headers or {}))
        await question.respond(b'{"answer": "42", "certain": true}')

    async def body(log: JetStreamLog) -> None:
        async with specialist(broker.url, think):
            [answer] = await answers_of(log, asked())
        assert isinstance(answer, DelegateAnswered)
        assert (answer.specialist, answer.answer) == ("oracle", "42")
        [(question, headers)] = heard
        assert (question["query"], question["request"]) == ("What is 7 times 6?", answer.request)
        assert 0 < question["timeout_ms"] <= DEADLINE_S * 1000
        assert headers["Idempotency-Key"] == answer.request

    on_broker(broker, body)


def test_without_a_specialist_of_that_name_the_request_fails(broker: Broker) -> None:
    """mode-router: Innate Skills, delegate empty registry by default."""
    assert failures(broker, asked("nobody"), settings=IMPATIENT) == [("no_specialist", "")]


def test_a_name_that_is_no_name_is_never_part_of_a_subject(broker: Broker) -> None:
    names = ("", ">", "*", "oracle.x", "or acle", "x" * 65, "oracle\r\nPUB x 0")
    found = failures(broker, *map(asked, names), by=answering(b'{"answer": "42"}'), settings=IMPATIENT)
    assert dict(zip(names, found, strict=True)) == dict.fromkeys(names, ("no_specialist", ""))


@pytest.mark.parametrize(
    "service",
    [
        {"metadata": {}},
        {"metadata": {"neuraxis.specialist": "0"}},
        {"subject": "log.00.00.breaker.reset"},
        {"subject": "elsewhere.oracle"},
    ],
    ids=["not_registered", "withdrawn", "on_the_log", "elsewhere"],
)
def test_a_service_that_is_no_specialist_is_not_asked(broker: Broker, service: dict[str, Any]) -> None:
    async def never(question: Request) -> None:
        raise AssertionError("asked")

    assert failures(broker, asked(), by=never, settings=IMPATIENT, **service) == [("no_specialist", "")]


def test_a_specialist_that_refuses_is_a_failure_with_its_code_and_not_its_words(broker: Broker) -> None:
    async def refuse(question: Request) -> None:
        await question.respond_error("422", "I will not repeat: What is 7 times 6?")

    assert failures(broker, asked(), by=refuse) == [("specialist_refused", "ServiceError 422")]


BAD_ANSWERS: dict[bytes, tuple[str, str]] = {
    b'{"error": "no such table"}': ("specialist_refused", "ErrorInAnswer"),
    b'{"answer": "42", "error": {"code": 500}}': ("specialist_refused", "ErrorInAnswer"),
    b"42": ("answer_invalid", "NotTheForm"),
    b'{"answer": 42}': ("answer_invalid", "NotTheForm"),
    b"\xff": ("answer_invalid", "NotTheForm"),
    b'{"answer": " "}': ("answer_invalid", "EmptyAnswer"),
    b"{}": ("answer_invalid", "EmptyAnswer"),
    json.dumps({"answer": "x" * 16_384}).encode(): ("answer_invalid", "AnswerTooLarge"),
}


def test_an_answer_that_tells_of_an_error_or_is_of_bad_form_or_size_is_refused(broker: Broker) -> None:
    bodies = list(BAD_ANSWERS)

    async def answer(question: Request) -> None:
        await question.respond(bodies[int(json.loads(question.data)["query"])])

    queries = (asked(query=str(number)) for number in range(len(bodies)))
    assert dict(zip(bodies, failures(broker, *queries, by=answer), strict=True)) == BAD_ANSWERS


def test_a_specialist_that_says_nothing_is_out_of_time(broker: Broker) -> None:
    """All but a moment of the request's time is over once it is found: however long that took on this machine."""

    class OverSoon(SystemClock):
        passed_s = 0.0

        def now_ns(self) -> int:
            now_ns, self.passed_s = STORED_NS + int(self.passed_s * 1e9), DEADLINE_S - 0.2
            return now_ns

    async def ponder(question: Request) -> None:
        return

    async def body(log: JetStreamLog) -> None:
        async with specialist(broker.url, ponder):
            failed = await performed(log, asked(), OverSoon(), PATIENT)
        assert (failed.reason, failed.error) == ("effect_timed_out", "UnknownOutcome")

    on_broker(broker, body)


def test_a_request_that_waited_past_its_time_asks_nobody(broker: Broker) -> None:
    class Later(SystemClock):
        def now_ns(self) -> int:
            return STORED_NS + 3_600_000_000_000

    async def never(question: Request) -> None:
        raise AssertionError("asked")

    async def body(log: JetStreamLog) -> None:
        async with specialist(broker.url, never):
            failed = await performed(log, asked(), Later(), IMPATIENT)
        assert (failed.reason, failed.error) == ("effect_timed_out", "RequestExpired")

    on_broker(broker, body)


@log_test
async def test_an_impostor_of_the_name_does_not_hide_the_specialist(log: JetStreamLog, broker: Broker) -> None:
    silent = answering(b'{"answer": "impostor"}')
    async with specialist(broker.url, silent, metadata={}), specialist(broker.url, silent, subject="specialist.x"):
        assert await find_specialist(log.connection, "oracle", 10.0) == "specialist.x"


@given(st.binary(max_size=80))
def test_no_answer_is_too_odd_to_be_judged(data: bytes) -> None:
    assert subject_of(data, "oracle") is None
    with contextlib.suppress(NoAnswer):
        assert checked_answer(Reply({}, data), 16_384)


@each(("code", "error"), [("500", "ServiceError 500"), ("please\nlog this", "ServiceError")])
def test_a_service_s_code_is_kept_where_it_is_one(code: str, error: str) -> None:
    with pytest.raises(NoAnswer) as refused:
        checked_answer(Reply({"Nats-Service-Error-Code": code}, b""), 16_384)
    assert (refused.value.reason, refused.value.error) == ("specialist_refused", error)
