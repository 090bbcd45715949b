"""What the responder keeps of an open exchange, and of its session. Pure."""

from typing import Literal

import msgspec

from actors.responder.settings import ResponderSettings
from schemas.effectors.model_calls import Cut, Ended
from schemas.vocabulary.breaker import Stance
from schemas.vocabulary.gateway import Layer, Purpose
from schemas.vocabulary.memory import Fact, Recollection, Retired
from schemas.vocabulary.responder import Entity, ResponseEmitted, Stage
from schemas.vocabulary.router import Mode, ModeSelected

STAGES: tuple[Stage, ...] = ("REFLEX", "INTUITION", "COHERENCE", "BREAKER", "ARBITER", "DELIBERATIVE")
"""The stages in the order of the path."""


class Turn(msgspec.Struct, frozen=True, gc=False):
    """What a person said and what was answered, each cut to a limit: ``kept`` of ``characters`` are left.

    Both are numbers of characters; they are 0 if nothing was cut.
    """

    said: str
    answered: str
    characters: int = 0
    kept: int = 0


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer that no person has read yet; ``loop_id`` names the pass of the deliberation that produced it.

    ``source`` is the id of the event with the answer, ``entities`` are the memories in its prompt, ``finish_reason``
    says how it ended, ``cuts`` what was cut from its prompt.
    """

    source: str
    loop_id: str
    text: str
    model: str
    entities: tuple[Entity, ...]
    finish_reason: Ended = "stop"
    cuts: tuple[Cut, ...] = ()


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """An open exchange.

    Attributes:
        text: What was asked; empty for an input that another model answers.
        agent: The agent that was asked.
        session: The session of its input; events of actors whose scope is the agent do not name it.
        purpose: Who answers it, if anybody.
        due_ns: The earliest of its deadlines so far.
        reply_to: Inbox for a copy of the answer.
        stream: Whether that inbox wants partial text too.
        layers: The input's other layers; kept only where a model is asked.
        silent: The stages without a verdict so far.
        first_mode: The router's first choice.
        answer: The end with another model's answer, once there is one; reflex judges it first.
        held: An end that a stage has asked for, while an earlier stage may still ask for another.
        recollections: The memories recalled for it.
        recalled: Whether memory has recorded its recall.
        told: The facts that its own text states about the person, as memory reads and keeps them.
        retired: The facts that it takes back or replaces.
        findings: What an ACT loop, which looks things up, has found.
        acted: Whether such a loop has ended.
        selected: The choice of the mode that a model was asked to answer in.
        asked: Id of the last request to a model; empty: none.
        loop_id: The loop (pass of the deliberation) of its answer; empty if guardrails do not judge it.
        entities: The memories in that request.
        cuts: What was cut from its prompt.
        awaits: Whose event is awaited: the model's that was asked, or reflex's or guardrails' on its answer; empty: no
            model was asked.
        unread: Its latest answer, until reflex has read it.
        drafts: Its answers so far that reflex let pass, oldest first.
        best: The loop with the best answer so far, according to guardrails; empty: they have not judged yet.
        unjudged: Why the next answer will not be judged; empty: it will be.
        stance: How careful the answer has to be, as the breaker stated when it cleared the input.
        remembered: Whether it becomes a turn of its session when it ends.
    """

    text: str
    agent: str
    session: str
    due_ns: int
    purpose: Purpose = "answer"
    reply_to: str = ""
    stream: bool = False
    layers: tuple[Layer, ...] = ()
    silent: tuple[Stage, ...] = STAGES
    first_mode: Mode | None = None
    answer: ResponseEmitted | None = None
    held: ResponseEmitted | None = None
    recollections: tuple[Recollection, ...] = ()
    recalled: bool = False
    told: tuple[Fact, ...] = ()
    retired: tuple[Retired, ...] = ()
    findings: tuple[Recollection, ...] = ()
    acted: bool = False
    selected: ModeSelected | None = None
    asked: str = ""
    loop_id: str = ""
    entities: tuple[Entity, ...] = ()
    cuts: tuple[Cut, ...] = ()
    awaits: Literal["", "model", "reflex", "guardrails"] = ""
    unread: Draft | None = None
    drafts: tuple[Draft, ...] = ()
    best: str = ""
    unjudged: str = ""
    remembered: bool = True
    stance: Stance = "normal"


class ExchangeContext(msgspec.Struct, frozen=True):
    """What an exchange's end or request depends on besides the event; ``exchange`` is its id, ``pending`` its state."""

    pending: Pending
    turns: tuple[Turn, ...]
    settings: ResponderSettings
    agent: str
    now_ns: int
    exchange: str = ""
