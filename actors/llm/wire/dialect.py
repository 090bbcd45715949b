"""What an endpoint does not support, learned from its refusals, and what it is sent instead. Pure.

A refusal that names a parameter is not a failure: the parameter is translated or left out, and the same request is sent
again. What was learned applies to the endpoint, or to one model where it depends on the model, until the process ends.
"""

import re
from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from actors.contract.text.shortening import estimate
from actors.llm.wire.refusals import overflow_in
from schemas.effectors.model_calls import ModelCall

_LEAST_CONTEXT = 256
_MOST_DENSE = 4.0


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """The form of requests to an endpoint.

    Attributes:
        length: The name of the parameter that limits the answer; empty: none.
        longest: The highest limit that the model accepts; 0: any.
        form: How a schema is requested; ``prompt`` puts it into the instructions.
        stream: Whether answers are streamed if the caller wants that.
        stream_options: Whether a stream is asked for its usage.
        system: Whether instructions have a role of their own.
        context: Tokens of prompt and answer together; 0: unknown.
        density: Most tokens of the model for each of our estimated tokens, from 1.
    """

    length: Literal["max_tokens", "max_completion_tokens", ""] = "max_tokens"
    longest: int = 0
    form: Literal["json_schema", "json_object", "prompt"] = "json_schema"
    stream: bool = True
    stream_options: bool = True
    system: bool = True
    context: int = 0
    density: float = 1.0

    def adaptations_of(self, call: ModelCall) -> tuple[str, ...]:
        """Return which parts of a call are sent differently than to an endpoint that supports everything."""
        sent = {
            f"max_tokens is sent as {self.length}" if self.length else "max_tokens is left out": (
                self.length != "max_tokens"
            ),
            f"max_tokens is at most {self.longest}": 0 < self.longest < call.most_tokens,
            f"json_schema is sent as {self.form}": call.answer_schema is not None and self.form != "json_schema",
            "stream is left out": bool(call.stream_to) and not self.stream,
            "stream_options is left out": bool(call.stream_to) and self.stream and not self.stream_options,
            "the system role is sent as user": (
                not self.system and any(said.role == "system" for said in call.messages)
            ),
        }
        return tuple(name for name, differs in sent.items() if differs)


_SHARED = ("length", "stream_options")
"""Fields that apply to an endpoint, whichever of its models is asked."""


PLAIN = Dialect()
"""The form of requests to an endpoint about which nothing was learned."""


class Dialects:
    """What was learned about an endpoint and its models; ``context`` is their configured context."""

    def __init__(self, context: int = 0) -> None:
        self._shared: dict[str, object] = {}
        self._own: dict[str, Dialect] = {}
        self._first = Dialect(context=context)

    def of(self, model: str) -> Dialect:
        """Return the form of requests to a model."""
        return msgspec.structs.replace(self._own.get(model, self._first), **self._shared)

    def learn(self, model: str, changed: Mapping[str, object]) -> None:
        """Apply changes to requests to a model from now on; what another request has learned meanwhile is kept."""
        self._own[model] = msgspec.structs.replace(self.of(model), **changed)
        self._shared |= {name: value for name, value in changed.items() if name in _SHARED}


_NOT = (
    r"(?:not (?:currently )?(?:support|allow|permit|enabl|available|recogni)|unsupported|unknown|unrecogni|invalid"
    r"|extra|unexpected|unavailable|forbidden|must be|deprecated|cannot|can't|does not|disabled|verified)"
)
_ROLE = r"(?:system\W{0,3}(?:role|message|prompt|instruction)s?\b|\brole\b.{0,40}\bsystem\b|developer instruction)"
_SYSTEM = re.compile(
    rf"(?i){_ROLE}.{{0,60}}{_NOT}|{_NOT}.{{0,60}}{_ROLE}|\brole\b.{{0,20}}{_NOT}.{{0,20}}\bsystem\b"
    r"|should be \W{0,2}user\b|roles must alternate|only user(?:,| and) (?:model|assistant) roles"
)
_STREAM = re.compile(
    rf"(?i)(?:\bstream(?:ing)?\b.{{0,60}}{_NOT}|{_NOT}.{{0,60}}\bstream(?:ing|ed)?\b|param stream\b)",
)
_FORM = re.compile(r"(?i)response_format|json[_ -]?(?:schema|object|mode)|structured[_ -]output|grammar")
_LENGTH = re.compile(r"(?i)max_(?:completion_)?tokens|max_new_tokens|max_?output_?tokens")
_MOST = re.compile(
    r"(?i)(?:at most|no more than|less than or equal to|up to|cannot exceed|must not exceed|<=|\u2264"
    r"|maximum(?: value)?(?: allowed)?(?: of| is|:)?|limit(?: of| is|:)?|[\[(]1, ?)\s*(\d{1,7})"
)


def learn_from_refusal(dialect: Dialect, reason: str, call: ModelCall, sent: Collection[str]) -> Dialect | None:
    """Return the dialect after a refusal, None where it does not say what is to be sent otherwise.

    Args:
        dialect: What the refused request was sent in.
        reason: The whole reason that the endpoint gave.
        call: The request; ``sent`` names the parameters that were sent of it.
    """
    if overflow_in(reason) is not None:
        return _shorter(dialect, reason, call)
    if "stream_options" in sent and re.search(r"(?i)stream_options|include_usage", reason):
        return msgspec.structs.replace(dialect, stream_options=False)
    if dialect.length in sent and _LENGTH.search(reason):
        return _bounded(dialect, reason, call)
    if "response_format" in sent and _FORM.search(reason):
        weaker = "json_object" if dialect.form == "json_schema" else "prompt"
        return msgspec.structs.replace(dialect, form=weaker)
    if dialect.system and call.messages[0].role == "system" and _SYSTEM.search(reason):
        return msgspec.structs.replace(dialect, system=False)
    if "stream" in sent and _STREAM.search(reason):
        return msgspec.structs.replace(dialect, stream=False)
    return None


def _bounded(dialect: Dialect, said: str, call: ModelCall) -> Dialect:
    most = _MOST.search(said)
    bound = int(most[1]) if most is not None else 0
    if 0 < bound < min(call.most_tokens, dialect.longest or call.most_tokens):
        return msgspec.structs.replace(dialect, longest=bound)
    instead = "max_completion_tokens" if dialect.length == "max_tokens" else ""
    return msgspec.structs.replace(dialect, length=instead)


def _shorter(dialect: Dialect, said: str, call: ModelCall) -> Dialect:
    """Return the dialect with a smaller context, or with more tokens for each estimated token."""
    told = overflow_in(said)
    assert told is not None
    estimated = sum(estimate(each.content) for each in call.messages)
    if told.context >= _LEAST_CONTEXT and told.context != dialect.context:
        dense = told.prompt / estimated if estimated and told.prompt < 10 * estimated else 1.0
        return msgspec.structs.replace(dialect, context=told.context, density=min(_MOST_DENSE, max(1.0, dense)))
    if dialect.context:
        return msgspec.structs.replace(dialect, density=min(2 * _MOST_DENSE, dialect.density * 1.5))
    context = max(_LEAST_CONTEXT, (estimated + call.most_tokens) * 3 // 4)
    return msgspec.structs.replace(dialect, context=context)
