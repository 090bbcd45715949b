"""What is known of an open exchange, and of its session. Pure."""

from typing import Literal

import msgspec

from actors.responder.settings import ResponderSettings
from schemas.model_calls import Cut, Ended
from schemas.vocabulary.breaker import Stance
from schemas.vocabulary.gateway import Layer, Purpose
from schemas.vocabulary.memory import Fact, Recollection, Retired
from schemas.vocabulary.responder import Entity, ResponseEmitted, Stage
from schemas.vocabulary.router import Mode, ModeSelected

STAGES: tuple[Stage, ...] = ("REFLEX", "INTUITION", "COHERENCE", "BREAKER", "ARBITER", "DELIBERATIVE")
"""The stages in the order of the path."""


class Turn(msgspec.Struct, frozen=True):
    """What a person said and what was answered, each cut to a limit: ``kept`` of their ``characters`` are left.

    Both numbers are 0 where nothing was cut.
    """

    said: str
    answered: str
    characters: int = 0
    kept: int = 0


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer that no person has read yet: ``loop_id`` names the pass of the deliberation that it came of.

    ``source`` is the id of the event that has it, ``finish_reason`` says how it ended, ``cuts`` what was cut of the
    prompt that it answers.
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
        text: What was asked; nothing of an input that others answer.
        agent: Whom.
        session: The session of its input: events of agents' actors do not name it.
        purpose: Who answers it, if anybody.
        due_ns: The earliest of its deadlines so far.
        reply_to: Inbox for a copy of the answer.
        stream: Whether that inbox wants partial text too.
        layers: The input's other layers; kept only where a model is asked.
        silent: The stages that have not spoken yet.
        first_mode: What the router chose first.
        answer: The end by what another's model said, once it has; reflex judges it first.
        held: An end that a stage has asked for, while an earlier one may still ask for another.
        recollections: What came to mind for it.
        recalled: Whether memory has said what did.
        told: What its own words tell of the person, as memory reads and keeps them.
        retired: What they take back, or replace.
        findings: What an ACT loop found.
        acted: Whether such a loop has ended.
        selected: The choice of the mode that a model was asked to answer in.
        asked: Id of the last request to a model; empty: none.
        loop_id: The loop that its answer is of; empty where guardrails do not judge it.
        entities: The memories in that request.
        cuts: What of its prompt was cut.
        awaits: Whose word is waited for: the model's that was asked, or reflex's or guardrails' on its answer; empty:
            nobody's.
        unread: Its latest answer, until reflex has read it.
        drafts: Its answers so far that reflex let pass, oldest first.
        best: The loop whose answer is the best so far, by guardrails' word; empty: no word yet.
        unjudged: Why the next answer will not be judged; empty: it will.
        stance: How much the breaker trusts its session, by what it said on clearing the input.
        remembered: Whether it is to be a turn of its session once it has ended.
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


class Case(msgspec.Struct, frozen=True):
    """What a verdict rests on besides its event: an exchange, its session's last turns, settings, agent, time, id."""

    pending: Pending
    turns: tuple[Turn, ...]
    settings: ResponderSettings
    agent: str
    now_ns: int
    exchange: str = ""
