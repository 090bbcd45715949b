"""One request against an endpoint over real HTTP: what is sent, recorded, refused and logged."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
import structlog

from actors.llm.client import ChatClient
from actors.llm.endpoint import Endpoint
from actors.llm.settings import Models
from schemas.vocabulary.llm import LlmCompleted
from tests.actors.llm import scripted
from tests.actors.llm.asking import KEY, PLAN, QUESTION, QUICK, Asking, call_of, over
from tests.actors.llm.scripted import ANSWER, Reply, fails, says, serving
from tests.each import each


def test_an_answer_is_recorded_with_its_model_tokens_and_attempts() -> None:
    @over(says())
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert await asking.completed() == LlmCompleted(
            request="request-1",
            purpose="act",
            text=ANSWER,
            model="served",
            backend="openai",
            finish_reason="stop",
            prompt_tokens=12,
            completion_tokens=7,
            attempts=1,
        )


def test_the_endpoint_is_sent_the_prompt_the_model_of_the_purpose_and_an_idempotency_key() -> None:
    @over(says(), settings=msgspec.structs.replace(QUICK, models=Models(act="planner:1b")))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        await asking.completed(call_of(most_tokens=77))
        [asked] = endpoint.asked
        assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
        assert asked.document == {
            "model": "planner:1b",
            "messages": [{"role": "user", "content": QUESTION}],
            "max_tokens": 77,
        }
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.headers["idempotency-key"] == "request-1"


def test_without_a_key_no_authorization_is_sent() -> None:
    async def run() -> None:
        async with serving(says()) as endpoint:
            async with ChatClient.open(Endpoint(endpoint.base_url), connect_s=2.0, concurrency=1) as client:
                await Asking(client, QUICK).completed()
            assert "authorization" not in endpoint.asked[0].headers

    asyncio.run(run())


def test_a_schema_is_asked_for_as_the_response_format() -> None:
    @over(says('{"skill": "recall"}'))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        completed = await asking.completed(call_of(answer_schema=PLAN))
        assert completed.text == '{"skill": "recall"}'
        assert endpoint.asked[0].document["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": PLAN},
        }


def test_an_endpoint_that_tells_no_usage_is_recorded_with_zero_tokens() -> None:
    @over(says(usage=None, model=None))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        completed = await asking.completed()
        assert (completed.prompt_tokens, completed.completion_tokens, completed.model) == (0, 0, "qwen3:8b")


def test_thoughts_are_no_part_of_an_answer() -> None:
    @over(says("<think>\nPeru, so Lima.\n</think>\n\nLima."))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.completed()).text == "Lima."


# --- errors under a good status


def error_in(**error: Any) -> Reply:
    return Reply((json.dumps({"error": error}).encode(),))


def broken_off(**error: Any) -> Reply:
    """An answer with the error of a provider in its choice, as OpenRouter writes it."""
    choice = {"message": {"content": "half an ans"}, "error": error, "finish_reason": "error"}
    return Reply((json.dumps({"choices": [choice]}).encode(),))


@each(
    ("reply", "reason", "error"),
    [
        (error_in(message="no"), "endpoint_refused", "HTTP 200: error"),
        (error_in(message="secret words", code="invalid_api_key"), "endpoint_refused", "HTTP 200: error"),
        (error_in(message="no key", code=401), "endpoint_refused", "HTTP 200: error 401"),
        (error_in(code=404), "no_model", "HTTP 200: error 404"),
        (Reply((b'{"error": "overloaded"}',)), "endpoint_refused", "HTTP 200: error"),
        (says("half an ans", error={"code": 400}), "endpoint_refused", "HTTP 200: error 400"),
        (broken_off(code=403, message="no"), "endpoint_refused", "HTTP 200: error 403"),
        (Reply((b'{"error_code": 17, "error_msg": "daily limit reached"}',)), "endpoint_refused", "HTTP 200: error"),
        (Reply((b'{"code": "1302", "msg": "no balance", "choices": []}',)), "endpoint_refused", "HTTP 200: error"),
        (
            Reply((b'{"choices": null, "base_resp": {"status_code": 1004, "status_msg": "login fail"}}',)),
            "endpoint_refused",
            "HTTP 200: error",
        ),
    ],
)
def test_an_error_under_a_good_status_is_no_answer(reply: Reply, reason: str, error: str) -> None:
    @over(reply)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed()
        assert (failed.reason, failed.error) == (reason, error)
        assert len(endpoint.asked) == 1


@each("code", [429, 502, "503"])
def test_an_error_under_a_good_status_that_will_pass_is_asked_about_again(code: int | str) -> None:
    @over(error_in(code=code), says())
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.completed()).attempts == 2


def test_an_error_that_says_nothing_is_none() -> None:
    @over(says(error=None))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.completed()).text == ANSWER


# --- answers that are none


@each(
    ("reply", "schema", "error"),
    [
        (Reply((b"{garbage",)), None, "NotTheProtocol"),
        (Reply((b"\xff\xfe",)), None, "NotTheProtocol"),
        (Reply((b"[" * 100_000,)), None, "NotTheProtocol"),
        (Reply((b'{"choices": []}',)), None, "NoChoice"),
        (Reply((b"<html>Welcome</html>",), headers={"Content-Type": "text/html"}), None, "HtmlPage"),
        (Reply((b"not gzip",), headers={"Content-Encoding": "gzip"}), None, "NotTheProtocol"),
        (Reply((b"\x1f\x8bnot gzip",), headers={"Content-Encoding": "gzip"}), None, "ContentEncoding"),
        (Reply((b"\x0b\x02\x80Lima\x03",), headers={"Content-Encoding": "br"}), None, "ContentEncoding"),
        (says(""), None, "EmptyAnswer"),
        (says("<think>I wonder", finish="length"), None, "EmptyAnswer"),
        (says("I would recall."), PLAN, "NotJson"),
        (says('{"skill": "recall"', finish="length"), PLAN, "NotJson"),
        (says('{"skill": "fly"}'), PLAN, "SchemaNotSatisfied"),
        (says('{"skill": "recall"}'), {"type": "nonsense"}, "SchemaUnusable"),
        (says("1"), {"$ref": "http://127.0.0.1:9/elsewhere"}, "SchemaUnusable"),
    ],
)
def test_what_is_no_answer_fails_at_once_as_invalid(reply: Reply, schema: dict[str, Any] | None, error: str) -> None:
    @over(reply)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed(call_of(answer_schema=schema))
        assert (failed.reason, failed.error) == ("answer_invalid", error)
        assert len(endpoint.asked) == 1


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.llm.wire.response_reading.MOST_BYTES", 100_000)

    @over(Reply((b"x" * 60_000, b"x" * 60_000), then="hang"))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed()).reason == "answer_invalid"


# --- what is logged


def test_logs_hold_no_words_and_no_key() -> None:
    with structlog.testing.capture_logs() as logged:

        @over(fails(500), fails(401, KEY.encode()), says())
        async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
            await asking.failed()
            await asking.completed()

    said = json.dumps(logged)
    assert {entry["event"] for entry in logged} == {"call_failed", "model_answered"}
    assert not any(secret in said for secret in (KEY, QUESTION, ANSWER))
