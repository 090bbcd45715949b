"""One verdict function for each event that can end an exchange. Pure."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from actors.responder.composer import compose, text_of
from actors.responder.settings import ResponderSettings
from schemas.event import Event, topic_of
from schemas.vocabulary.appraisal import AppraisalFailed
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterFailed, ArbiterImmediate
from schemas.vocabulary.breaker import (
    BreakerCleared,
    BreakerFailed,
    BreakerTerminated,
    BreakerTripped,
    BreakerWithheld,
)
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.coherence import CoherenceFailed, CoherencePassed, CoherenceRejected
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionFailed, IntuitionPassed, IntuitionRejected
from schemas.vocabulary.reflex import ReflexBlocked, ReflexFailed, ReflexPassed
from schemas.vocabulary.responder import Action, ResponseEmitted, Stage
from schemas.vocabulary.router import Mode, ModeSelected, RouterFailed

COMPOSER, PRECEDENT = "composer", "precedent"
"""Who wrote an answer: the composer's texts, or the person who recorded a precedent."""

STAGES: tuple[Stage, ...] = ("REFLEX", "INTUITION", "COHERENCE", "BREAKER", "ARBITER", "DELIBERATIVE")
"""The stages in the order of the path."""

PASSES: Mapping[type[Event], Stage] = {
    ReflexPassed: "REFLEX",
    IntuitionPassed: "INTUITION",
    CoherencePassed: "COHERENCE",
    BreakerCleared: "BREAKER",
    ArbiterEscalated: "ARBITER",
}
"""By what a stage shows that it has spoken, and lets the input go on."""


SIDE_BY_SIDE: frozenset[Stage] = frozenset({"COHERENCE", "BREAKER"})
"""The stages that can speak before an earlier one has: appraisal and the breaker do not wait for reflex."""


class Pending(msgspec.Struct, frozen=True):
    """An open exchange: what it asked, where a copy of the answer goes, and the stages that have not spoken yet.

    ``held`` is an end that a stage has asked for, while an earlier one may still ask for another.
    """

    text: str
    reply_to: str
    silent: tuple[Stage, ...] = STAGES
    first_mode: Mode | None = None
    held: ResponseEmitted | None = None


class Case(msgspec.Struct, frozen=True):
    """What a verdict rests on besides its event: the exchange, its session's memory and the settings."""

    pending: Pending
    earlier: tuple[str, ...]
    settings: ResponderSettings


Verdict = Callable[[Case, Any], ResponseEmitted | None]
"""(case, event) -> the end of the exchange, or None to wait. ``VERDICTS`` pairs each with its event's type."""


def blocked(case: Case, event: ReflexBlocked) -> ResponseEmitted:
    """A known threat is refused."""
    return _end(case.pending, "REFLEX", "BLOCKED", event.pattern, text_of("refused"))


def felt(case: Case, event: IntuitionRejected) -> ResponseEmitted:
    """A learned danger is refused; the reason is what recognised it."""
    reason = event.motif if event.detector == "motif" else event.detector
    return _end(case.pending, "INTUITION", "REJECTED", reason, text_of("learned"))


def dissonant(case: Case, event: CoherenceRejected) -> ResponseEmitted:
    """A thought that does not fit is refused."""
    return _end(case.pending, "COHERENCE", "REJECTED", "DISSONANT", text_of("dissonant"))


def tripped(case: Case, event: BreakerTripped) -> ResponseEmitted:
    """The input that trips the breaker is not answered."""
    return _end(case.pending, "BREAKER", "WITHHELD", event.violation, text_of("tripped"))


def withheld(case: Case, event: BreakerWithheld) -> ResponseEmitted:
    """An input of a session whose processing is off gets a fixed notice."""
    notice = "terminated" if event.standing.state == "TERMINATED" else "withheld"
    return _end(case.pending, "BREAKER", "WITHHELD", event.standing.state.lower(), text_of(notice))


def terminated(case: Case, event: BreakerTerminated) -> ResponseEmitted:
    """The input that ends its session for good is not answered."""
    return _end(case.pending, "BREAKER", "WITHHELD", event.reason, text_of("terminated"))


def denied(case: Case, event: ArbiterDenied) -> ResponseEmitted:
    """The arbiter's denial ends the exchange: it never falls through to deliberation."""
    return _end(case.pending, "ARBITER", "REJECTED", event.reason, text_of("denied"))


def immediate(case: Case, event: ArbiterImmediate) -> ResponseEmitted:
    """An approved precedent answers in the words that were recorded with it."""
    end = _end(case.pending, "ARBITER", "EXECUTED", event.precedent, event.answer)
    return msgspec.structs.replace(end, backend=PRECEDENT)


def failed(case: Case, event: Event, *, stage: Stage, actor: str) -> ResponseEmitted:
    """A stage that could not decide ends the exchange: what is not cleared is not answered."""
    return _end(case.pending, stage, "FAILED", f"{actor}_failed", text_of("unfinished"))


def overdue(case: Case, event: ClockFired) -> ResponseEmitted | None:
    """Nothing ended the exchange in time; the stage that kept silent is named. Timers of other kinds end nothing."""
    if event.set_by == topic_of(ArbiterEscalated):
        return _end(case.pending, "DELIBERATIVE", "FAILED", "deliberation_deadline", text_of("unfinished"))
    if event.set_by != topic_of(InputReceived):
        return None
    return _end(case.pending, case.pending.silent[0], "FAILED", "deadline", text_of("unfinished"))


def selected(case: Case, event: ModeSelected) -> ResponseEmitted | None:
    """A terminal mode is answered in; without one an ACT loop runs first, and its re-route is waited for."""
    mode = event.terminal_mode
    if mode is None:
        return None
    first_mode = case.pending.first_mode or event.selected_mode
    answer = compose(mode, case.pending.text, event, case.earlier, case.settings.quote_limit)
    if answer is None:
        unanswerable = _end(case.pending, "DELIBERATIVE", "FAILED", "mode_not_answerable", text_of("unfinished"))
        return msgspec.structs.replace(unanswerable, mode=mode, first_mode=first_mode)
    end = _end(case.pending, "DELIBERATIVE", "EXECUTED", mode, answer)
    return msgspec.structs.replace(end, mode=mode, first_mode=first_mode)


VERDICTS: Mapping[type[Event], Verdict] = {
    ReflexBlocked: blocked,
    ReflexFailed: partial(failed, stage="REFLEX", actor="reflex"),
    IntuitionRejected: felt,
    IntuitionFailed: partial(failed, stage="INTUITION", actor="intuition"),
    AppraisalFailed: partial(failed, stage="COHERENCE", actor="appraisal"),
    CoherenceRejected: dissonant,
    CoherenceFailed: partial(failed, stage="COHERENCE", actor="coherence"),
    BreakerTripped: tripped,
    BreakerWithheld: withheld,
    BreakerTerminated: terminated,
    BreakerFailed: partial(failed, stage="BREAKER", actor="breaker"),
    ArbiterDenied: denied,
    ArbiterImmediate: immediate,
    ArbiterFailed: partial(failed, stage="ARBITER", actor="arbiter"),
    ModeSelected: selected,
    RouterFailed: partial(failed, stage="DELIBERATIVE", actor="router"),
    ClockFired: overdue,
}
"""Every event that can end an exchange. A new stage adds its verdicts here."""


def must_wait(end: ResponseEmitted, silent: tuple[Stage, ...]) -> bool:
    """Whether an end waits for the word of an earlier stage.

    Stages that work side by side race each other; which one ends an exchange may not depend on who wins.
    """
    return end.stage in SIDE_BY_SIDE and STAGES.index(silent[0]) < STAGES.index(end.stage)


def overrules(end: ResponseEmitted, held: ResponseEmitted) -> bool:
    """Whether an end takes the place of one that is held: that of the earlier stage does, a deadline's among them."""
    return STAGES.index(end.stage) < STAGES.index(held.stage)


def _end(pending: Pending, stage: Stage, action: Action, reason: str, response: str) -> ResponseEmitted:
    return ResponseEmitted(
        stage=stage,
        action=action,
        reason=reason,
        mode=None,
        first_mode=pending.first_mode,
        response=response,
        backend=COMPOSER,
        reply_to=pending.reply_to,
    )
