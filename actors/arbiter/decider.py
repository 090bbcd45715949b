"""Joins the verdicts of the two gates before the arbiter, coherence and breaker, and makes its one ruling. Pure.

input.received          the situation (a kind of input that the caller names) and the purpose are kept until the ruling;
                        the text is not
intuition.passed        the precedents (earlier situations with their outcome) are kept
coherence.passed,       that the gate passed it is kept. Once both have come -> arbiter.denied, .immediate, .passed or
breaker.cleared         .escalated, once for an exchange
response.emitted        all that is kept of the exchange is dropped
"""

import msgspec

from actors.arbiter.ruling import rule
from actors.arbiter.settings import ArbiterSettings
from schemas.actor import Message
from schemas.event import Event
from schemas.persistent import JoinBuffer
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterImmediate, ArbiterPassed
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.coherence import CoherencePassed
from schemas.vocabulary.gateway import InputReceived, Purpose
from schemas.vocabulary.intuition import IntuitionPassed, Similar
from schemas.vocabulary.responder import ResponseEmitted

_NS_PER_MS = 1_000_000


class Gathered(msgspec.Struct, frozen=True):
    """What is known of an exchange so far; None is not known yet.

    ``situation`` and ``purpose`` come from the input, ``constitutional_risk`` from the coherence gate, ``cleared`` from
    the breaker.
    """

    situation: str | None = None
    precedents: tuple[Similar, ...] | None = None
    constitutional_risk: bool | None = None
    cleared: bool = False
    purpose: Purpose = "answer"


class ArbiterState(msgspec.Struct, frozen=True):
    """Exchanges without a ruling, and those settled lately."""

    settings: ArbiterSettings = ArbiterSettings()
    exchanges: JoinBuffer[Gathered] = JoinBuffer()


def decide(state: ArbiterState, message: Message) -> tuple[Event, ...]:
    """Rule on an exchange once both gates have let it pass."""
    gathered = _gather(state, message)
    if gathered is None or gathered.constitutional_risk is None or not gathered.cleared:
        return ()
    ruling = rule(
        gathered.precedents, gathered.situation, gathered.constitutional_risk, state.settings, gathered.purpose
    )
    return (ruling,)


def evolve(state: ArbiterState, message: Message) -> ArbiterState:
    """Fold a message into the state; never raises."""
    exchanges = state.exchanges.aged(message.time_ns, _pending_ns(state), _settled_ns(state))
    if exchanges is not state.exchanges:
        state = msgspec.structs.replace(state, exchanges=exchanges)
    match message.event:
        case ArbiterDenied() | ArbiterImmediate() | ArbiterPassed() | ArbiterEscalated() | ResponseEmitted():
            exchanges = exchanges.settle(message.exchange, message.time_ns, _settled_ns(state))
            return msgspec.structs.replace(state, exchanges=exchanges)
    gathered = _gather(state, message)
    if gathered is None:
        return state
    exchanges = exchanges.gather(message.exchange, gathered, message.time_ns, _pending_ns(state))
    return msgspec.structs.replace(state, exchanges=exchanges)


def _gather(state: ArbiterState, message: Message) -> Gathered | None:
    """Return what is known of an exchange after a message; None if the message adds nothing, or has no exchange."""
    if not state.exchanges.is_open(message.exchange):
        return None
    gathered = state.exchanges.pending.get(message.exchange) or Gathered()
    # The first message of a kind counts: a repeated input must not replace it.
    match message.event:
        case InputReceived(situation=situation, purpose=purpose) if gathered.situation is None:
            return msgspec.structs.replace(gathered, situation=situation, purpose=purpose)
        case IntuitionPassed(precedents=precedents) if gathered.precedents is None:
            return msgspec.structs.replace(gathered, precedents=precedents)
        case CoherencePassed() as passed if gathered.constitutional_risk is None:
            risk = passed.constitutional != 0 or bool(passed.violations)
            return msgspec.structs.replace(gathered, constitutional_risk=risk)
        case BreakerCleared() if not gathered.cleared:
            return msgspec.structs.replace(gathered, cleared=True)
    return None


def _pending_ns(state: ArbiterState) -> int:
    return state.settings.pending_lifetime_ms * _NS_PER_MS


def _settled_ns(state: ArbiterState) -> int:
    return state.settings.settled_lifetime_ms * _NS_PER_MS
