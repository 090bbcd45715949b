"""One plain sentence on how an exchange ended and why, from recorded events. Pure.

The end (``response.emitted``) alone is enough for a sentence. Other events of the exchange add detail, such as the
phrase that was found. A reason that this release does not know is named as it is.
"""

from collections.abc import Sequence
from typing import TypeVar

from deploy.cli.rendering import reason_texts
from deploy.cli.rendering.layout.quoting import quoted_line
from deploy.cli.rendering.model_calls import cuts_text
from schemas.event import Event
from schemas.input_path import STAGE_OF
from schemas.unread import UnreadKind
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterImmediate, ArbiterPassed
from schemas.vocabulary.breaker import BreakerTripped
from schemas.vocabulary.coherence import CoherenceRejected
from schemas.vocabulary.intuition import IntuitionRejected
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexBlocked
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected

DETAIL_EVENTS = (
    ReflexBlocked,
    IntuitionRejected,
    CoherenceRejected,
    BreakerTripped,
    ArbiterDenied,
    ArbiterImmediate,
    ArbiterPassed,
    ReflexAnswerBlocked,
    ModeSelected,
)
"""Events of an exchange that add detail to its sentence."""

_MAX_QUOTE_CHARACTERS = 60
E = TypeVar("E", bound=Event)


def sentence_on(end: ResponseEmitted, events: Sequence[Event] = ()) -> str:
    """Return how an exchange ended and why, in a sentence that begins with the action.

    Args:
        end: Its end.
        events: Events of the exchange in stream order; all but :data:`DETAIL_EVENTS` are ignored.
    """
    word = reason_texts.ACTIONS[end.action]
    if end.action == "EXECUTED":
        return f"{word} {_answered(end, events)}.{_what_is_missing(end)}"
    return f"{word}: {_why(end, events) or f'for the reason {end.reason} of {end.stage}'}."


def is_known(end: ResponseEmitted) -> bool:
    """Whether this release has words for the reason of an end, not only its name."""
    return bool(_why(end, ()) if end.action != "EXECUTED" else _why_answered(end, ()))


def _why(end: ResponseEmitted, events: Sequence[Event]) -> str:
    if end.action == "FAILED":
        return _exchange_failed(end)
    match end.stage:
        case "REFLEX":
            return _reflex_blocked(end, _last(events, ReflexBlocked))
        case "INTUITION":
            return _intuition_rejected(end, _last(events, IntuitionRejected))
        case "COHERENCE":
            return _coherence_rejected(end, _last(events, CoherenceRejected))
        case "BREAKER":
            return _breaker_withheld(end, _last(events, BreakerTripped))
        case "ARBITER":
            if end.action == "PASSED":
                return _guards_passed(end, events)
            return _arbiter_denied(end, _last(events, ArbiterDenied))
    return _answer_withheld(end, _last(events, ReflexAnswerBlocked))


def _answer_withheld(end: ResponseEmitted, event: ReflexAnswerBlocked | None) -> str:
    plain = _answer_fault(end.reason)
    if event is None or end.reason != "prompt_leak":
        return plain
    return f"{plain}; {event.leaked:.0%} of it"


def _reflex_blocked(end: ResponseEmitted, event: ReflexBlocked | None) -> str:
    if event is None:
        return f"it matches a known attack; pattern set {end.reason}"
    phrase = quoted_line(event.signature, _MAX_QUOTE_CHARACTERS)
    return f"it has the phrase {phrase} of a known attack; pattern set {end.reason}"


def _intuition_rejected(end: ResponseEmitted, event: IntuitionRejected | None) -> str:
    if end.reason == "scorer":
        plain = "the learned scorer takes it for an attack"
        return plain if event is None else f"{plain}; score {event.score or 0.0:g}, threshold {event.score_threshold:g}"
    similarity = "" if event is None else f", similarity {event.similarity:g} above {event.threshold:g}"
    return f"it resembles a situation that did harm; precedent {end.reason}{similarity}"


def _coherence_rejected(end: ResponseEmitted, event: CoherenceRejected | None) -> str:
    plain = reason_texts.COHERENCE.get(end.reason, "")
    if event is None or not plain:
        return plain
    if end.reason == reason_texts.UNREAD:
        missed = event.unread_of
        return plain if missed is None else f"{plain}; {missed.amount:,} {_unread_unit(missed.what)} were not"
    if event.violations:
        text = " and ".join(reason_texts.RULES[name] for name in event.violations if name in reason_texts.RULES)
        return f"{text or 'a flagged phrase hints at a breach of the constitution'}; rule {', '.join(event.violations)}"
    return f"{plain}; entropy {event.entropy:g} above {event.threshold:g}"


def _unread_unit(what: UnreadKind) -> str:
    return what if what in ("comparisons", "characters", "layers") else f"characters of {what}"


def _breaker_withheld(end: ResponseEmitted, event: BreakerTripped | None) -> str:
    plain = reason_texts.BREAKER.get(end.reason, "")
    if event is None or event.violation != end.reason:
        return plain and f"{plain}; breaker {end.reason}"
    return f"{plain}; trust {event.standing.trust_before:g} → {event.standing.trust:g}"


def _arbiter_denied(end: ResponseEmitted, event: ArbiterDenied | None) -> str:
    plain = reason_texts.ARBITER.get(end.reason, "")
    if event is None or not event.precedent:
        return plain and f"{plain}; arbiter {end.reason}"
    return f"{plain}; precedent {event.precedent}, similarity {event.similarity:g}"


def _guards_passed(end: ResponseEmitted, events: Sequence[Event]) -> str:
    if end.reason != reason_texts.CHECK_REASON:
        return ""
    return f"no guard objects{_nearest_precedent(events)}; it was sent to be checked only"


def _nearest_precedent(events: Sequence[Event]) -> str:
    found = _last(events, ArbiterPassed)
    if found is None or not found.nearest:
        return ""
    return f", the precedent most like it being {found.nearest} (similarity {found.similarity:g})"


def _exchange_failed(end: ResponseEmitted) -> str:
    if end.reason == reason_texts.DEADLINE:
        return f"no word came from {end.stage.lower()} before the deadline"
    why_unserved, colon, stage = end.reason.partition(": ")
    if colon and why_unserved in reason_texts.UNSERVED:
        return f"it waited for {stage}, and {reason_texts.UNSERVED[why_unserved]}"
    actor = end.reason.removesuffix("_failed")
    if end.reason.endswith("_failed") and STAGE_OF.get(actor) == end.stage:
        return f"the actor {actor} failed on it, and what is not cleared is not answered"
    return reason_texts.DELIBERATIVE_FAILURES.get(end.reason, "") if end.stage == "DELIBERATIVE" else ""


def _answered(end: ResponseEmitted, events: Sequence[Event]) -> str:
    if end.stage == "ARBITER":
        return f"at once by precedent {end.reason}, because {_why_answered(end, events)}"
    manner = reason_texts.MODES[end.mode] if end.mode is not None else "at once"
    if end.reason == reason_texts.FORWARD_REASON:
        manner = "that its sender asked"
    by = "" if end.mode == "IGNORE" else f"by {f'the model {end.model}' if end.model else f'the {end.backend}'} "
    return f"{by}{manner}, because {_why_answered(end, events) or f'of {end.reason}'}"


def _what_is_missing(end: ResponseEmitted) -> str:
    """Return sentences on what was cut from an answer or from its prompt."""
    ended = reason_texts.ENDINGS.get(end.finish_reason, "")
    short = f" The answer may not be whole: {ended}." if ended else ""
    return f"{short} The prompt was too long and was {cuts_text(end.cuts)}." if end.cuts else short


def _why_answered(end: ResponseEmitted, events: Sequence[Event]) -> str:
    if end.stage == "ARBITER":
        found = _last(events, ArbiterImmediate)
        similarity = "" if found is None else f" (similarity {found.similarity:g})"
        return f"its answer to nearly the same input was approved{similarity}"
    if end.reason == reason_texts.FORWARD_REASON:
        return f"no guard objected{_nearest_precedent(events)}, and it was to be forwarded"
    # A reason is the mode, with a remark of guardrails behind it if there is one, or ``llm_failed`` and why.
    head, _, rest = end.reason.partition(":")
    if head == reason_texts.LLM_FAILED:
        failure = _model_failure(rest)
        return failure and f"{_why_mode(end, events)}, and no model answered: {failure}"
    if head != end.mode:
        return ""
    if not rest:
        return _why_mode(end, events)
    remark = reason_texts.GUARDRAILS.get(rest, "")
    why_unserved, colon, stage = rest.partition(": ")
    if colon and why_unserved in reason_texts.UNSERVED:
        remark = f"guardrails did not judge it, since it waited for {stage}, and {reason_texts.UNSERVED[why_unserved]}"
    kind, _, failure = rest.partition(":")
    if kind == reason_texts.RERUN_FAILED:
        text = _model_failure(failure)
        remark = text and f"it was to be bettered, but {text}"
    return remark and f"{_why_mode(end, events)}; {remark}"


def _model_failure(name: str) -> str:
    return reason_texts.MODEL_FAILURES.get(name, "") or reason_texts.UNSERVED.get(name, "") or _answer_fault(name)


def _answer_fault(reason: str) -> str:
    """Return why an answer is withheld, in words; empty if that is not the reason."""
    return next((text for fault, text in reason_texts.ANSWER_FAULTS.items() if fault == reason), "")


def _why_mode(end: ResponseEmitted, events: Sequence[Event]) -> str:
    """Return why the mode was chosen, by the last selection among the events."""
    choice = _last(events, ModeSelected)
    if choice is None or choice.terminal_mode != end.mode:
        return f"the router chose {end.mode}"
    if choice.reason == "blank_input":
        return "the input is blank"
    sure = f"confidence {choice.router_confidence:.2f}"
    if choice.reason == "tiebreak":
        others = " and ".join(choice.tiebreaker_candidates)
        return f"a model, asked to choose between {others}, took {end.mode} ({sure})"
    if choice.reason == "act_unavailable":
        return f"{end.mode} scored highest but for ACT, which is switched off ({sure})"
    return f"{end.mode} scored highest{' after an ACT loop' if choice.rerouted else ''} ({sure})"


def _last(events: Sequence[Event], kind: type[E]) -> E | None:
    return next((event for event in reversed(events) if isinstance(event, kind)), None)
