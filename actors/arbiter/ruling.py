"""The arbiter's rules: from the precedents of an input and its purpose to a ruling. Pure."""

from collections.abc import Callable, Iterable, Sequence

from actors.arbiter.settings import ArbiterSettings
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterImmediate, ArbiterPassed
from schemas.vocabulary.gateway import Purpose
from schemas.vocabulary.intuition import Similar

Ruling = ArbiterDenied | ArbiterImmediate | ArbiterPassed | ArbiterEscalated
"""Deny, answer at once, let pass, or escalate."""


def rule(
    precedents: Sequence[Similar] | None,
    situation: str | None,
    constitutional_risk: bool,
    settings: ArbiterSettings,
    purpose: Purpose = "answer",
) -> Ruling:
    """Return the ruling on an input. ``precedents`` and ``situation`` are None if they are not known.

    ``situation`` is the input's kind, a name that the caller chooses. ``constitutional_risk``: the coherence gate saw a
    risk of harm, or to the system's own rules.
    """
    if constitutional_risk:
        return ArbiterDenied(reason="constitutional_risk", precedent="", similarity=0.0)
    if precedents is None or situation is None:
        return ArbiterDenied(reason="unknown_outcome", precedent="", similarity=0.0)
    harmful = _nearest(precedents, lambda each: each.outcome == "harmful")
    if harmful is not None and harmful.similarity >= settings.harmful_from:
        return ArbiterDenied(reason="harmful_precedent", precedent=harmful.precedent, similarity=harmful.similarity)
    if purpose != "answer":
        nearest = _nearest(precedents, lambda each: True)
        return ArbiterPassed(
            nearest=nearest.precedent if nearest is not None else "",
            similarity=nearest.similarity if nearest is not None else 0.0,
        )
    approved = _nearest(precedents, lambda each: is_answer(each, situation, settings))
    if approved is not None:
        return ArbiterImmediate(precedent=approved.precedent, similarity=approved.similarity, answer=approved.answer)
    return _escalated(precedents, situation, settings)


def is_decisive(precedent: Similar, situation: str, settings: ArbiterSettings) -> bool:
    """Whether a precedent is close enough to decide: benign, of the same situation, and nearly the same input."""
    same = precedent.situation == situation and precedent.outcome == "benign"
    return same and precedent.similarity >= settings.immediate_from


def is_answer(precedent: Similar, situation: str, settings: ArbiterSettings) -> bool:
    """Whether a precedent can answer at once: it is close enough, and no action belongs to its answer."""
    return is_decisive(precedent, situation, settings) and bool(precedent.answer) and precedent.action != "act"


def _escalated(precedents: Sequence[Similar], situation: str, settings: ArbiterSettings) -> ArbiterEscalated:
    timeout_ms = settings.deliberative_timeout_ms
    nearest = _nearest(precedents, lambda each: True)
    if nearest is None:
        return ArbiterEscalated(reason="no_precedent", nearest="", similarity=0.0, deadline_after_ms=timeout_ms)
    close = any(is_decisive(each, situation, settings) for each in precedents)
    return ArbiterEscalated(
        reason="precedent_without_answer" if close else "precedent_not_close",
        nearest=nearest.precedent,
        similarity=nearest.similarity,
        deadline_after_ms=timeout_ms,
    )


def _nearest(precedents: Iterable[Similar], wanted: Callable[[Similar], bool]) -> Similar | None:
    """Return the most similar of the precedents that ``wanted`` accepts; of equals the first by name."""
    found = sorted(filter(wanted, precedents), key=lambda each: (-each.similarity, each.precedent))
    return found[0] if found else None
