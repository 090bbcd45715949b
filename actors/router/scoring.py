"""The formula from signals to a mode: scores as sums of named terms, margins, and the choice between the best two.

It is pure arithmetic on recorded numbers. Terms have the names of their weights, so that a table of them explains a
decision. Scores and margins are rounded to 6 decimals before any comparison: so a decision does not depend on the last
bit of a sum.

A context is *warm* if memory holds much about the topic, and *cold* if little: its warmth is from 0 to 1. Memory's
*facts* are what people stated, its *gists* are summaries of exchanges in one line.
"""

from collections.abc import Mapping
from math import fsum

import msgspec

from actors.router.settings import Saturation, Thresholds
from schemas.vocabulary.router import Mode, Signals

Contributions = dict[Mode, dict[str, float]]
"""Mode -> name of a weight -> the term that it adds to the mode's score (penalties are negative)."""

MODES: tuple[Mode, ...] = ("RESPOND", "CLARIFY", "ACT", "ACKNOWLEDGE", "IGNORE")
"""All modes: answer in substance, ask back, look things up first, say a brief word, say nothing.

Between equal scores the first in this order wins."""

READING_WEIGHT = "respond.answerable"
"""A weight of those profiles alone that use appraisal's reading of the text (``TurnReading``)."""

FULL_CONVERSATION, FULL_FINDINGS = 4, 2
"""How many turns of a conversation, and findings of an ACT loop, have full effect; further ones add nothing."""

_THRESHOLDS = Thresholds()
_SATURATION = Saturation()


def _rounded(value: float) -> float:
    return round(value, 6) + 0.0  # adding zero turns -0.0, which would be written differently, into 0.0


def contributions(
    signals: Signals,
    weights: Mapping[str, float],
    thresholds: Thresholds = _THRESHOLDS,
    saturation: Saturation = _SATURATION,
) -> Contributions:
    """Return the terms that apply to ``signals``, for each mode; a mode's score is the sum of its terms."""
    warmth = signals.context_warmth
    question = signals.has_question_mark or signals.interrogative_words
    cold = warmth < thresholds.cold
    warm = warmth > thresholds.warm
    moderate = thresholds.moderate_low <= warmth <= thresholds.moderate_high
    fact_density = min(signals.fact_count / saturation.fact_density, 1.0)
    gist_density = min(signals.gist_count / saturation.gist_density, 1.0)
    greeting = signals.greeting_pattern
    positive = signals.explicit_feedback == "positive"

    def when(applies: bool, factor: float = 1.0) -> float | None:
        return factor if applies else None

    factors: dict[Mode, dict[str, float | None]] = {
        "RESPOND": {
            "RESPOND.base": 1.0,
            "respond.warmth_boost": warmth,
            "respond.fact_density": fact_density,
            "respond.gist_density": gist_density,
            "respond.question_with_context": when(question and warmth > thresholds.question_context),
            "respond.cold_penalty": when(cold, -1.0),
            "respond.greeting_penalty": when(greeting, -1.0),
            "respond.positive_feedback_penalty": when(positive, -1.0),
        },
        "CLARIFY": {
            "CLARIFY.base": 1.0,
            "clarify.cold_boost": when(cold, 1.0 - warmth),
            "clarify.cold_question": when(question and cold),
            "clarify.question_no_facts": when(question and signals.fact_count == 0),
            "clarify.new_topic_question": when(question and signals.is_new_topic),
            "clarify.warm_penalty": when(warm, -1.0),
        },
        "ACT": {
            "ACT.base": 1.0,
            "act.question_moderate_context": when(question and moderate),
            "act.interrogative_fact_gap": when(
                signals.interrogative_words and signals.fact_count < thresholds.fact_gap
            ),
            "act.implicit_reference": when(signals.implicit_reference),
            "act.very_cold_penalty": when(warmth < thresholds.very_cold, -1.0),
            "act.warm_facts_penalty": when(warm and fact_density > thresholds.rich_facts, -1.0),
        },
        "ACKNOWLEDGE": {
            "ACKNOWLEDGE.base": 1.0,
            "acknowledge.greeting": when(greeting),
            "acknowledge.positive_feedback": when(positive),
            "acknowledge.question_penalty": when(question, -1.0),
        },
        "IGNORE": {"IGNORE.base": 1.0, "ignore.empty_input": when(signals.prompt_token_count == 0)},
    }
    terms: Contributions = {
        mode: {name: weights[name] * factor for name, factor in of_mode.items() if factor is not None}
        for mode, of_mode in factors.items()
    }
    return _with_reading(terms, signals, weights) if READING_WEIGHT in weights else terms


def _with_reading(terms: Contributions, signals: Signals, weights: Mapping[str, float]) -> Contributions:
    """Return the terms with those added that depend on the kind of turn, and on what is known about it.

    Information missing in a text may have been said before. So a clarifying question is less likely in a conversation
    under way, and where a fact that the person stated is relevant to the text (``bearing``). A cold context alone is no
    reason to ask: its term counts only as far as information is missing.
    """
    conversation = min(signals.working_memory_turns / FULL_CONVERSATION, 1.0)
    findings = min(signals.findings / FULL_FINDINGS, 1.0)
    terms["RESPOND"] |= {
        "respond.answerable": weights["respond.answerable"] * signals.answerable,
        "respond.task": weights["respond.task"] * signals.task,
        "respond.bearing": weights["respond.bearing"] * signals.bearing,
        "respond.findings": weights["respond.findings"] * findings,
    }
    if "clarify.cold_boost" in terms["CLARIFY"]:
        terms["CLARIFY"]["clarify.cold_boost"] *= signals.underspecified
    terms["CLARIFY"] |= {
        "clarify.underspecified": weights["clarify.underspecified"] * signals.underspecified,
        "clarify.talk_relief": -weights["clarify.talk_relief"] * conversation * signals.underspecified,
        "clarify.fact_relief": -weights["clarify.fact_relief"] * (signals.bearing if signals.fact_count else 0.0),
        "clarify.findings_penalty": -weights["clarify.findings_penalty"] * findings,
    }
    terms["ACT"] |= {
        "act.recall": weights["act.recall"] * signals.recall,
        "act.task": weights["act.task"] * signals.task,
    }
    terms["ACKNOWLEDGE"]["acknowledge.social"] = weights["acknowledge.social"] * signals.social
    return terms


def with_oscillation_guards(
    terms: Contributions, weights: Mapping[str, float], previous_mode: Mode | None, act_unproductive: bool
) -> Contributions:
    """Return ``terms`` with the guards against oscillation, which apply to this decision only.

    An ACT loop that found nothing makes ACT less likely; an answer to the agent's own question makes RESPOND likelier.
    """
    result = dict(terms)
    if act_unproductive:
        result["ACT"] = {**terms["ACT"], "guard.unproductive_act": -weights["guard.unproductive_act"]}
    if previous_mode == "CLARIFY":
        result["RESPOND"] = {**terms["RESPOND"], "guard.after_clarify": weights["guard.after_clarify"]}
    return result


def scores_of(terms: Contributions) -> dict[Mode, float]:
    """Return each mode's score: the exactly rounded sum of its terms, to 6 decimals."""
    return {mode: _rounded(fsum(terms[mode].values())) for mode in terms}


def ranked(scores: Mapping[Mode, float]) -> list[Mode]:
    """Return the scored modes, best first; equal scores in the order of ``MODES``."""
    return sorted((mode for mode in MODES if mode in scores), key=lambda mode: -scores[mode])


def confidence_of(top: float, second: float) -> float:
    """Return (top - second) / max(\\|top\\|, 0.001), to 6 decimals: the router's confidence, and its margin."""
    return _rounded((top - second) / max(abs(top), 0.001))


def effective_margin(
    signals: Signals,
    weights: Mapping[str, float],
    recent_confidences: tuple[float, ...] = (),
    thresholds: Thresholds = _THRESHOLDS,
) -> float:
    """Return the margin below which the best two modes are ambiguous.

    It is smaller in a warm context. It is larger with each sign that the meaning of the text is uncertain, and with a
    streak of low confidences on the topic (``recent_confidences``, oldest first).
    """
    base = weights["tiebreaker_base_margin"]
    margin = [base, -(base - weights["tiebreaker_min_margin"]) * signals.context_warmth]
    if signals.implicit_reference:
        margin.append(weights["tiebreaker.implicit_reference"])
    if signals.information_density < thresholds.low_density:
        margin.append(weights["tiebreaker.low_density"])
    if signals.interrogative_words and not signals.has_question_mark:
        margin.append(weights["tiebreaker.interrogative_without_mark"])
    latest = recent_confidences[-thresholds.streak :]
    if len(latest) == thresholds.streak and all(each < thresholds.low_confidence for each in latest):
        margin.append(weights["tiebreaker.low_confidence_streak"])
    return _rounded(fsum(margin))


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The first choice, its confidence, and the two candidates if the scores alone leave it ambiguous."""

    mode: Mode
    confidence: float
    candidates: tuple[Mode, ...]


def choose(scores: Mapping[Mode, float], margin: float) -> Choice:
    """Choose the highest score; the choice is ambiguous if its confidence is strictly below ``margin``.

    IGNORE is never a candidate: no answer at all is not close to any answer. ``scores`` hold two modes or more.
    """
    top, second = ranked(scores)[:2]
    confidence = confidence_of(scores[top], scores[second])
    ambiguous = confidence < margin and "IGNORE" not in (top, second)
    return Choice(mode=top, confidence=confidence, candidates=(top, second) if ambiguous else ())
