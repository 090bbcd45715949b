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
"""A weight that only those profiles have that use appraisal's reading of the text (``TurnReading``)."""

FULL_CONVERSATION, FULL_FINDINGS = 4, 2
"""How many turns of a conversation, and how many findings of an ACT loop, have full effect; more have no more."""

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
    fact_density = min(signals.fact_count / saturation.fact_density, 1.0)
    gist_density = min(signals.gist_count / saturation.gist_density, 1.0)
    greeting = signals.greeting_pattern
    positive = signals.explicit_feedback == "positive"

    respond = {
        "RESPOND.base": weights["RESPOND.base"],
        "respond.warmth_boost": weights["respond.warmth_boost"] * warmth,
        "respond.fact_density": weights["respond.fact_density"] * fact_density,
        "respond.gist_density": weights["respond.gist_density"] * gist_density,
    }
    if question and warmth > thresholds.question_context:
        respond["respond.question_with_context"] = weights["respond.question_with_context"]
    if cold:
        respond["respond.cold_penalty"] = -weights["respond.cold_penalty"]
    if greeting:
        respond["respond.greeting_penalty"] = -weights["respond.greeting_penalty"]
    if positive:
        respond["respond.positive_feedback_penalty"] = -weights["respond.positive_feedback_penalty"]

    clarify = {"CLARIFY.base": weights["CLARIFY.base"]}
    if cold:
        clarify["clarify.cold_boost"] = weights["clarify.cold_boost"] * (1.0 - warmth)
    if question and cold:
        clarify["clarify.cold_question"] = weights["clarify.cold_question"]
    if question and signals.fact_count == 0:
        clarify["clarify.question_no_facts"] = weights["clarify.question_no_facts"]
    if question and signals.is_new_topic:
        clarify["clarify.new_topic_question"] = weights["clarify.new_topic_question"]
    if warm:
        clarify["clarify.warm_penalty"] = -weights["clarify.warm_penalty"]

    act = {"ACT.base": weights["ACT.base"]}
    if question and thresholds.moderate_low <= warmth <= thresholds.moderate_high:
        act["act.question_moderate_context"] = weights["act.question_moderate_context"]
    if signals.interrogative_words and signals.fact_count < thresholds.fact_gap:
        act["act.interrogative_fact_gap"] = weights["act.interrogative_fact_gap"]
    if signals.implicit_reference:
        act["act.implicit_reference"] = weights["act.implicit_reference"]
    if warmth < thresholds.very_cold:
        act["act.very_cold_penalty"] = -weights["act.very_cold_penalty"]
    if warm and fact_density > thresholds.rich_facts:
        act["act.warm_facts_penalty"] = -weights["act.warm_facts_penalty"]

    acknowledge = {"ACKNOWLEDGE.base": weights["ACKNOWLEDGE.base"]}
    if greeting:
        acknowledge["acknowledge.greeting"] = weights["acknowledge.greeting"]
    if positive:
        acknowledge["acknowledge.positive_feedback"] = weights["acknowledge.positive_feedback"]
    if question:
        acknowledge["acknowledge.question_penalty"] = -weights["acknowledge.question_penalty"]

    ignore = {"IGNORE.base": weights["IGNORE.base"]}
    if signals.prompt_token_count == 0:
        ignore["ignore.empty_input"] = weights["ignore.empty_input"]

    terms: Contributions = {
        "RESPOND": respond,
        "CLARIFY": clarify,
        "ACT": act,
        "ACKNOWLEDGE": acknowledge,
        "IGNORE": ignore,
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
