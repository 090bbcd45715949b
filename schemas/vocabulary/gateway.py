"""What comes in from outside. Owner: ``gateway``, the entry point that accepts inputs."""

from functools import partial
from itertools import chain, islice
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.effectors.model_calls import Masked, Tokens
from schemas.entry import Entry
from schemas.event import Event, Milliseconds, Personal
from schemas.intake.limits import MOST_LAYERS
from schemas.vocabulary.reflex import AnswerFault

Role = Literal["system", "user", "assistant", "tool", "document"]
"""Who speaks in a layer of a prompt; ``assistant`` is what a model is said to have answered before."""

Purpose = Literal["answer", "check", "forward"]
"""What an input was sent for.

``answer``: we answer it. ``check``: the guards alone are asked. ``forward``: whoever sent it asks a model of its own
once the guards have let it pass, and reports the result (``input.answered``, ``input.abandoned``).
"""

MOST_CHOICES = 128
"""Answers of a model to one input that are recorded: as many as OpenAI's ``n`` allows."""

MOST_TOOL_CALLS = 256
"""Calls of tools in an answer that are recorded."""

AnswerEnded = Annotated[str, msgspec.Meta(max_length=64)]
"""How a model's answer ended, in its endpoint's own word, such as ``stop``, ``length`` or ``tool_calls``."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a prompt and the role it speaks in."""

    role: Role
    content: Personal


class InputReceived(Event, frozen=True, kw_only=True, tag="forged_id.input.received"):
    """An input was accepted: from here on it gets exactly one ``response.emitted``.

    ``text`` is what the user said; ``layers`` are the other parts of the prompt, if any. ``situation`` is its kind of
    situation, a name that the caller chooses: precedents of the same kind are more similar to it. ``reply_to`` is a
    NATS inbox for a copy of the answer (empty: none). The exchange is ended as FAILED when nothing else has ended it
    ``deadline_after_ms`` after the server stored it. ``label`` is the caller's own id for the input; ``stream``:
    ``reply_to`` also gets the answer's text in parts while a model speaks.

    ``documents`` and ``tool_results`` are a short form for those who publish this event themselves. When the event is
    read, both are moved to the end of ``layers``, so that no guard can leave them out.

    ``purpose`` says who answers: see :data:`Purpose`. ``rerun_of`` names the exchange whose input is sent again by this
    one; empty: it is no rerun.

    ``left_out`` counts layers beyond ``schemas.intake.limits.MOST_LAYERS``, which no reader of the event sees. Every
    guard counts them against the input (``layers``, in its ``unread``), and it is refused. No entry point accepts that.
    """

    text: Personal
    layers: tuple[Layer, ...] = ()
    situation: str = "general"
    reply_to: str = ""
    deadline_after_ms: Milliseconds = 60_000
    label: str = ""
    stream: bool = False
    documents: tuple[Personal, ...] = ()
    tool_results: tuple[Personal, ...] = ()
    left_out: Annotated[int, msgspec.Meta(ge=0)] = 0
    purpose: Purpose = "answer"
    rerun_of: str = ""

    def __post_init__(self) -> None:
        """Make layers of documents and tool results, and drop layers beyond ``MOST_LAYERS``."""
        given = len(self.layers) + len(self.documents) + len(self.tool_results)
        if given == len(self.layers) <= MOST_LAYERS:
            return
        # Lazily, so that only those are made that are kept: a message of the log has room for two hundred thousand
        # texts.
        more = chain(
            (Layer(role="document", content=content) for content in self.documents),
            (Layer(role="tool", content=content) for content in self.tool_results),
        )
        layers = (*self.layers[:MOST_LAYERS], *islice(more, max(0, MOST_LAYERS - len(self.layers))))
        left_out = self.left_out + given - len(layers)
        for name, value in (("layers", layers), ("documents", ()), ("tool_results", ()), ("left_out", left_out)):
            msgspec.structs.force_setattr(self, name, value)


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a model's answer asks to have called; ``arguments`` are as the model wrote them."""

    name: Annotated[str, msgspec.Meta(max_length=256)]
    arguments: Personal = ""


class AnswerChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a model, where it may have been asked for several."""

    text: Personal = ""
    tool_calls: Annotated[tuple[ToolCall, ...], msgspec.Meta(max_length=MOST_TOOL_CALLS)] = ()
    finish_reason: AnswerEnded = ""


class InputAnswered(Event, frozen=True, kw_only=True, tag="forged_id.input.answered"):
    """The model that a forwarded input went to has answered.

    ``model`` names it, as its endpoint does. Tokens are the endpoint's own count; None: it gave none. ``left_out``
    counts characters, choices and calls that there was no room for: what was delivered is longer than what is here.
    ``stopped_for`` is what the gateway found in a streamed answer, so that it ended the stream: of the texts here,
    ``delivered`` characters had been sent before. ``masked`` counts, by kind, the personal data that the model was
    shown placeholders for; ``recogniser`` names what recognised them. The texts here have the values again.
    """

    choices: Annotated[tuple[AnswerChoice, ...], msgspec.Meta(max_length=MOST_CHOICES)]
    model: Annotated[str, msgspec.Meta(max_length=256)] = ""
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    left_out: Annotated[int, msgspec.Meta(ge=0)] = 0
    stopped_for: Annotated[tuple[AnswerFault, ...], msgspec.Meta(max_length=8)] = ()
    delivered: Annotated[int, msgspec.Meta(ge=0)] | None = None
    masked: Annotated[tuple[Masked, ...], msgspec.Meta(max_length=16)] = ()
    recogniser: Annotated[str, msgspec.Meta(max_length=256)] = ""


class InputAbandoned(Event, frozen=True, kw_only=True, tag="forged_id.input.abandoned"):
    """A forwarded input gets no answer: its model gave none, or nobody waits for one.

    ``status`` is the HTTP status of the model's endpoint, where it gave one. ``withheld_for``: the words with which it
    refused were withheld for these faults. ``masked`` is as in ``input.answered``.
    """

    reason: Literal["upstream_unreachable", "upstream_overdue", "upstream_refused", "upstream_cut", "client_left"]
    status: Annotated[int, msgspec.Meta(ge=100, le=599)] | None = None
    withheld_for: Annotated[tuple[AnswerFault, ...], msgspec.Meta(max_length=8)] = ()
    masked: Annotated[tuple[Masked, ...], msgspec.Meta(max_length=16)] = ()
    recogniser: Annotated[str, msgspec.Meta(max_length=256)] = ""


_entry = partial(Entry, owner="gateway", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="An input was accepted; it will get exactly one response.emitted.",
        sample=InputReceived(text="What is the capital of Peru?", label="line-1"),
    ),
    _entry(
        meaning="The model that a forwarded input went to has answered.",
        sample=InputAnswered(
            choices=(AnswerChoice(text="Lima.", finish_reason="stop"),),
            model="gpt-4o-mini",
            prompt_tokens=14,
            completion_tokens=2,
        ),
    ),
    _entry(
        meaning="A forwarded input gets no answer: its model gave none, or nobody waits for one.",
        sample=InputAbandoned(reason="upstream_refused", status=429),
    ),
)
