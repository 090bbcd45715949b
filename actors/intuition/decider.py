"""Intuition's state machine: which inputs resemble a learned danger.

A precedent is an earlier situation with its outcome, recorded by a person; a *motif* is one whose outcome was harmful.

input.received          the text is kept until the verdict is recorded or the exchange ends
reflex.passed           -> intuition.rejected or intuition.passed, once, for an exchange whose text is kept
delegate.answered       -> intuition.result_rejected or intuition.result_passed, at once
precedent.recorded      -> intuition.motif_learned where its outcome was harmful; it is in the library from here on
precedent.withdrawn     -> intuition.motif_retired where it was a motif; it is out of the library from here on
intuition.rejected,
intuition.passed,
response.emitted        the text of the exchange is dropped
operator.allowance_recorded,
operator.allowance_withdrawn  allowed text is not judged from the next input on
intuition.configured    the settings from here on
"""

import msgspec

from actors.contract.text.allowances import Allowances
from actors.intuition.index import COMPILED_FROM, warm_engine
from actors.intuition.judging import TEXT, Input, Part, input_of, judge, judge_result
from actors.intuition.library import Library, Precedent
from actors.intuition.settings import IntuitionSettings
from actors.intuition.signature import text_signature, to_bytes
from schemas.actor import Message
from schemas.event import Event
from schemas.persistent import ExpiringMap, Map
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.delegate import DelegateAnswered
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionPassed, IntuitionRejected, MotifLearned, MotifRetired
from schemas.vocabulary.precedents import PrecedentRecorded, PrecedentWithdrawn
from schemas.vocabulary.reflex import ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted

_WARM_UP_INPUT = Input((Part(TEXT, "Héllo, how do I get there? I have lost my way."),), situation="general")

_WARM_UP_PRECEDENT = PrecedentRecorded(precedent="warm-up", description="I have lost my way.")


class State(msgspec.Struct, frozen=True):
    """A partition: settings, libraries by agent, inputs by exchange, and recently ended exchanges.

    ``allowances`` are the texts that operators have ordered not to judge.
    """

    settings: IntuitionSettings = IntuitionSettings()
    libraries: Map[str, Library] = Map()
    pending: Map[str, Input] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()
    allowances: Allowances = Allowances()


def warm(state: State) -> None:
    """Build the indexes of all agents, load the compiled search engine where an index is large, and read a text.

    No index of the state is searched: a recovery may begin to change it meanwhile.
    """
    libraries = tuple(state.libraries.values())
    if any(len(library.precedents) >= COMPILED_FROM for library in libraries):
        warm_engine()
    for library in libraries:
        library.build_index()
    judge(Library().with_precedent("", precedent_of(_WARM_UP_PRECEDENT)), state.settings, _WARM_UP_INPUT)


def decide(state: State, message: Message) -> tuple[Event, ...]:
    """Judge an input that reflex has passed, or record what a precedent changes; nothing else is decided."""
    match message.event:
        case ReflexPassed():
            pending = state.pending.get(message.exchange)
            return (
                (judge(library_of(state, message), state.settings, pending, message.models),)
                if pending is not None
                else ()
            )
        case DelegateAnswered(answer=answer):
            library = library_of(state, message)
            return (judge_result(library, state.settings, message.id, answer, message.models),)
        case PrecedentRecorded() as recorded:
            return _learned(library_of(state, message), recorded)
        case PrecedentWithdrawn(precedent=name):
            found = library_of(state, message).precedents.get(name)
            return (MotifRetired(motif=name),) if found is not None and found.is_motif else ()
    return ()


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    match message.event:
        case InputReceived() if state.ended.get(message.exchange):
            return state  # repeated after its end: no second end will come to drop the text
        case InputReceived() as received:
            judged, allowed = state.allowances.judged(message.agent, received)
            kept = msgspec.structs.replace(input_of(judged, state.settings), allowed=allowed)
            return msgspec.structs.replace(state, pending=state.pending.set(message.exchange, kept))
        case IntuitionRejected() | IntuitionPassed():
            return _without(state, message.exchange)
        case ResponseEmitted():
            lifetime_ns = state.settings.ended_lifetime_ms * 1_000_000
            ended = state.ended.set(message.exchange, True, message.time_ns, lifetime_ns)
            return msgspec.structs.replace(_without(state, message.exchange), ended=ended)
        case PrecedentRecorded() as recorded:
            library = library_of(state, message).with_precedent(recorded.precedent, precedent_of(recorded))
            return _with_library(state, message, library)
        case PrecedentWithdrawn(precedent=name):
            return _with_library(state, message, library_of(state, message).without_precedent(name))
        case AllowanceRecorded() | AllowanceWithdrawn() as allowance:
            return msgspec.structs.replace(state, allowances=state.allowances.after(message.agent, allowance))
    return state


def library_of(state: State, message: Message) -> Library:
    """Return the precedents of a message's agent."""
    return state.libraries.get(message.agent) or Library()


def precedent_of(recorded: PrecedentRecorded) -> Precedent:
    """Return what is kept of a recorded precedent."""
    return Precedent(
        signature=to_bytes(text_signature(recorded.description)),
        situation=recorded.situation,
        action=recorded.action,
        outcome=recorded.outcome,
        harm_level=recorded.harm_level,
        answer=recorded.answer,
    )


def _learned(library: Library, recorded: PrecedentRecorded) -> tuple[Event, ...]:
    before, now = library.precedents.get(recorded.precedent), precedent_of(recorded)
    if before is not None and before.has_same_content(now):
        return ()  # recorded twice
    if now.is_motif:
        return (MotifLearned(motif=recorded.precedent, severity=now.harm_level, shingles=now.size),)
    return (MotifRetired(motif=recorded.precedent),) if before is not None and before.is_motif else ()


def _with_library(state: State, message: Message, library: Library) -> State:
    if library is library_of(state, message) or not library.recorded:  # 0: the agent never had a precedent
        return state
    return msgspec.structs.replace(state, libraries=state.libraries.set(message.agent, library))


def _without(state: State, exchange: str) -> State:
    if exchange not in state.pending:
        return state
    return msgspec.structs.replace(state, pending=state.pending.delete(exchange))
