"""The trace of an exchange: from the caller's request through every actor, reckoned from what is in the log."""

import asyncio

import msgspec
import pytest

from deploy.telemetry.spans import MOST_KEPT, Span, SpanBuilder
from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.envelope import BUDGET, LATENCY
from schemas.intake.trace_context import trace_id
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from tests.actors.gateway.asking import working
from tests.actors.gateway.http.rig import gateway
from tests.events.ledger.messages import FEEDBACK, INPUT, MS, PASSED, RESPONSE, START_NS, stored
from tests.events.simulated_world import in_world
from tests.simulated import SimulatedStream

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"
QUESTION = "What is the capital of Peru?"


def asked(**headers: str) -> list[Stored]:
    """Return the log after a check over HTTP, with every actor at work."""
    log: list[Stored] = []

    async def body(stream: SimulatedStream) -> None:
        async with working(stream), gateway(stream) as client:
            answer = await client.post("/v1/guard", json={"text": QUESTION, "session": "secret-name"}, headers=headers)
            assert answer.status_code == 200, answer.text
            await asyncio.sleep(5)  # virtual: what the end leads to
        log.extend(stream.store.messages)

    in_world(body)
    return log


@pytest.fixture(scope="module")
def traced() -> list[Stored]:
    """The log after a check by a caller with a trace."""
    return asked(traceparent=TRACEPARENT)


@pytest.fixture(scope="module")
def untraced() -> list[Stored]:
    """The log after a check by a caller without a valid trace."""
    return asked(traceparent="00-nonsense")


def spans_of(log: list[Stored]) -> list[Span]:
    builder = SpanBuilder()
    return [span for message in log for span in builder.feed(message)]


def traces_in(log: list[Stored]) -> set[str]:
    return {message.headers["traceparent"][3:35] for message in log if "traceparent" in message.headers}


def test_one_trace_holds_the_whole_exchange_below_the_callers_span(traced: list[Stored]) -> None:
    assert traces_in(traced) == {TRACE}
    spans = spans_of(traced)
    assert {span.trace for span in spans} == {TRACE}
    (root,) = [span for span in spans if span.kind == "server"]
    assert (root.name, root.parent, root.remote) == ("exchange", CALLER, True)
    assert root.attributes["neuraxis.action"] == "PASSED"
    known = {span.span for span in spans}
    assert len(known) == len(spans) == len([one for one in traced if one.headers.get("ce-exchange")])
    assert {span.parent for span in spans} <= known | {CALLER}
    by_name = {span.name: span for span in spans}
    assert by_name["intuition passed"].parent == by_name["reflex passed"].span
    assert by_name["reflex passed"].parent == root.span
    assert all(root.begin_ns <= span.begin_ns <= span.end_ns for span in spans)


def test_no_span_has_words_or_names_of_people(traced: list[Stored]) -> None:
    told = repr(spans_of(traced))
    assert "Peru" not in told
    assert "secret-name" not in told


def test_a_trace_changes_nothing_that_is_decided(traced: list[Stored], untraced: list[Stored]) -> None:
    """It stands in headers alone, and no decider sees those."""
    assert not any(TRACE.encode() in message.data for message in traced)
    with_it, without = (
        sorted(message.subject for message in log if message.headers.get("ce-exchange")) for log in (traced, untraced)
    )
    assert with_it == without


def test_without_a_valid_trace_the_exchange_is_one_of_its_own(untraced: list[Stored]) -> None:
    (exchange,) = {message.headers["ce-exchange"] for message in untraced if message.headers.get("ce-exchange")}
    assert traces_in(untraced) == {trace_id(exchange)}
    (root,) = [span for span in spans_of(untraced) if span.kind == "server"]
    assert (root.trace, root.parent, root.remote) == (trace_id(exchange), "", False)


def test_a_caller_that_does_not_sample_gets_no_spans_though_its_trace_is_kept() -> None:
    log = asked(**{"ce-traceparent": f"00-{TRACE}-{CALLER}-00"})
    assert traces_in(log) == {TRACE}
    assert spans_of(log) == []


def test_the_answer_of_a_model_is_a_clients_span_by_the_conventions_for_generative_ai() -> None:
    completed = msgspec.structs.replace(CATALOGUE["forged_id.llm.completed"].sample, text="Secret words.")
    failed = CATALOGUE["forged_id.llm.failed"].sample
    assert isinstance(completed, LlmCompleted)
    assert isinstance(failed, LlmFailed)
    call, failure = spans_of([stored(1, INPUT, at_ms=0), stored(2, completed, at_ms=50), stored(3, failed, at_ms=90)])
    assert (call.name, call.kind, call.error) == (f"chat {completed.model}", "client", "")
    assert (call.begin_ns, call.end_ns) == (START_NS + 50 * MS - 2_300_000, START_NS + 50 * MS), "as long as the call"
    assert (
        call.attributes.items()
        >= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.response.model": completed.model,
            "gen_ai.response.finish_reasons": ("stop",),
            "gen_ai.usage.input_tokens": completed.prompt_tokens,
            "gen_ai.usage.output_tokens": completed.completion_tokens,
        }.items()
    )
    assert (failure.name, failure.kind, failure.error) == ("chat", "client", failed.reason)
    assert failure.attributes["error.type"] == failed.reason
    assert "Secret" not in repr(call)


def test_the_names_of_attributes_are_those_of_the_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    completed = CATALOGUE["forged_id.llm.completed"].sample
    (call,) = spans_of([stored(1, INPUT), stored(2, completed)])
    assert {name for name in call.attributes if name.startswith("gen_ai.")} <= known


def test_an_exchange_whose_input_was_not_seen_and_messages_of_none_have_no_spans() -> None:
    rotten = msgspec.structs.replace(stored(2, PASSED, exchange="x2"), headers={"ce-id": "x", "ce-causeseq": "?"})
    assert spans_of([stored(1, PASSED), stored(2, PASSED, exchange=""), rotten]) == []


def test_open_exchanges_are_read_again_after_a_restart_and_old_ones_forgotten() -> None:
    builder = SpanBuilder()
    for seq in range(1, MOST_KEPT + 3):
        builder.feed(stored(seq, INPUT, exchange=f"x{seq}"))
    assert builder.oldest_open(99_999) == 3, "the oldest that is still remembered"
    assert builder.feed(stored(20_000, RESPONSE, exchange="x1")) == ()
    assert [span.name for span in builder.feed(stored(20_001, RESPONSE, exchange="x3"))] == [
        "responder emitted",
        "exchange",
    ]
    assert builder.oldest_open(99_999) == 4


@pytest.mark.parametrize("name", [LATENCY, BUDGET])
def test_a_header_of_thousands_of_digits_ends_no_tracing(name: str) -> None:
    odd = msgspec.structs.replace(stored(2, PASSED), headers={**stored(2, PASSED).headers, name: "1" * 5_000})
    names = [span.name for span in spans_of([stored(1, INPUT), odd, stored(3, RESPONSE)])]
    assert "reflex passed" in names


def test_an_exchange_that_its_caller_does_not_trace_is_not_waited_for() -> None:
    builder, unsampled = SpanBuilder(), f"00-{TRACE}-{CALLER}-00"
    received = stored(1, INPUT, exchange="x1")
    builder.feed(msgspec.structs.replace(received, headers={**received.headers, "traceparent": unsampled}))
    assert builder.oldest_open(99) == 99
    builder.feed(stored(2, INPUT, exchange="x2"))
    assert builder.oldest_open(99) == 2


def test_any_amount_of_feedback_on_an_exchange_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.telemetry.spans.MOST_KEPT", 3)
    builder = SpanBuilder()
    spans = [span for seq in range(1, 9) for span in builder.feed(stored(seq, INPUT if seq == 1 else FEEDBACK))]
    assert len(spans) == 7
    assert len(builder._exchanges["x1"].stored) == 3
