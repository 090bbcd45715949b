"""From signals and context to a recorded decision: the pure core that the decider, what-if and tests share.

Signals are what is read from a text and known to memory; the decision chooses the mode in which to answer. What-if is a
replay under other settings. The kind of turn is what a text is in a dialogue: a question, a courtesy, a task and so on.
"""

from collections.abc import Mapping, Sequence

import msgspec

from actors.router.regulator_offsets import NO_OFFSETS, Offsets, regulated_weights
from actors.router.scoring import (
    MODES,
    choose,
    confidence_of,
    contributions,
    effective_margin,
    ranked,
    scores_of,
    with_oscillation_guards,
)
from actors.router.settings import RouterSettings, effective_weights
from actors.router.signals import read_text
from schemas.vocabulary.appraisal import TurnReading
from schemas.vocabulary.memory import COLD, Familiarity, Recollection
from schemas.vocabulary.router import Mode, ModeSelected, Signals

NO_READING = TurnReading(answerable=0.0, underspecified=0.0, social=0.0, recall=0.0, task=0.0)
"""The reading of a text that appraisal has not classified as a turn."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision depends on besides its signals.

    ``previous_mode`` is the mode in which the session's previous exchange was answered. ``act_unproductive`` says that
    the session's latest ACT loop found nothing. ``recent_confidences`` are the latest ones of the topic, oldest first.
    """

    topic: str = COLD.conversation_topic
    previous_mode: Mode | None = None
    act_unproductive: bool = False
    recent_confidences: tuple[float, ...] = ()


def signals_of(text: str, familiarity: Familiarity, turn: TurnReading | None = None) -> Signals:
    """Return all signals for scoring: what memory knows about the topic, and the signals of the text.

    ``turn`` is appraisal's reading of the text; without it the kind of turn is unknown.
    """
    text_signals = read_text(text)
    reading = NO_READING if turn is None else turn
    return Signals(
        context_warmth=familiarity.context_warmth,
        working_memory_turns=familiarity.working_memory_turns,
        gist_count=familiarity.gist_count,
        fact_count=familiarity.fact_count,
        fact_keys=familiarity.fact_keys,
        world_state_present=familiarity.world_state_present,
        topic_confidence=familiarity.topic_confidence,
        is_new_topic=familiarity.is_new_topic,
        session_exchange_count=familiarity.session_exchange_count,
        prompt_token_count=text_signals.prompt_token_count,
        has_question_mark=text_signals.has_question_mark,
        interrogative_words=text_signals.interrogative_words,
        greeting_pattern=text_signals.greeting_pattern,
        explicit_feedback=text_signals.explicit_feedback,
        information_density=text_signals.information_density,
        implicit_reference=text_signals.implicit_reference,
        answerable=reading.answerable,
        underspecified=reading.underspecified,
        social=reading.social,
        recall=reading.recall,
        task=reading.task,
        bearing=familiarity.bearing,
    )


def select_mode(
    signals: Signals, context: Context, settings: RouterSettings, offsets: Offsets = NO_OFFSETS
) -> ModeSelected:
    """Return the decision on ``signals``, with every number that it depends on; ``offsets`` are the regulator's.

    For a blank text it is IGNORE, which is not scored against the others. If the best two modes are ambiguous, the
    candidates are recorded, and the higher score decides; ``with_tiebreak`` replaces that with a tie-breaker's answer.
    """
    weights = regulated_weights(effective_weights(settings), offsets)
    terms = contributions(signals, weights, settings.thresholds, settings.saturation)
    if signals.prompt_token_count == 0:
        return ModeSelected(
            conversation_topic=context.topic,
            selected_mode="IGNORE",
            terminal_mode="IGNORE",
            router_confidence=1.0,
            scores=_by_name(scores_of({"IGNORE": terms["IGNORE"]})),
            tiebreaker_used=False,
            tiebreaker_candidates=(),
            tiebreaker_outcome="",
            margin=1.0,
            effective_margin=0.0,
            signals=signals,
            weights=weights,
            previous_mode=context.previous_mode,
            reason="blank_input",
        )
    scores = scores_of(with_oscillation_guards(terms, weights, context.previous_mode, context.act_unproductive))
    margin = effective_margin(signals, weights, context.recent_confidences, settings.thresholds)
    choice = choose(scores, margin)
    terminal, reason = _terminal_mode(choice.mode, scores, settings)
    return ModeSelected(
        conversation_topic=context.topic,
        selected_mode=choice.mode,
        terminal_mode=terminal,
        router_confidence=choice.confidence,
        scores=_by_name(scores),
        tiebreaker_used=False,
        tiebreaker_candidates=choice.candidates,
        tiebreaker_outcome="higher_score" if choice.candidates else "",
        margin=choice.confidence,
        effective_margin=margin,
        signals=signals,
        weights=weights,
        previous_mode=context.previous_mode,
        reason=reason,
    )


def needs_tiebreak(selected: ModeSelected, settings: RouterSettings) -> bool:
    """Whether a tie-breaker can make a difference: there are two candidates, and both are possible.

    If no ACT loop may run, ACT and another mode both lead to that other one.
    """
    candidates = selected.tiebreaker_candidates
    return bool(candidates) and (settings.act or "ACT" not in candidates)


def with_tiebreak(selected: ModeSelected, outcome: str, settings: RouterSettings) -> ModeSelected:
    """Return a decision after a tie-breaker's outcome: one of the candidates, or the reason why there is no answer."""
    mode = next((mode for mode in selected.tiebreaker_candidates if mode == outcome), None)
    scores = {mode: selected.scores[mode] for mode in MODES if mode in selected.scores}
    terminal, reason = _terminal_mode(mode or selected.selected_mode, scores, settings)
    return msgspec.structs.replace(
        selected,
        selected_mode=mode or selected.selected_mode,
        terminal_mode=terminal,
        tiebreaker_used=True,
        tiebreaker_outcome=outcome,
        reason=reason if mode is None else "tiebreak",
    )


def reroute(
    first: ModeSelected, settings: RouterSettings, offsets: Offsets = NO_OFFSETS, findings: Sequence[Recollection] = ()
) -> ModeSelected:
    """Return the decision after an ACT loop: the signals and the ``findings``, scored again without ACT.

    The loop has looked things up. A finding's energy is how strongly it was recalled. No model is asked here.
    """
    weights = regulated_weights(effective_weights(settings), offsets)
    best = max((each.energy for each in findings), default=0.0)
    signals = msgspec.structs.replace(first.signals, findings=len(findings), bearing=max(first.signals.bearing, best))
    terms = contributions(signals, weights, settings.thresholds, settings.saturation)
    terms = with_oscillation_guards(terms, weights, first.previous_mode, act_unproductive=False)
    scores = scores_of({mode: terms[mode] for mode in MODES if mode != "ACT"})
    mode, second = ranked(scores)[:2]
    confidence = confidence_of(scores[mode], scores[second])
    return msgspec.structs.replace(
        first,
        selected_mode=mode,
        terminal_mode=mode,
        router_confidence=confidence,
        scores=_by_name(scores),
        tiebreaker_used=False,
        tiebreaker_candidates=(),
        tiebreaker_outcome="",
        margin=confidence,
        effective_margin=effective_margin(signals, weights, thresholds=settings.thresholds),
        signals=signals,
        weights=weights,
        reason="highest_score",
        rerouted=True,
    )


def _terminal_mode(mode: Mode, scores: Mapping[Mode, float], settings: RouterSettings) -> tuple[Mode | None, str]:
    """Return the mode of the answer (None if an ACT loop comes first), and the reason of the decision."""
    if mode != "ACT":
        return mode, "highest_score"
    if settings.act:
        return None, "highest_score"
    return next(other for other in ranked(scores) if other != "ACT"), "act_unavailable"


def _by_name(scores: Mapping[Mode, float]) -> dict[str, float]:
    return {str(mode): score for mode, score in scores.items()}
