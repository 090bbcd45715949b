"""Answers. Owner: ``responder``, the only writer of an exchange's end."""

from typing import Literal

import msgspec

from schemas.actor import Scope
from schemas.effectors.model_calls import ChatMessage, Cut, Ended, ModelCall, Tokens
from schemas.entry import Entry, own_entries, own_events
from schemas.event import Event, Personal, Unit
from schemas.vocabulary.memory import Layer
from schemas.vocabulary.router import Mode

Stage = Literal["REFLEX", "INTUITION", "COHERENCE", "BREAKER", "ARBITER", "DELIBERATIVE"]
"""What ends an exchange: a guard, or the deliberation behind all of them."""

Action = Literal["BLOCKED", "REJECTED", "WITHHELD", "PASSED", "EXECUTED", "FAILED"]
"""How an exchange ends.

BLOCKED: reflex met a known threat. REJECTED: a later guard refused the input. WITHHELD: it got a fixed notice only.
PASSED: every guard let an input pass that was only to be checked. EXECUTED: it was answered, by a precedent, fixed
texts or a model. FAILED: a stage failed or kept silent.
"""


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """A memory in the context of an answer: how strongly it was recalled, and its share of the context's tokens."""

    id: str
    layer: Layer
    energy: Unit
    tokens: Tokens
    share: Unit


class IdentityUse(msgspec.Struct, frozen=True, kw_only=True):
    """How much a model's answer used the soul in its prompt: the text that describes who the agent is.

    ``stable`` names the soul's parts, ``current`` those of which the answer used a characteristic word; ``overlap`` is
    the Jaccard similarity of the characteristic words of both.
    """

    stable: tuple[str, ...]
    current: tuple[str, ...]
    overlap: Unit


class ResponseEmitted(Event, frozen=True, kw_only=True, tag="forged_id.response.emitted"):
    """The end of an exchange: exactly one for every accepted input.

    ``stage`` says which stage answered, ``action`` what it did, ``reason`` why (a pattern's name, an error code, a
    mode). ``first_mode`` is the mode that the router chose first, ``mode`` that of the answer. ``backend`` names what
    wrote the text (``composer``: fixed texts and what is remembered), ``model`` the model, if one did. ``entities`` are
    the memories in its context. ``loop_id`` is the loop whose answer this is, where guardrails judged one; ``identity``
    what it used of the agent's soul. ``finish_reason`` is how a model's answer ended, in OpenAI's words: ``length`` and
    ``content_filter`` say that it is not complete; empty where no model wrote it. ``cuts`` are the texts of the prompt
    that were cut to fit the model.
    """

    stage: Stage
    action: Action
    reason: str
    mode: Mode | None
    first_mode: Mode | None
    response: Personal
    backend: str
    reply_to: str = ""
    model: str = ""
    entities: tuple[Entity, ...] = ()
    loop_id: str = ""
    identity: IdentityUse | None = None
    finish_reason: Ended | Literal[""] = ""
    cuts: tuple[Cut, ...] = ()


class ResponseRequested(Event, frozen=True, kw_only=True, tag="forged_id.response.requested"):
    """A model is asked for an exchange's answer in ``mode``; ``entities`` are the memories in its prompt.

    ``prompts`` names the prompt files used, each with a short hash of its text. ``loop_id`` names this pass of the
    deliberation: the exchange, or one of its reruns, asked for ``rerun_reason``.
    """

    mode: Mode
    call: ModelCall
    entities: tuple[Entity, ...]
    prompts: dict[str, str]
    loop_id: str = ""
    rerun_reason: str = ""


ResponderConfigured, ResponderFailed = own_events("responder", prefix="response")

ENTRIES = (
    Entry(
        owner="responder",
        scope=Scope.SESSION,
        meaning="The one end of an exchange: which stage answered, what it did, and the answer.",
        verdict="decides",
        sample=ResponseEmitted(
            stage="DELIBERATIVE",
            action="EXECUTED",
            reason="RESPOND",
            mode="RESPOND",
            first_mode="RESPOND",
            response="No language model is attached.",
            backend="composer",
        ),
    ),
    Entry(
        owner="responder",
        scope=Scope.SESSION,
        meaning="A language model is asked for the answer of an exchange.",
        asks="llm",
        sample=ResponseRequested(
            mode="RESPOND",
            call=ModelCall(
                purpose="respond", messages=(ChatMessage(role="user", content="What is the capital of Peru?"),)
            ),
            entities=(Entity(id="fact:3", layer="fact", energy=0.8, tokens=4, share=1.0),),
            prompts={"respond": "0" * 12},
        ),
    ),
    *own_entries(
        ResponderConfigured,
        ResponderFailed,
        owner="responder",
        scope=Scope.SESSION,
        then="the clock's deadline ends its exchange",
        failed_topic="forged_id.router.mode_selected",
    ),
)
