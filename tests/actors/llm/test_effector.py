"""The real effector: requests in a real broker's log, an endpoint over HTTP, answers in the log."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from nats.aio.msg import Msg

from actors.llm import EFFECTOR, LlmSettings
from actors.llm.endpoint import BadEndpoint
from actors.llm.local import missing_parts
from actors.runtime.clock import SystemClock
from actors.runtime.effectors.effector_worker import EffectorWorker
from actors.runtime.effectors.spec import EffectorContext
from actors.runtime.envelopes import to_record
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from events.log import Append, Record
from events.make_decision import Cause, address_events
from events.sealing.keys import key_name
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.event import Event, topic_of
from schemas.subjects import Partitions
from schemas.vocabulary.act import ActPlanRequested
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.responder import ResponseRequested
from schemas.vocabulary.router import TiebreakRequested
from tests.actors.llm.scripted import ANSWER, HANGS, Endpoint, nobody, says, serving, streams
from tests.actors.llm.sessions import begun
from tests.actors.on_broker import log_test, on_broker
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.broker import Broker
from tests.events.setting import collect

QUICK = LlmSettings(backoff_first_ms=1, backoff_most_ms=2)
INBOX = "_INBOX.caller.1"
WORDS = "Name the capital of Peru."


def at(endpoint: Endpoint) -> LlmSettings:
    return msgspec.structs.replace(QUICK, base_url=endpoint.base_url)


def call_of(purpose: str = "respond", **changes: Any) -> ModelCall:
    messages = (ChatMessage(role="user", content=WORDS),)
    return msgspec.convert({"purpose": purpose, "messages": msgspec.to_builtins(messages), **changes}, ModelCall)


def response(**changes: Any) -> ResponseRequested:
    return ResponseRequested(mode="RESPOND", call=call_of(**changes), entities=(), prompts={})


def request(number: int, event: Event) -> Record:
    """Build a request to be stored, of an exchange of its own."""
    owner = topic_of(event).split(".")[1]
    cause = Cause(f"cause-{number}", 0, 0, "ann", "s", f"exchange-{number}", "_", "_")
    [decided] = address_events(owner, cause, (event,), Partitions())
    return to_record(decided, "test", "", 1_750_000_000_000_000_000, 0)


@contextlib.asynccontextmanager
async def running(log: JetStreamLog, settings: LlmSettings) -> AsyncIterator[EffectorWorker]:
    around = EffectorContext(log.connection, log.connection.publish, {}, SystemClock())
    stop = asyncio.Event()
    async with asyncio.timeout(90), EFFECTOR.open(settings, around) as effector, asyncio.TaskGroup() as tasks:
        worker = EffectorWorker(log, effector, name="w", stop_deadline=0.1)
        tasks.create_task(worker.run(stop))
        try:
            yield worker
        finally:
            stop.set()


async def answers(log: JetStreamLog, count: int) -> Sequence[Recorded]:
    """Wait for the answers to ``count`` requests, and return them."""

    async def there() -> bool:
        return len(await collect(log, filters=("log.*.*.llm.>",))) >= count

    await until(there, f"{count} answers of llm")
    found = [decode(stored) for stored in await collect(log, filters=("log.*.*.llm.>",))]
    return [each for each in found if isinstance(each, Recorded)]


@log_test
async def test_each_kind_of_request_is_answered_to_its_own_exchange_by_its_own_model(log: JetStreamLog) -> None:
    tiebreak = TiebreakRequested(
        candidates=("RESPOND", "CLARIFY"), scores={}, margin=0.0, effective_margin=0.1, call=call_of("tiebreak")
    )
    requests = (tiebreak, ActPlanRequested(iteration=0, call=call_of("act")), response())
    stored = [request(number, event) for number, event in enumerate(requests)]
    async with serving(says()) as endpoint, running(log, at(endpoint)):
        await log.append([Append(stored)])
        found = await answers(log, 3)
    by_exchange = {each.message.exchange: each.message.event for each in found}
    for number, purpose in enumerate(("tiebreak", "act", "respond")):
        completed = by_exchange[f"exchange-{number}"]
        assert isinstance(completed, LlmCompleted)
        assert (completed.purpose, completed.text, completed.backend) == (purpose, ANSWER, "openai")
        assert completed.request == stored[number].headers["ce-id"]
    assert sorted(asked.document["model"] for asked in endpoint.asked) == ["qwen3:4b", "qwen3:8b", "qwen3:8b"]


@pytest.mark.usefixtures("unheld")
@log_test
async def test_pieces_reach_the_inbox_before_the_answer_is_stored(log: JetStreamLog) -> None:
    told: list[dict[str, Any]] = []

    async def take(message: Msg) -> None:
        told.append(json.loads(message.data))

    await log.connection.nc.subscribe(INBOX, cb=take)
    async with serving(streams("Li", "ma.")) as endpoint, running(log, at(endpoint)):
        await log.append([Append([request(0, response(stream_to=INBOX))])])
        [answer] = await answers(log, 1)
    await until(lambda: len(told) == 2, "both pieces")
    assert [(each["text"], each["done"], each["exchange"]) for each in told] == [
        ("Li", False, "exchange-0"),
        ("ma.", False, "exchange-0"),
    ]
    assert isinstance(answer.message.event, LlmCompleted)
    assert told[0]["request"] == answer.message.event.request


@log_test
async def test_a_dead_endpoint_leaves_a_failure_that_names_its_request(log: JetStreamLog) -> None:
    stored = request(0, response())
    with nobody() as gone:
        async with running(log, msgspec.structs.replace(QUICK, base_url=gone)):
            await log.append([Append([stored])])
            [answer] = await answers(log, 1)
    failed = answer.message.event
    assert isinstance(failed, LlmFailed)
    assert (failed.reason, failed.request, failed.purpose) == (
        "endpoint_unreachable",
        stored.headers["ce-id"],
        "respond",
    )
    assert (failed.failed_seq, failed.failed_topic) == (1, "forged_id.response.requested")


@log_test
async def test_an_answer_too_large_for_the_broker_is_a_failure_that_names_its_request(log: JetStreamLog) -> None:
    stored = request(0, response(most_tokens=200_000))
    async with serving(says("x" * 2_000_000)) as endpoint, running(log, at(endpoint)):
        await log.append([Append([stored])])
        [answer] = await answers(log, 1)
    failed = answer.message.event
    assert isinstance(failed, LlmFailed)
    assert (failed.reason, failed.request, failed.purpose) == (
        "append_refused",
        stored.headers["ce-id"],
        "respond",
    )


@log_test
async def test_what_a_stopping_effector_was_at_is_answered_by_the_next(log: JetStreamLog) -> None:
    async with serving(HANGS, says()) as endpoint:
        async with running(log, at(endpoint)):
            await log.append([Append([request(0, response())])])
            await until(lambda: bool(endpoint.asked), "the endpoint to be asked")
        async with running(log, at(endpoint)):
            [answer] = await answers(log, 1)
    assert isinstance(answer.message.event, LlmCompleted)


# --- a log whose words are sealed


def test_the_endpoint_gets_the_words_that_the_log_keeps_sealed(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        async with serving(says()) as endpoint, running(log, at(endpoint)):
            await begun(log)
            await log.append([Append([request(0, response())])])
            [answer] = await answers(log, 1)
        assert isinstance(answer.message.event, LlmCompleted)
        assert answer.message.event.text == ANSWER
        assert endpoint.asked[0].document["messages"] == [{"role": "user", "content": WORDS}]
        stored = await collect(log.as_stored())
        assert not any(WORDS.encode() in each.data or ANSWER.encode() in each.data for each in stored)

    on_broker(broker, body, sealed=True)


def test_nobody_is_asked_about_words_that_were_forgotten(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        await begun(log)
        await log.append([Append([request(0, response())])])
        assert log.sealing is not None
        await log.sealing.keyring.store.destroy(key_name("ann", "s"))
        later = await JetStreamLog.connect(broker.url)
        async with serving(says()) as endpoint, running(later, at(endpoint)):
            [answer] = await answers(later, 1)
        failed = answer.message.event
        assert isinstance(failed, LlmFailed)
        assert (failed.reason, failed.purpose) == ("text_forgotten", "respond")
        assert endpoint.asked == []
        await later.close()

    on_broker(broker, body, sealed=True)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (LlmSettings(), "no language model is attached: set llm.base_url"),
        (LlmSettings(backend="composer"), "no language model is attached"),
        (LlmSettings(backend="openai"), "no language model is attached"),
        (LlmSettings(base_url="localhost:1234"), "is not an address of an LLM endpoint"),
        (LlmSettings(backend="local", local_model="no such file.gguf"), "the local model cannot run"),
    ],
)
@log_test
async def test_settings_without_a_usable_endpoint_are_refused_in_words(
    log: JetStreamLog, settings: LlmSettings, complaint: str
) -> None:
    with pytest.raises(BadEndpoint, match=complaint):
        async with running(log, settings):
            raise AssertionError("opened")


LOCAL = LlmSettings(backend="local", local_context=1_024)


@pytest.mark.skipif(bool(missing_parts(LOCAL)), reason=missing_parts(LOCAL))
def test_a_local_model_answers_in_the_form_that_was_asked_for_and_streams(broker: Broker) -> None:
    schema = {"type": "object", "properties": {"mode": {"enum": ["RESPOND", "CLARIFY"]}}, "required": ["mode"]}

    async def body(log: JetStreamLog) -> None:
        told: list[dict[str, Any]] = []

        async def take(message: Msg) -> None:
            told.append(json.loads(message.data))

        await log.connection.nc.subscribe(INBOX, cb=take)
        plan = ActPlanRequested(
            iteration=0, call=call_of("act", answer_schema=schema, most_tokens=64, timeout_ms=int(DEADLINE_S * 1000))
        )
        spoken = response(stream_to=INBOX, most_tokens=16, timeout_ms=int(DEADLINE_S * 1000))
        async with running(log, LOCAL):
            await log.append([Append([request(0, plan), request(1, spoken)])])
            found = {each.message.exchange: each.message.event for each in await answers(log, 2)}
        chosen, answer = found["exchange-0"], found["exchange-1"]
        assert isinstance(chosen, LlmCompleted), chosen
        assert json.loads(chosen.text)["mode"] in {"RESPOND", "CLARIFY"}
        assert isinstance(answer, LlmCompleted), answer
        assert (answer.backend, answer.model) == ("local", "SmolLM2-135M-Instruct.Q4_1")
        assert 0 < answer.completion_tokens <= 16
        await until(lambda: bool(told) and "".join(each["text"] for each in told).strip() == answer.text, "all pieces")

    on_broker(broker, body)
