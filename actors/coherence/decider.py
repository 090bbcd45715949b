"""Joins what is known about an exchange, and gives the one verdict on it. Pure.

A thought is what the input would lead to: the proposed action, with its risks. Flags are signatures of reflex that
matched and do not block. The swarm is all actors and agents together; its coherence index (``sci``, 0 to 1) says how
far they agree.

reflex.passed           the flags, and the share of the input not looked at, are kept until the verdict
intuition.passed        the similar precedents are kept, and the share not looked at
appraisal.completed     the thought is kept. Once this and intuition.passed have come -> coherence.passed or
                        coherence.rejected, once for an exchange
swarm.measured          the coherence index from here on
response.emitted        all that is kept of the exchange is dropped
"""

import msgspec

from actors.coherence.entropy import KnownPrecedent, Thought, judge
from actors.coherence.settings import CoherenceSettings
from schemas.actor import Message
from schemas.event import Event
from schemas.persistent import JoinBuffer
from schemas.unread import Unread
from schemas.vocabulary.appraisal import AppraisalCompleted, Risks
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from schemas.vocabulary.intuition import IntuitionPassed
from schemas.vocabulary.reflex import Match, ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.swarm import SwarmMeasured

_NS_PER_MS = 1_000_000


class Gathered(msgspec.Struct, frozen=True):
    """What is known of an exchange so far; None is not known yet. No text is kept.

    ``flags`` are the names of reflex's flags that count as a violation. ``unread`` is the part of its input with the
    largest share not looked at. ``heard_reflex`` says whether ``reflex.passed`` has come.
    """

    heard_reflex: bool = False
    flags: tuple[str, ...] = ()
    precedents: tuple[KnownPrecedent, ...] | None = None
    thought: Thought | None = None
    unread: Unread | None = None


class CoherenceState(msgspec.Struct, frozen=True):
    """Exchanges without a verdict, those settled lately, and the swarm's latest coherence index (``sci``)."""

    settings: CoherenceSettings = CoherenceSettings()
    sci: float = 1.0
    exchanges: JoinBuffer[Gathered] = JoinBuffer()


def decide(state: CoherenceState, message: Message) -> tuple[Event, ...]:
    """Judge the thought of an exchange once intuition and appraisal have both decided."""
    gathered = _gather(state, message)
    if gathered is None or gathered.precedents is None or gathered.thought is None:
        return ()
    return (judge(gathered.thought, gathered.precedents, gathered.flags, state.sci, state.settings, gathered.unread),)


def evolve(state: CoherenceState, message: Message) -> CoherenceState:
    """Fold a message into the state; never raises."""
    exchanges = state.exchanges.aged(message.time_ns, _pending_ns(state), _settled_ns(state))
    if exchanges is not state.exchanges:
        state = msgspec.structs.replace(state, exchanges=exchanges)
    match message.event:
        case SwarmMeasured(sci=sci):
            return msgspec.structs.replace(state, sci=sci)
        case CoherencePassed() | CoherenceRejected() | ResponseEmitted():
            exchanges = exchanges.settle(message.exchange, message.time_ns, _settled_ns(state))
            return msgspec.structs.replace(state, exchanges=exchanges)
    gathered = _gather(state, message)
    if gathered is None:
        return state
    exchanges = exchanges.gather(message.exchange, gathered, message.time_ns, _pending_ns(state))
    return msgspec.structs.replace(state, exchanges=exchanges)


def _gather(state: CoherenceState, message: Message) -> Gathered | None:
    """Return what is known of an exchange after a message; None if the message adds nothing, or has no exchange."""
    if not state.exchanges.is_open(message.exchange):
        return None
    gathered = state.exchanges.pending.get(message.exchange) or Gathered()
    # The first message of a kind counts: a repeated input must not replace it.
    match message.event:
        case ReflexPassed() as passed if not gathered.heard_reflex:
            return msgspec.structs.replace(
                gathered,
                heard_reflex=True,
                flags=_violating_flags(passed.flags, state.settings),
                unread=_largest(gathered.unread, passed.unread),
            )
        case IntuitionPassed() as passed if gathered.precedents is None:
            return msgspec.structs.replace(
                gathered,
                precedents=tuple(KnownPrecedent(each.action, each.outcome) for each in passed.precedents),
                unread=_largest(gathered.unread, passed.unread),
            )
        case AppraisalCompleted() as appraisal if gathered.thought is None:
            thought = Thought(appraisal.proposed_action, appraisal.affects_swarm, _violations(appraisal.risks))
            return msgspec.structs.replace(gathered, thought=thought)
    return None


def _violating_flags(flags: tuple[Match, ...], settings: CoherenceSettings) -> tuple[str, ...]:
    least = settings.flags_violate_from
    return () if least is None else tuple(flag.pattern for flag in flags if flag.confidence >= least)


def _largest(before: Unread | None, more: tuple[Unread, ...]) -> Unread | None:
    """Return the entry with the largest share; of equal ones the first."""
    return max((*(() if before is None else (before,)), *more), key=lambda each: each.share, default=None)


def _violations(risks: Risks) -> tuple[str, ...]:
    """Return what the input could violate; ``layer_0`` are the system's own rules."""
    return (*(("harm",) if risks.harm else ()), *(("layer_0",) if risks.layer_0 else ()))


def _pending_ns(state: CoherenceState) -> int:
    return state.settings.pending_lifetime_ms * _NS_PER_MS


def _settled_ns(state: CoherenceState) -> int:
    return state.settings.settled_lifetime_ms * _NS_PER_MS
