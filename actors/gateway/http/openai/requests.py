"""Requests for a completion, read as tolerantly as OpenAI reads them. Pure.

Unknown parameters are accepted, unlike in all other requests: clients send what the newest models understand. A known
parameter of a wrong type is refused. So is a duplicate key: the guards would read one value, and the model the other.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

import msgspec

from actors.gateway.external_events import InvalidField
from schemas.intake import strict
from schemas.intake.nearest_name import nearest_name

MODEL = "neuraxis"
"""The name of the model that is Neuraxis itself: guards, memory, router and its own model."""

_NAMED_ELSEWHERE = {
    "agent": (
        "its agent is that of the key (`neuraxis keys add --agent`), or of the header X-Neuraxis-User where each user "
        "has one"
    ),
    "session": "name the session in the header X-Neuraxis-Session, or as user",
}
"""Fields of inputs at the other endpoints that requests for completions do not have -> what to do.

Otherwise they would be ignored, like unknown parameters, and callers would share an agent, and what it remembers.
"""

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
"""Types of parts that are text."""

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]


class Part(msgspec.Struct, frozen=True):
    """A part of a message's content; a text, or something else, which its ``type`` names."""

    type: str
    text: str | None = None


class Message(msgspec.Struct, frozen=True):
    """A message, with the fields that are checked here."""

    role: Role
    content: str | list[Part] | None = None


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream has besides the answer."""

    include_usage: bool | None = None


class ChatRequest(msgspec.Struct, frozen=True):
    """A request for a completion: the parameters that have an effect here; any others are accepted, too.

    ``model`` is ``neuraxis`` for an answer of Neuraxis itself, or a model of the upstream. ``user`` is the session of
    the conversation if the header ``x-neuraxis-session`` names none.
    """

    model: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    n: Annotated[int, msgspec.Meta(ge=1)] | None = None
    response_format: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None
    stop: str | list[str] | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None

    @property
    def with_usage(self) -> bool:
        """Whether the stream is to end with its usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


class SamplingParameters(msgspec.Struct, frozen=True):
    """The standard parameters that change nothing for model ``neuraxis``, with the ranges of OpenAI's reference.

    A value that no model takes is refused, as other endpoints do: its sender has made a mistake.
    """

    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    logit_bias: dict[str, Annotated[float, msgspec.Meta(ge=-100, le=100)]] | None = None
    seed: int | None = None
    parallel_tool_calls: bool | None = None
    store: bool | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    service_tier: str | None = None


class ParsedRequest(msgspec.Struct, frozen=True):
    """A request, and its complete body."""

    request: ChatRequest
    body: dict[str, Any]


def read_request(raw: bytes) -> ParsedRequest:
    """Read a body; raises InvalidField, which names the parameter."""
    try:
        body = strict.read_plain(raw)
        if not isinstance(body, dict):
            raise InvalidField("", "the body is no JSON object: send model and messages")
        try:
            return ParsedRequest(msgspec.convert(body, ChatRequest), body)
        except msgspec.ValidationError as wrong:
            raise strict.validation_error(ChatRequest, wrong, value=body) from wrong
    except strict.BadInput as wrong:
        raise InvalidField(wrong.field, str(wrong), wrong.code) from wrong


def check_answerable(given: ParsedRequest, query: Collection[str] = ()) -> None:
    """Raise InvalidField for parameters that model ``neuraxis`` does not support and that must not be ignored.

    ``query`` has the names of the query parameters. Standard parameters that change nothing must be valid, too
    (:class:`SamplingParameters`).
    """
    request = given.request
    for name, hint in _NAMED_ELSEWHERE.items():
        if name in given.body or name in query:
            raise InvalidField(name, f"a chat with model {MODEL} has no {name}: {hint}", "unknown_field")
    try:
        msgspec.convert(given.body, SamplingParameters)
    except msgspec.ValidationError as wrong:
        invalid = strict.validation_error(SamplingParameters, wrong, value=given.body)
        raise InvalidField(invalid.field, str(invalid), invalid.code) from wrong
    if (request.n or 1) > 1:
        raise _unsupported("n", f"model {MODEL} gives one answer, and n is {request.n}: leave n out, or ask again")
    if (request.response_format or {}).get("type", "text") != "text":
        raise _unsupported("response_format", f"model {MODEL} answers in plain text: leave response_format out")
    for name, choice in (("tool_choice", request.tool_choice), ("function_call", request.function_call)):
        if choice not in (None, "none", "auto"):
            raise _unsupported(name, f"model {MODEL} calls no tools of a request: leave {name} out, or make it none")
    if request.stop:
        raise _unsupported(
            "stop", f"model {MODEL} knows no stop sequences: leave stop out, and cut the answer yourself"
        )
    if request.logprobs:
        raise _unsupported("logprobs", f"model {MODEL} has no probabilities of tokens: leave logprobs out")
    if set(request.modalities or ()) - {"text"}:
        raise _unsupported("modalities", f"model {MODEL} answers in text alone: leave modalities out")
    for index, message in enumerate(request.messages):
        # A message of an assistant may consist of tool calls only; and a tool may have returned nothing.
        if message.role not in ("assistant", "function") and (message.content is None or message.content == []):
            where = f"messages[{index}].content"
            raise InvalidField(where, f"{where} is missing: say what the {message.role} says", "missing_field")
        for number, part in enumerate(message.content if isinstance(message.content, list) else ()):
            if part.text is None:
                where = f"messages[{index}].content[{number}]"
                if part.type in TEXT_PARTS:
                    raise _textless(where, given.body["messages"][index]["content"][number])
                raise _unsupported(
                    where, f"model {MODEL} reads text alone, and {where} is {strict.quoted_name(part.type)}"
                )


def _textless(where: str, part: Mapping[str, Any]) -> InvalidField:
    """Return the error of a part of text without a text; it names the field that may have been meant by it."""
    message = f"{where}.text is missing: a part of type {part['type']} needs type and text"
    near = next((name for name in part if name not in ("type", "text") and nearest_name(name, ("text",))), "")
    if near:
        message += f"; there is no field {strict.quoted_name(near)}: did you mean 'text'?"
    return InvalidField(f"{where}.text", message, "missing_field")


def _unsupported(field: str, message: str) -> InvalidField:
    return InvalidField(field, message, "unsupported_parameter")
