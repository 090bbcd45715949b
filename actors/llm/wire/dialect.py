"""A dialect: what an endpoint does not support, learned from its refusals, and what it is sent instead. Pure.

A refusal that names a parameter is not a failure: the parameter is translated or left out, and the same request is sent
again. What was learned applies to the endpoint, or to one model if it depends on the model, until the process ends.
"""

import re
from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from actors.contract.text.shortening import estimate
from actors.llm.wire.refusals import overflow_in
from schemas.effectors.model_calls import ModelCall

_LEAST_CONTEXT = 256
"""Tokens; a smaller context that a refusal states is not believed."""

_MOST_DENSITY = 4.0
"""Most tokens of a model for each estimated token that a refusal's numbers may suggest."""

_MOST_RAISED_DENSITY = 2 * _MOST_DENSITY
"""Most tokens of a model for each estimated token, if refusals state no number and it is raised step by step."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """The form of requests to an endpoint.

    Attributes:
        length_parameter: The name of the parameter that limits the answer; empty: none.
        most_tokens: The highest limit that the model accepts; 0: any.
        answer_form: How an answer by a schema is requested; ``prompt`` puts the schema into the instructions.
        stream: Whether answers are streamed if the caller wants that.
        stream_options: Whether a stream is asked for its usage.
        system_role: Whether instructions have a role of their own.
        context: Tokens of prompt and answer together; 0: unknown.
        density: Most tokens of the model for each token that ``estimate`` counts, from 1.
    """

    length_parameter: Literal["max_tokens", "max_completion_tokens", ""] = "max_tokens"
    most_tokens: int = 0
    answer_form: Literal["json_schema", "json_object", "prompt"] = "json_schema"
    stream: bool = True
    stream_options: bool = True
    system_role: bool = True
    context: int = 0
    density: float = 1.0

    def adaptations_of(self, call: ModelCall) -> tuple[str, ...]:
        """Return which parts of a call are sent differently than to an endpoint that supports everything."""
        sent = {
            f"max_tokens is sent as {self.length_parameter}" if self.length_parameter else "max_tokens is left out": (
                self.length_parameter != "max_tokens"
            ),
            f"max_tokens is at most {self.most_tokens}": 0 < self.most_tokens < call.most_tokens,
            f"json_schema is sent as {self.answer_form}": call.answer_schema is not None
            and self.answer_form != "json_schema",
            "stream is left out": bool(call.stream_to) and not self.stream,
            "stream_options is left out": bool(call.stream_to) and self.stream and not self.stream_options,
            "the system role is sent as user": (
                not self.system_role and any(message.role == "system" for message in call.messages)
            ),
        }
        return tuple(name for name, differs in sent.items() if differs)


_SHARED = ("length_parameter", "stream_options")
"""Fields that apply to an endpoint, whichever of its models is asked."""


PLAIN = Dialect()
"""The form of requests to an endpoint about which nothing was learned."""


class Dialects:
    """What was learned about an endpoint and its models; ``context`` is their context in tokens, as configured."""

    def __init__(self, context: int = 0) -> None:
        self._shared: dict[str, object] = {}  # the fields that apply to all models
        self._own: dict[str, Dialect] = {}  # by model
        self._default = Dialect(context=context)

    def of(self, model: str) -> Dialect:
        """Return the form of requests to a model."""
        return msgspec.structs.replace(self._own.get(model, self._default), **self._shared)

    def learn(self, model: str, changed: Mapping[str, object]) -> None:
        """Apply changes to requests to a model from now on; what another request has learned meanwhile is kept."""
        self._own[model] = msgspec.structs.replace(self.of(model), **changed)
        self._shared |= {name: value for name, value in changed.items() if name in _SHARED}


# The expressions below recognise refusals by words that endpoints use: what is refused, near a word of refusal.

_NOT = (
    r"(?:not (?:currently )?(?:support|allow|permit|enabl|available|recogni)|unsupported|unknown|unrecogni|invalid"
    r"|extra|unexpected|unavailable|forbidden|must be|deprecated|cannot|can't|does not|disabled|verified)"
)
"""Words of refusal."""

_ROLE = r"(?:system\W{0,3}(?:role|message|prompt|instruction)s?\b|\brole\b.{0,40}\bsystem\b|developer instruction)"
"""The role ``system``."""

_SYSTEM = re.compile(
    rf"(?i){_ROLE}.{{0,60}}{_NOT}|{_NOT}.{{0,60}}{_ROLE}|\brole\b.{{0,20}}{_NOT}.{{0,20}}\bsystem\b"
    r"|should be \W{0,2}user\b|roles must alternate|only user(?:,| and) (?:model|assistant) roles"
)
"""A refusal of instructions in a role of their own."""

_STREAM = re.compile(rf"(?i)(?:\bstream(?:ing)?\b.{{0,60}}{_NOT}|{_NOT}.{{0,60}}\bstream(?:ing|ed)?\b|param stream\b)")
"""A refusal of streams."""

_FORM = re.compile(r"(?i)response_format|json[_ -]?(?:schema|object|mode)|structured[_ -]output|grammar")
"""A mention of the requested format of the answer."""

_LENGTH = re.compile(r"(?i)max_(?:completion_)?tokens|max_new_tokens|max_?output_?tokens")
"""A mention of the limit of the answer's length."""

_MOST = re.compile(
    r"(?i)(?:at most|no more than|less than or equal to|up to|cannot exceed|must not exceed|<=|\u2264"
    r"|maximum(?: value)?(?: allowed)?(?: of| is|:)?|limit(?: of| is|:)?|[\[(]1, ?)\s*(\d{1,7})"
)
"""The highest value that is allowed, as a number."""


def learn_from_refusal(dialect: Dialect, reason: str, call: ModelCall, sent: Collection[str]) -> Dialect | None:
    """Return the dialect after a refusal; None if the refusal does not say what must be sent differently.

    Args:
        dialect: The dialect in which the refused request was sent.
        reason: The whole reason that the endpoint gave.
        call: The request; ``sent`` names the parameters that were sent of it.
    """
    if overflow_in(reason) is not None:
        return _with_smaller_context(dialect, reason, call)
    if "stream_options" in sent and re.search(r"(?i)stream_options|include_usage", reason):
        return msgspec.structs.replace(dialect, stream_options=False)
    if dialect.length_parameter in sent and _LENGTH.search(reason):
        return _with_other_length(dialect, reason, call)
    if "response_format" in sent and _FORM.search(reason):
        weaker_form = "json_object" if dialect.answer_form == "json_schema" else "prompt"
        return msgspec.structs.replace(dialect, answer_form=weaker_form)
    if dialect.system_role and call.messages[0].role == "system" and _SYSTEM.search(reason):
        return msgspec.structs.replace(dialect, system_role=False)
    if "stream" in sent and _STREAM.search(reason):
        return msgspec.structs.replace(dialect, stream=False)
    return None


def _with_other_length(dialect: Dialect, said: str, call: ModelCall) -> Dialect:
    most = _MOST.search(said)
    bound = int(most[1]) if most is not None else 0
    if 0 < bound < min(call.most_tokens, dialect.most_tokens or call.most_tokens):
        return msgspec.structs.replace(dialect, most_tokens=bound)
    other_name = "max_completion_tokens" if dialect.length_parameter == "max_tokens" else ""
    return msgspec.structs.replace(dialect, length_parameter=other_name)


def _with_smaller_context(dialect: Dialect, said: str, call: ModelCall) -> Dialect:
    """Return the dialect with a smaller context, or with more tokens for each estimated token."""
    overflow = overflow_in(said)
    assert overflow is not None
    estimated = sum(estimate(each.content) for each in call.messages)
    if overflow.context >= _LEAST_CONTEXT and overflow.context != dialect.context:
        density = overflow.prompt / estimated if estimated and overflow.prompt < 10 * estimated else 1.0
        return msgspec.structs.replace(dialect, context=overflow.context, density=min(_MOST_DENSITY, max(1.0, density)))
    if dialect.context:
        return msgspec.structs.replace(dialect, density=min(_MOST_RAISED_DENSITY, dialect.density * 1.5))
    context = max(_LEAST_CONTEXT, (estimated + call.most_tokens) * 3 // 4)
    return msgspec.structs.replace(dialect, context=context)
