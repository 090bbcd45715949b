"""An effector's shell: exactly once in the log, at least once towards the outside, whatever dies in between."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from actors.runtime.effectors import effector_worker
from events.errors import LogError
from events.jetstream import JetStreamLog
from events.jetstream.reading import durable_pull as durable
from events.jetstream.reading import pull_protocol as pulling
from events.log import Append, Record
from schemas.actor import Emission, Message, Scope
from schemas.catalogue import CATALOGUE
from schemas.effectors.contract import Effector
from schemas.event import Event, Failed
from schemas.identity import event_id
from schemas.permissions import durable_name
from schemas.vocabulary.reflex import ReflexPassed
from tests.actors.on_broker import log_test, on_broker
from tests.actors.runtime.effectors.echo import EchoAnswered, EchoAsked, EchoFailed, ask, echo, effector, question, song
from tests.actors.runtime.effectors.echo_worker import ACK_WAIT, leave_trace
from tests.actors.runtime.effectors.echoing import (
    all_acknowledged,
    answered,
    answers,
    once_each,
    outcome,
    running,
    stored,
)
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.broker import Broker

pytestmark = pytest.mark.usefixtures("echo_vocabulary")


@log_test
async def test_an_answer_names_its_request_and_inherits_its_address(log: JetStreamLog, broker: Broker) -> None:
    async with running(broker, effector()):
        await ask(log, 1)
        [answer] = await answered(log, 1)
    request = event_id("question-1", "asker", 0)
    assert answer.message.event == EchoAnswered(text="hello")
    assert answer.envelope.cause == request
    assert answer.envelope.cause_seq == 1
    assert answer.envelope.id == event_id(request, "echo", 0)
    assert answer.stored.headers["Nats-Msg-Id"] == f"{answer.envelope.id}.1"
    assert (answer.message.agent, answer.message.session, answer.message.exchange) == ("ann", "s1", "exchange-1")
    assert int(answer.stored.headers["nx-latency-us"]) >= 0


def test_the_events_of_one_answer_are_stored_together(broker: Broker) -> None:
    async def twice(message: Message) -> Sequence[Event | Emission]:
        return [EchoAnswered(text="a"), Emission(EchoAnswered(text="b"), exchange="another")]

    async def body(log: JetStreamLog) -> None:
        async with running(broker, effector(twice)):
            await ask(log, 1)
            found = await answered(log, 2)
        assert [(each.envelope.index, each.envelope.count) for each in found] == [(0, 2), (1, 2)]
        assert found[1].stored.seq == found[0].stored.seq + 1
        assert [each.message.exchange for each in found] == ["exchange-1", "another"]

    on_broker(broker, body)


@log_test
async def test_requests_from_before_the_first_start_are_answered(log: JetStreamLog, broker: Broker) -> None:
    await ask(log, *range(20))
    async with running(broker, effector()):
        found = await answered(log, 20)
        await all_acknowledged(log)
    assert once_each(found, 20)


@log_test
async def test_requests_of_several_kinds_are_answered_by_one_effector(log: JetStreamLog, broker: Broker) -> None:
    await log.append([Append([question(0, "asked"), song(0, "sung"), question(1, "asked again")])])
    async with running(broker, effector()):
        found = await answered(log, 3)
        await all_acknowledged(log)
    assert sorted(each.message.event.text for each in found if isinstance(each.message.event, EchoAnswered)) == [
        "asked",
        "asked again",
        "sung",
    ]
    assert {each.message.exchange for each in found} == {"exchange-0", "exchange-1", "song-0"}


@log_test
async def test_a_durable_consumer_of_one_subject_becomes_one_of_several(log: JetStreamLog, broker: Broker) -> None:
    """What an earlier release left behind: it goes on where it was."""
    name = durable_name("echo")
    old = {"durable_name": name, "name": name, "ack_policy": "explicit", "filter_subject": "log.*.*.asker.asked"}
    await log.connection.api(
        f"CONSUMER.CREATE.{log.stream}.{name}",
        {"stream_name": log.stream, "config": old | {"ack_wait": 30_000_000_000, "max_ack_pending": 10_000}},
    )
    await ask(log, 0)
    async with running(broker, effector()):
        await log.append([Append([song(0)])])
        assert len(await answered(log, 2)) == 2


@log_test
async def test_a_worker_says_when_requests_can_reach_it(log: JetStreamLog, broker: Broker) -> None:
    async with running(broker, effector()) as (worker, _):
        async with asyncio.timeout(DEADLINE_S):
            await worker.ready.wait()
        info = await log.connection.api(f"CONSUMER.INFO.{log.stream}.{durable_name('echo')}")
    assert sorted(info["config"]["filter_subjects"]) == ["log.*.*.asker.asked", "log.*.*.singer.sang"]


@log_test
async def test_a_worker_that_no_request_can_reach_any_more_does_not_say_that_it_works(
    log: JetStreamLog, broker: Broker
) -> None:
    """As where its login has lost a right, or an account is at its limit of consumers: nobody was told."""
    name = durable_name("echo")
    usurper = {"name": name, "durable_name": name, "ack_policy": "none"}

    async def delete() -> None:
        await log.connection.api(f"CONSUMER.DELETE.{log.stream}.{name}")

    async def usurped() -> bool:
        try:
            await delete()
            request = {"stream_name": log.stream, "config": usurper}
            await log.connection.api(f"CONSUMER.CREATE.{log.stream}.{name}", request)
        except LogError:
            return False  # the worker was faster
        return True

    async with running(broker, effector()) as (worker, _):
        await until(worker.is_working, "requests to reach it")
        await until(usurped, "another's consumer to have its name")
        await until(lambda: not worker.is_working(), "it to say that none reaches it")
        await delete()
        await until(worker.is_working, "requests to reach it again")
        await ask(log, 0)
        await answered(log, 1)


def test_no_more_are_performed_at_once_than_there_is_room_for(broker: Broker) -> None:
    at_once = most = 0

    async def counting(message: Message) -> Sequence[Event | Emission]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.005)
        at_once -= 1
        return await echo(message)

    async def body(log: JetStreamLog) -> None:
        await ask(log, *range(30))
        async with running(broker, effector(counting, concurrency=3)):
            assert once_each(await answered(log, 30), 30)

    on_broker(broker, body)
    assert most == 3


@log_test
async def test_room_for_many_is_asked_for_in_few_requests(log: JetStreamLog, broker: Broker) -> None:
    """A server drops what is beyond 512 requests, and does not say so."""
    async with running(broker, effector(concurrency=600)):
        await ask(log, *range(300))
        assert once_each(await answered(log, 300), 300)
        await all_acknowledged(log)
        info = await log.connection.api(f"CONSUMER.INFO.{log.stream}.{durable_name('echo')}")
    assert 1 <= info["num_waiting"] <= 60


@log_test
async def test_two_workers_share_the_work(log: JetStreamLog, broker: Broker) -> None:
    """Four performances meet in each round, of which one worker alone could only have two."""
    barrier = asyncio.Barrier(4)

    async def meet(message: Message) -> Sequence[Event | Emission]:
        async with asyncio.timeout(DEADLINE_S):
            await barrier.wait()
        return await echo(message)

    meeting = effector(meet, concurrency=2)
    async with running(broker, meeting, name="a") as (first, _), running(broker, meeting, name="b") as (second, _):
        await ask(log, *range(20))
        found = await answered(log, 20)
    assert once_each(found, 20)
    assert all(isinstance(each.message.event, EchoAnswered) for each in found)
    assert first.counters.performed == second.counters.performed == 10
    assert {each.envelope.source for each in found} == {"neuraxis/a/echo", "neuraxis/b/echo"}


# --- what dies


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """The world outside: a file with a line for every effect."""
    file = tmp_path / "outside"
    file.touch()
    return file


@pytest.fixture
def child(broker: Broker, outside: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts a worker process that dies as it is told to."""
    started: list[subprocess.Popen[bytes]] = []

    def start(how: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.actors.runtime.effectors.echo_worker", broker.url, str(outside), how]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(DEADLINE_S)
        assert process.stdin is not None
        process.stdin.close()


def writing_to(outside: Path) -> Effector:
    async def perform(message: Message) -> Sequence[Event | Emission]:
        leave_trace(outside, message)
        return await echo(message)

    return effector(perform)


def effects(outside: Path) -> int:
    return len(outside.read_text().split())


@log_test
async def test_a_worker_killed_between_effect_and_append_leaves_one_answer(
    log: JetStreamLog, broker: Broker, outside: Path, child: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    await ask(log, 0)
    assert await asyncio.to_thread(child("after_effect").wait, DEADLINE_S) == -signal.SIGKILL
    assert await answers(log) == []
    async with running(broker, writing_to(outside), ack_wait=ACK_WAIT) as (worker, _):
        found = await answered(log, 1)
        await all_acknowledged(log)
    assert once_each(found, 1)
    assert worker.counters.performed == 1
    assert effects(outside) == 2, "towards the outside at least once, here twice"


@log_test
async def test_a_worker_killed_between_append_and_acknowledgement_leaves_one_answer_and_one_effect(
    log: JetStreamLog, broker: Broker, outside: Path, child: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    await ask(log, 0)
    assert await asyncio.to_thread(child("after_append").wait, DEADLINE_S) == -signal.SIGKILL
    async with running(broker, writing_to(outside), ack_wait=ACK_WAIT) as (worker, _):
        await all_acknowledged(log)
    assert (worker.counters.answered, worker.counters.performed) == (1, 0)
    assert once_each(await answers(log), 1)
    assert effects(outside) == 1


@log_test
async def test_a_worker_frozen_past_its_time_finds_the_answer_of_another_when_it_wakes(
    log: JetStreamLog, broker: Broker, outside: Path, child: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    await ask(log, 0)
    frozen = child("waits")
    await until(lambda: effects(outside) == 1, "the first effect")
    os.kill(frozen.pid, signal.SIGSTOP)
    async with running(broker, writing_to(outside), ack_wait=ACK_WAIT) as (worker, _):
        await answered(log, 1)
        assert frozen.stdin is not None
        frozen.stdin.close()
        os.kill(frozen.pid, signal.SIGCONT)
        await ask(log, 1)
        await ask(log, 2)
        # Both work again: what the frozen one had is done with once everything is acknowledged.
        await answered(log, 3)
        await all_acknowledged(log)
    assert once_each(await answers(log), 3)
    assert worker.counters.performed >= 1


@log_test
async def test_nothing_is_answered_twice_when_ids_are_forgotten_and_the_consumer_is_lost(
    log: JetStreamLog, broker: Broker
) -> None:
    config = (await log.connection.api(f"STREAM.INFO.{log.stream}"))["config"]
    await log.connection.api(f"STREAM.UPDATE.{log.stream}", config | {"duplicate_window": 100_000_000})
    await ask(log, *range(10))
    async with running(broker, effector()):
        await answered(log, 10)
        await all_acknowledged(log)
    await until(lambda: forgets_ids(log), "the broker to forget message ids")
    await log.connection.api(f"CONSUMER.DELETE.{log.stream}.{durable_name('echo')}")
    async with running(broker, effector()) as (worker, _):
        await all_acknowledged(log)
    assert (worker.counters.delivered, worker.counters.answered, worker.counters.performed) == (10, 10, 0)
    assert once_each(await answers(log), 10)


async def forgets_ids(log: JetStreamLog) -> bool:
    """Whether a message with the first one's id is stored anew."""
    probe = Record("log._._.probe.sent", {"Nats-Msg-Id": f"{event_id('question-0', 'asker', 0)}.0"}, b"{}")
    before = (await log.info()).last_seq
    return await log.append([Append([probe])]) > before


def test_a_call_longer_than_the_wait_for_its_acknowledgement_is_not_delivered_again(broker: Broker) -> None:
    ack_wait = 3.0

    async def body(log: JetStreamLog) -> None:
        async def slow(message: Message) -> Sequence[Event | Emission]:
            await asyncio.sleep(2 * ack_wait)
            return await echo(message)

        both = (running(broker, effector(slow), name=name, ack_wait=ack_wait) for name in ("a", "b"))
        async with next(both) as (first, _), next(both) as (second, _):
            await ask(log, 0)
            await answered(log, 1)
            await all_acknowledged(log)
        assert first.counters.delivered + second.counters.delivered == 1
        assert once_each(await answers(log), 1)

    on_broker(broker, body)


def test_a_redelivery_to_the_worker_that_is_at_it_is_not_performed_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(delivery: object) -> None:
        """Send no sign of life."""

    monkeypatch.setattr(effector_worker.PulledMessage, "in_progress", silent)

    async def body(log: JetStreamLog) -> None:
        again = asyncio.Event()

        async def slow(message: Message) -> Sequence[Event | Emission]:
            async with asyncio.timeout(DEADLINE_S):
                await again.wait()
            return await echo(message)

        async with running(broker, effector(slow), ack_wait=0.3) as (worker, _):
            await ask(log, 0)
            await until(lambda: worker.counters.delivered >= 3, "two redeliveries")
            again.set()
            await all_acknowledged(log)
        assert worker.counters.performed == 1
        assert once_each(await answers(log), 1)

    on_broker(broker, body)


@log_test
async def test_a_worker_waiting_for_requests_goes_on_after_a_broker_crash(log: JetStreamLog, broker: Broker) -> None:
    async with running(broker, effector()) as (worker, _):
        await ask(log, 0)
        await all_acknowledged(log)
        for number in (1, 2):
            broker.kill()
            broker.start()
            await until(lambda number=number: stored(log, number), "the broker to be back")
            await answered(log, number + 1)
        assert worker.counters.delivered >= 3
    assert once_each(await answers(log), 3)


def test_a_worker_goes_on_when_its_pull_requests_have_expired(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    expired = 0

    class Counting(durable.DurablePull):
        async def _on_status(self, headers: dict[str, str]) -> None:
            nonlocal expired
            expired += headers["Status"] == "408"
            await super()._on_status(headers)

    monkeypatch.setattr(pulling, "_EXPIRES", 0.25)
    monkeypatch.setattr(pulling, "HEARTBEAT", 0.1)
    monkeypatch.setattr(durable, "HEARTBEAT", 0.1)
    monkeypatch.setattr(effector_worker, "DurablePull", Counting)

    async def body(log: JetStreamLog) -> None:
        async with running(broker, effector()):
            await until(lambda: expired >= 8, "every pull request to expire twice")
            await ask(log, *range(10))
            assert once_each(await answered(log, 10), 10)

    on_broker(broker, body)


def test_requests_under_way_in_a_broker_crash_get_one_answer_each(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        performed = 0

        async def crashing(message: Message) -> Sequence[Event | Emission]:
            nonlocal performed
            performed += 1
            if performed in (10, 30):
                broker.kill()
                broker.start()
            return await echo(message)

        both = (running(broker, effector(crashing), name=name, ack_wait=ACK_WAIT) for name in ("a", "b"))
        async with next(both), next(both):
            await ask(log, *range(50))
            await answered(log, 50)
            await all_acknowledged(log)
        found = await answers(log)
        assert once_each(found, 50)
        assert performed >= 50

    on_broker(broker, body)


# --- what fails


def failures_of(broker: Broker, what: Effector, *requests: Record) -> list[EchoFailed]:
    """Return how each of these requests fails, in their order."""
    seen: list[Event] = []

    async def body(log: JetStreamLog) -> None:
        await log.append([Append(requests)])
        async with running(broker, what):
            seen.extend(each.message.event for each in await answered(log, len(requests)))
            await all_acknowledged(log)

    on_broker(broker, body)
    failures = sorted((each for each in seen if isinstance(each, EchoFailed)), key=lambda each: each.failed_seq)
    assert len(failures) == len(seen)
    assert [each.failed_seq for each in failures] == list(range(1, len(requests) + 1))
    assert {each.failed_topic for each in failures} == {"forged_id.asker.asked"}
    return failures


def failure_of(broker: Broker, what: Effector) -> EchoFailed:
    """Return how a request fails."""
    [failure] = failures_of(broker, what, question(0))
    return failure


def test_a_performance_that_raises_is_a_failure_and_the_worker_goes_on(broker: Broker) -> None:
    async def picky(message: Message) -> Sequence[Event | Emission]:
        assert isinstance(message.event, EchoAsked)
        if message.event.text == "bad":
            raise LookupError("the message is not recorded")
        return await echo(message)

    async def body(log: JetStreamLog) -> None:
        await log.append([Append([question(0, "bad"), question(1, "good")])])
        async with running(broker, effector(picky, concurrency=1)) as (worker, _):
            found = await answered(log, 2)
            await all_acknowledged(log)
        assert [each.message.event for each in found] == [
            EchoFailed(reason="effect_raised", error="LookupError", failed_seq=1, failed_topic="forged_id.asker.asked"),
            EchoAnswered(text="good"),
        ]
        assert found[0].message.exchange == "exchange-0"
        assert worker.counters.failed == 1
        assert b"not recorded" not in found[0].stored.data

    on_broker(broker, body)


def test_a_performance_that_takes_too_long_is_a_failure(broker: Broker) -> None:
    async def endless(message: Message) -> Sequence[Event | Emission]:
        await asyncio.Event().wait()
        return ()

    failure = failure_of(broker, effector(endless, timeout_s=0.05))
    assert (failure.reason, failure.error) == ("effect_timed_out", "TimeoutError")


def test_a_failure_of_the_shell_says_whose_request_it_is_of(broker: Broker) -> None:
    async def raising(message: Message) -> Sequence[Event | Emission]:
        raise LookupError

    def naming(failed: Failed, request: Message) -> Failed:
        return msgspec.structs.replace(failed, error=f"{failed.error} of {request.id}")

    failure = failure_of(broker, replace(effector(raising), enrich_failure=naming))
    assert failure.error == f"LookupError of {event_id('question-0', 'asker', 0)}"


def altered(record: Record, *, data: bytes | None = None, **headers: str) -> Record:
    changed = {**record.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return msgspec.structs.replace(record, data=record.data if data is None else data, headers=changed)


def test_a_request_that_cannot_be_read_is_a_failure_and_never_performed(broker: Broker) -> None:
    async def never(message: Message) -> Sequence[Event | Emission]:
        raise AssertionError("performed")

    half_a_body, no_text = altered(question(0), data=b"{"), altered(question(1), data=b"\xff")
    from_the_future, no_envelope = altered(question(2), ce_dataversion="9"), Record(question(3).subject, {}, b"")
    failures = failures_of(broker, effector(never), half_a_body, no_text, from_the_future, no_envelope)
    reasons = [(failure.reason, failure.error) for failure in failures]
    assert reasons == [("undecodable", ""), ("undecodable", ""), ("unknown_version", ""), ("undecodable", "")]


@log_test
async def test_an_unreadable_request_is_failed_once_however_often_it_is_delivered(
    log: JetStreamLog, broker: Broker
) -> None:
    await log.append([Append([Record(question(0).subject, {}, b"")])])
    for _ in range(2):
        async with running(broker, effector()):
            await all_acknowledged(log)
        await log.connection.api(f"CONSUMER.DELETE.{log.stream}.{durable_name('echo')}")
    assert len(await answers(log)) == 1


NO_ANSWERS: dict[str, tuple[list[Any] | BaseException, str, str]] = {
    "nothing": ([], "result_invalid", ""),
    "of another owner": ([ReflexPassed()], "result_invalid", ""),
    "partly of another": ([EchoAnswered(text="mine"), ReflexPassed()], "result_invalid", ""),
    "to another agent": ([Emission(EchoAnswered(text="x"), agent="somebody else")], "result_invalid", ""),
    "no event": (["no event"], "result_invalid", "AttributeError"),
    "not encodable": ([EchoAnswered(text=cast(str, object()))], "result_invalid", "TypeError"),
    "a time out of a library": (TimeoutError("of a library"), "effect_raised", "TimeoutError"),
    "a cancellation within": (asyncio.CancelledError(), "effect_raised", "CancelledError"),
}
"""Name -> what a performance returns or raises, and the reason and the error of the failure that is recorded."""


def test_what_is_no_answer_is_a_failure_and_the_worker_goes_on(broker: Broker) -> None:
    async def wrong(message: Message) -> Sequence[Event | Emission]:
        assert isinstance(message.event, EchoAsked)
        result, *_ = NO_ANSWERS[message.event.text]
        if isinstance(result, BaseException):
            raise result
        return result

    questions = (question(number, name) for number, name in enumerate(NO_ANSWERS))
    failures = failures_of(broker, effector(wrong), *questions)
    found = {name: (each.reason, each.error) for name, each in zip(NO_ANSWERS, failures, strict=True)}
    assert found == {name: (reason, error) for name, (_, reason, error) in NO_ANSWERS.items()}


def test_an_answer_too_large_for_the_broker_is_a_failure(broker: Broker) -> None:
    async def huge(message: Message) -> Sequence[Event | Emission]:
        return [EchoAnswered(text="x" * 2_000_000)]

    assert failure_of(broker, effector(huge)).reason == "append_refused"


@pytest.mark.parametrize(
    ("most", "reason"), [(2, "effect_abandoned"), (None, "")], ids=["limited", "of one that waits"]
)
@log_test
async def test_a_request_that_was_handed_back_too_often_is_given_up(
    log: JetStreamLog, broker: Broker, most: int | None, reason: str
) -> None:
    await ask(log, 0)
    for _ in range(2):
        begun = asyncio.Event()

        async def endless(message: Message, begun: asyncio.Event = begun) -> Sequence[Event | Emission]:
            begun.set()
            await asyncio.Event().wait()
            return ()

        async with running(broker, replace(effector(endless), most_attempts=most), stop_deadline=0.01):
            async with asyncio.timeout(DEADLINE_S):
                await begun.wait()
    async with running(broker, replace(effector(), most_attempts=most)) as (worker, _):
        answer = await outcome(log)
        assert (answer.reason if isinstance(answer, EchoFailed) else "") == reason
        assert worker.counters.performed == (0 if reason else 1)


# --- stopping


@log_test
async def test_a_stopping_worker_finishes_what_is_under_way_and_takes_no_more(
    log: JetStreamLog, broker: Broker
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(message: Message) -> Sequence[Event | Emission]:
        begun.set()
        await go_on.wait()
        return await echo(message)

    async with asyncio.timeout(DEADLINE_S):
        async with running(broker, effector(slow, concurrency=1)) as (worker, stop):
            await ask(log, 0, 1)
            await begun.wait()
            stop.set()
            go_on.set()
        assert worker.counters.performed == 1
    assert once_each(await answers(log), 1)


@log_test
async def test_what_a_stopping_worker_cannot_finish_goes_to_another_at_once(log: JetStreamLog, broker: Broker) -> None:
    """At once, and not after the half hour in which its signs of life would be waited for."""
    begun = asyncio.Event()

    async def endless(message: Message) -> Sequence[Event | Emission]:
        begun.set()
        await asyncio.Event().wait()
        return ()

    async with asyncio.timeout(DEADLINE_S):
        async with running(broker, effector(endless), ack_wait=1800.0, stop_deadline=0.05):
            await ask(log, 0)
            await begun.wait()
        async with running(broker, effector(), ack_wait=1800.0):
            assert await outcome(log) == EchoAnswered(text="hello")


# --- contradictions


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "reflex"}, "belongs to echo"),
        ({"consumes": (type("Unlisted", (Event,), {}, tag="forged_id.nowhere.asked"),)}, "does not list Unlisted"),
        ({"consumes": ()}, "consumes nothing"),
        ({"consumes": (EchoAsked, EchoAsked)}, "consumes an event twice"),
    ],
)
def test_an_effector_that_contradicts_the_catalogue_is_refused(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        effector_worker.check_effector(replace(effector(), **change))  # type: ignore[arg-type]  # one field at a time


def test_a_failure_without_an_agent_cannot_answer_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = CATALOGUE["forged_id.echo.failed"]
    monkeypatch.setitem(CATALOGUE, entry.topic, msgspec.structs.replace(entry, scope=Scope.GLOBAL))
    with pytest.raises(ValueError, match="must carry its request's agent"):
        effector_worker.check_effector(effector())
