"""What an endpoint does not take is translated or left out once, remembered, and told; long prompts are cut to fit."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog

from actors.contract.text.shortening import estimate
from actors.llm.client import ChatClient
from actors.llm.context_fitting import fit_to_context
from actors.llm.endpoint import Endpoint
from actors.llm.wire.dialect import PLAIN, learn_from_refusal
from actors.llm.wire.refusals import overflow_in
from schemas.effectors.model_calls import ChatMessage, Cut
from tests.actors.llm import scripted
from tests.actors.llm.asking import KEY, PLAN, QUESTION, QUICK, Asking, call_of
from tests.actors.llm.scripted import ANSWER, Asked, Reply, fails, says, serving, streams
from tests.each import each

STREAMED = call_of(stream_to="_INBOX.operator.1")
ONCE = msgspec.structs.replace(QUICK, attempts=1)
INSTRUCTED = call_of(
    messages=(ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content=QUESTION))
)
LOG = "".join(f"{number:04}: the pump was idle, and nothing else happened.\n" for number in range(400))

Judge = Callable[[Mapping[str, Any]], Reply | None]
"""Refuses a body, or does not."""


def _wants_json(body: Mapping[str, Any]) -> bool:
    return "response_format" in body or "JSON Schema" in json.dumps(body)


def strictly(judge: Judge, *, context: int = 0) -> Any:
    """Decorate a test's body, which gets what to ask with and an endpoint that refuses what it does not take."""

    def reply(asked: Asked) -> Reply:
        body = asked.document
        words = '{"skill": "recall"}' if _wants_json(body) else ANSWER
        answer = streams("Lima.") if body.get("stream") else says(words)
        return judge(body) or answer

    def decorate(body: Any) -> None:
        async def run() -> None:
            async with (
                asyncio.timeout(60),
                serving(says(), judge=reply) as endpoint,
                ChatClient.open(
                    Endpoint(endpoint.base_url, KEY), connect_s=2.0, concurrency=1, context=context
                ) as client,
            ):
                await body(Asking(client, ONCE), endpoint)

        asyncio.run(run())

    return decorate


def told(message: str, status: int = 400, **error: Any) -> Reply:
    return fails(status, json.dumps({"error": {"message": message, **error}}).encode())


def names(body: Mapping[str, Any], *keys: str) -> bool:
    return any(key in body for key in keys)


def roles(asked: Asked) -> list[str]:
    return [message["role"] for message in asked.document["messages"]]


OPENAI_LENGTH = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
REFUSED: dict[str, tuple[Any, Judge, str]] = {
    "max_tokens, of OpenAI's reasoning models": (
        call_of(),
        lambda body: told(OPENAI_LENGTH, param="max_tokens") if "max_tokens" in body else None,
        "max_tokens is sent as max_completion_tokens",
    ),
    "max_tokens under either name": (
        call_of(),
        lambda body: (
            told("max_tokens: Extra inputs are not permitted", 422) if "max_tokens" in body
            else told("max_completion_tokens: Extra inputs are not permitted", 422) if "max_completion_tokens" in body
            else None
        ),
        "max_tokens is left out",
    ),
    "an answer that may not be so long": (
        call_of(),
        lambda body: (
            told("max_tokens is too large: 512. This model supports at most 256 completion tokens.")
            if body["max_tokens"] > 256 else None
        ),
        "max_tokens is at most 256",
    ),
    "stream_options, of a validating gateway": (
        STREAMED,
        lambda body: (
            fails(422, b'{"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}')
            if "stream_options" in body else None
        ),
        "stream_options is left out",
    ),
    "stream_options, as vLLM words it": (
        STREAMED,
        lambda body: (
            fails(400, b'{"object": "error", "message": "Unknown field: stream_options", "code": 400}')
            if "stream_options" in body else None
        ),
        "stream_options is left out",
    ),
    "streams": (
        STREAMED,
        lambda body: (
            told("Your organization must be verified to stream this model.", param="stream")
            if "stream" in body else None
        ),
        "stream is left out",
    ),
    "json_schema, with JSON objects": (
        call_of(answer_schema=PLAN),
        lambda body: (
            told("This response_format type is unavailable now")
            if body.get("response_format", {}).get("type") == "json_schema" else None
        ),
        "json_schema is sent as json_object",
    ),
    "any response_format": (
        call_of(answer_schema=PLAN),
        lambda body: told("'response_format.type' must be 'text'") if "response_format" in body else None,
        "json_schema is sent as prompt",
    ),
    "a system role, of Gemma's template": (
        INSTRUCTED,
        lambda body: told("Jinja Exception: System role not supported", 500) if _has_system(body) else None,
        "the system role is sent as user",
    ),
    "a system role, of Mistral's template": (
        INSTRUCTED,
        lambda body: (
            told("Conversation roles must alternate user/assistant/user/assistant/...") if _has_system(body) else None
        ),
        "the system role is sent as user",
    ),
    "a system role, as Google words it": (
        INSTRUCTED,
        lambda body: told("Developer instruction is not enabled for models/gemma") if _has_system(body) else None,
        "the system role is sent as user",
    ),
    "an error under a good status": (
        call_of(),
        lambda body: (
            Reply((json.dumps({"error": {"message": OPENAI_LENGTH, "code": 400}}).encode(),))
            if "max_tokens" in body else None
        ),
        "max_tokens is sent as max_completion_tokens",
    ),
    "an error at the beginning of a stream": (
        STREAMED,
        lambda body: (
            Reply((b'data: {"error": {"message": "no stream_options"}}\n\n',), headers=scripted.EVENT_STREAM)
            if "stream_options" in body else None
        ),
        "stream_options is left out",
    ),
}  # fmt: skip


def _has_system(body: Mapping[str, Any]) -> bool:
    return any(message["role"] == "system" for message in body["messages"])


@each("name", sorted(REFUSED))
def test_what_an_endpoint_refuses_is_translated_once_and_remembered(name: str) -> None:
    call, judge, adapted = REFUSED[name]
    with structlog.testing.capture_logs() as logged:

        @strictly(judge)
        async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
            first = await asking.completed(call)
            calls = len(endpoint.asked)
            assert first.adapted == (adapted,)
            assert first.attempts == calls <= 3
            second = await asking.completed(call)
            assert (second.adapted, second.attempts, len(endpoint.asked)) == ((adapted,), 1, calls + 1)

    assert any(entry["event"] == "request_translated" and entry["log_level"] == "warning" for entry in logged)
    assert QUESTION not in json.dumps(logged)


def test_a_translated_request_has_an_idempotency_key_of_its_own_which_its_repetition_shares() -> None:
    @strictly(lambda body: told(OPENAI_LENGTH) if "max_tokens" in body else None)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        await asking.completed()
        await asking.completed()
        keys = [asked.headers["idempotency-key"] for asked in endpoint.asked]
        assert keys[0] == "request-1"
        assert keys[1] == keys[2] != keys[0]


def test_what_holds_for_an_endpoint_is_not_learned_anew_for_another_of_its_models() -> None:
    @strictly(lambda body: told(OPENAI_LENGTH) if "max_tokens" in body else None)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        await asking.completed()
        assert (await asking.completed(call_of(purpose="tiebreak"))).attempts == 1


def test_instructions_without_a_role_of_their_own_stand_before_the_first_words_of_the_person() -> None:
    turns = ("user", "assistant", "user")
    messages = (
        ChatMessage(role="system", content="Be brief."),
        *(ChatMessage(role=role, content=role) for role in turns),
    )  # type: ignore[arg-type]

    @strictly(REFUSED["a system role, of Gemma's template"][1])
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        await asking.completed(call_of(messages=messages))
        assert roles(endpoint.asked[-1]) == ["user", "assistant", "user"]
        assert endpoint.asked[-1].document["messages"][0]["content"] == "Be brief.\n\nuser"


def test_a_schema_that_is_not_enforced_stands_among_the_instructions() -> None:
    @strictly(REFUSED["any response_format"][1])
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        await asking.completed(call_of(answer_schema=PLAN))
        [system, _] = endpoint.asked[-1].document["messages"]
        assert (system["role"], json.dumps(PLAN) in system["content"]) == ("system", True)


@each(
    "said",
    [
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        'messages: Unexpected role "system". The API accepts a top-level parameter instead.',
        "messages.0.role: Input should be 'user' or 'assistant'",
        "System messages are not supported by this model",
        "After the optional system message, conversation roles must alternate user/assistant",
    ],
)
def test_every_way_to_refuse_a_system_role_is_understood(said: str) -> None:
    better = learn_from_refusal(PLAIN, said, INSTRUCTED, ("model", "messages", "max_tokens"))
    assert better == msgspec.structs.replace(PLAIN, system_role=False)


@each(
    "said",
    ["Your message asks for the system prompt of another agent", "The system is overloaded", "stream of tokens ended"],
)
def test_words_on_something_else_teach_nothing(said: str) -> None:
    assert learn_from_refusal(PLAIN, said, INSTRUCTED, ("model", "messages", "max_tokens", "stream")) is None


@each(
    "reply",
    [
        told("I do not like max_tokens", 401),
        told("max_tokens per minute exceeded", 429),
        told("The model crashed"),
        told("Your prompt was flagged"),
        fails(400, b"<html><title>Bad request</title></html>"),
    ],
)
def test_a_refusal_that_names_nothing_of_the_request_is_final(reply: Reply) -> None:
    @strictly(lambda body: reply)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed()).reason == "endpoint_refused"
        assert len(endpoint.asked) == 1


def test_an_endpoint_that_refuses_whatever_it_is_sent_is_left_in_peace() -> None:
    @strictly(lambda body: told("response_format, max_tokens and stream_options are not supported"))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed(call_of(answer_schema=PLAN, stream_to="_INBOX.x.1"))
        assert failed.reason == "endpoint_refused"
        assert len(endpoint.asked) <= 8


# --- contexts


def tokens_of(body: Mapping[str, Any]) -> int:
    return sum(len(message["content"]) for message in body["messages"]) // 3


def only(limit: int, words: str) -> Judge:
    """Refuse, in some endpoint's words, what does not fit into so many tokens of three characters."""

    def judge(body: Mapping[str, Any]) -> Reply | None:
        prompt, answer = tokens_of(body), body.get("max_tokens", 0)
        if prompt + answer <= limit:
            return None
        return told(words.format(limit=limit, prompt=prompt, answer=answer, total=prompt + answer))

    return judge


OVERFLOWS = {
    "OpenAI": "This model's maximum context length is {limit} tokens. However, you requested {total} tokens ({prompt} "
    "in the messages, {answer} in the completion). Please reduce the length of the messages or completion.",
    "vLLM": "'max_tokens' or 'max_completion_tokens' is too large: {answer}. This model's maximum context length is "
    "{limit} tokens and your request has {prompt} input tokens ({answer} > {limit} - {prompt}).",
    "LM Studio": "Trying to keep the first {prompt} tokens when context the overflows. However, the model is loaded "
    "with context length of only {limit} tokens, which is not enough.",
    "TGI": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {limit}. Given: {prompt} `inputs` "
    "tokens and {answer} `max_new_tokens`",
    "Anthropic": "prompt is too long: {prompt} tokens > {limit} maximum",
    "llama-cpp-python": "Requested tokens ({total}) exceed context window of {limit}",
    "Groq": "Please reduce the length of the messages or completion.",
    "one that says next to nothing": "input too long",
}


@each("name", sorted(OVERFLOWS))
def test_a_prompt_too_long_for_the_model_is_cut_to_fit_and_the_cut_is_told(name: str) -> None:
    messages = (
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(role="user", content=LOG[:3000]),
        ChatMessage(role="assistant", content="Well."),
        ChatMessage(role="user", content=LOG + QUESTION),
    )
    call = call_of(messages=messages)

    @strictly(only(2000, OVERFLOWS[name]))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        found = await asking.completed(call)
        assert [(cut.part, cut.kept < cut.characters) for cut in found.cuts] == [("turns", True), ("text", True)]
        sent = endpoint.asked[-1].document["messages"]
        assert [message["role"] for message in sent] == ["system", "user"]
        assert sent[-1]["content"].startswith("0000:")
        assert sent[-1]["content"].endswith(QUESTION)
        assert sum(cut.kept for cut in found.cuts) > 2000
        known = len(endpoint.asked)
        assert (await asking.completed(call)).attempts == 1
        assert len(endpoint.asked) == known + 1


def test_a_context_that_an_error_object_names_is_taken() -> None:
    overflow = told(
        "the request exceeds the available context size",
        type="exceed_context_size_error",
        n_prompt_tokens=7000,
        n_ctx=2048,
    )

    @strictly(lambda body: overflow if tokens_of(body) > 1600 else None)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        found = await asking.completed(call_of(messages=(ChatMessage(role="user", content=LOG + QUESTION),)))
        assert found.attempts == 2
        assert endpoint.asked[-1].document["messages"][0]["content"].endswith(QUESTION)


def test_a_context_that_is_set_is_kept_to_from_the_first_call_on() -> None:
    @strictly(lambda body: None, context=1024)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        found = await asking.completed(call_of(messages=(ChatMessage(role="user", content=LOG),)))
        assert found.attempts == 1
        assert [cut.part for cut in found.cuts] == ["text"]
        sent = endpoint.asked[0].document
        assert sum(estimate(message["content"]) for message in sent["messages"]) + sent["max_tokens"] <= 1024


def test_no_data_gets_out_of_its_block_when_a_prompt_is_cut() -> None:
    block = f"[data 0a1b: document, part 1 of 1]\n{LOG}\n[end of data 0a1b]"
    call, cuts = fit_to_context(
        call_of(messages=(ChatMessage(role="user", content=f"{block}\n\n{LOG}{QUESTION}"),)), 4096
    )
    content = call.messages[0].content
    assert content.startswith("[data 0a1b: document, part 1 of 1]\n0000:")
    assert content.count("[end of data 0a1b]") == 1
    assert content.endswith(QUESTION)
    assert [cut.part for cut in cuts] == ["document, part 1 of 1", "text"]
    assert estimate(content) + call.most_tokens <= 4096


def test_what_fits_is_sent_as_it_is() -> None:
    call = call_of(messages=(ChatMessage(role="user", content=LOG),))
    assert fit_to_context(call, 0) == (call, ())
    assert fit_to_context(call, 100_000) == (call, ())
    assert fit_to_context(call, 700)[1][0] == Cut(
        part="text", characters=len(LOG), kept=fit_to_context(call, 700)[1][0].kept
    )


@each("said", ["max_tokens must be positive", "The image is too large for this endpoint to show", ""])
def test_other_complaints_are_not_taken_for_one_of_the_context(said: str) -> None:
    assert overflow_in(said) is None
