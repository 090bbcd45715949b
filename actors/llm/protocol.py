"""OpenAI's Chat Completions: what is sent, and what of the answers is read. Pure.

Only what Ollama, vLLM, llama.cpp and OpenAI all understand. Fields that are not named here are passed over.
"""

from typing import Any, TypeVar

import msgspec

from schemas.calls import ModelCall, Tokens

T = TypeVar("T")

MOST_WORD = 200
"""Characters of an endpoint's names that are kept."""

MOST_TOKENS = 2**53 - 1
"""The highest count that every reader of JSON takes."""


class NotTheProtocol(ValueError):
    """An endpoint answered with something else than the protocol says."""


class Refused(ValueError):
    """An endpoint told of an error under a good status; ``status`` is the HTTP status it names in it, 0 for none."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"an error in the answer, {status or 'without a status'}")


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint came to; ``model`` and ``finish_reason`` are in its own words, tokens 0 where it tells none."""

    text: str
    model: str = ""
    finish_reason: str = ""
    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0


class Usage(msgspec.Struct, frozen=True):
    """Tokens used."""

    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    finish_reason: str | None = None


class _Answer(msgspec.Struct, frozen=True):
    choices: tuple[_Choice, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw()


class _Part(msgspec.Struct, frozen=True):
    delta: _Message | None = None
    finish_reason: str | None = None


class Chunk(msgspec.Struct, frozen=True):
    """One event of a stream; the last may carry the usage and no choice. ``error`` is set where it broke off."""

    choices: tuple[_Part, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw()

    @property
    def text(self) -> str:
        """The piece of text it brings."""
        delta = self.choices[0].delta if self.choices else None
        return (delta.content or "") if delta is not None else ""

    @property
    def broken(self) -> bool:
        """Whether it tells of an error."""
        return _is_set(self.error)


class _Listed(msgspec.Struct, frozen=True):
    id: str


class _Coded(msgspec.Struct, frozen=True):
    code: int | str | None = None


class _Listing(msgspec.Struct, frozen=True):
    data: tuple[_Listed, ...] | None = ()
    error: msgspec.Raw = msgspec.Raw()


def request_body(call: ModelCall, model: str) -> bytes:
    """Return the body that asks ``model`` for a call's answer."""
    body: dict[str, Any] = {"model": model, "messages": call.messages, "max_tokens": call.most_tokens}
    if call.answer_schema is not None:
        schema = {"name": "answer", "schema": call.answer_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if call.stream_to:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return msgspec.json.encode(body)


def read_answer(body: bytes) -> Completion:
    """Read a whole answer; raises NotTheProtocol, or Refused where it tells of an error."""
    answer = _decode(body, _Answer)
    if _is_set(answer.error):
        raise Refused(_code_of(answer.error))
    if not answer.choices:
        raise NotTheProtocol("an answer without a choice")
    choice = answer.choices[0]
    return completion(choice.message.content or "", answer.model, choice.finish_reason, answer.usage)


def read_chunk(data: bytes) -> Chunk:
    """Read one event of a stream; raises NotTheProtocol."""
    return _decode(data, Chunk)


def read_models(body: bytes) -> tuple[str, ...]:
    """Read the names in an endpoint's list of models; raises as :func:`read_answer` does."""
    listing = _decode(body, _Listing)
    if _is_set(listing.error):
        raise Refused(_code_of(listing.error))
    return tuple(listed.id for listed in listing.data or ())


def completion(text: str, model: str | None, finish_reason: str | None, usage: Usage | None) -> Completion:
    """Put a completion together from what an endpoint told, its own words cut; a count below zero is none."""
    told = usage or Usage()
    return Completion(
        text=text,
        model=(model or "")[:MOST_WORD],
        finish_reason=(finish_reason or "")[:MOST_WORD],
        prompt_tokens=min(max(told.prompt_tokens or 0, 0), MOST_TOKENS),
        completion_tokens=min(max(told.completion_tokens or 0, 0), MOST_TOKENS),
    )


def _is_set(error: msgspec.Raw) -> bool:
    return bytes(error) not in (b"", b"null", b"false", b'""')


def _code_of(error: msgspec.Raw) -> int:
    """Return the HTTP status that an error names as its code, 0 where it names none."""
    try:
        code = int(msgspec.json.decode(error, type=_Coded).code or 0)
        return code if 400 <= code <= 599 else 0
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return 0


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise NotTheProtocol(str(wrong)) from wrong
