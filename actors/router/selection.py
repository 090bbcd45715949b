"""From a text and its context to a recorded decision: the pure core that decider, what-if and tests share."""

import msgspec

from actors.router.scoring import choose, context_warmth, contributions, effective_margin, guarded, ranked, scores_of
from actors.router.settings import RouterSettings, effective_weights
from actors.router.signals import read_text
from schemas.vocabulary.router import Mode, ModeSelected, Signals

UNCLASSIFIED = "unclassified"
"""The topic of a text that nothing has classified."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the text. Whatever no actor reports stays at its default, which means "none".

    ``turns`` are the finished exchanges in working memory, ``exchanges_before`` the session's inputs before this one.
    ``recent_confidences`` are the topic's latest ones, oldest first. ``act_unproductive`` says that the last exchange's
    ACT loop found nothing.
    """

    turns: int = 0
    gist_count: int = 0
    fact_keys: tuple[str, ...] = ()
    world_state_present: bool = False
    topic: str = UNCLASSIFIED
    topic_confidence: float = 0.0
    is_new_topic: bool = False
    exchanges_before: int = 0
    previous_mode: Mode | None = None
    act_unproductive: bool = False
    recent_confidences: tuple[float, ...] = ()


def observe(text: str, context: Context, settings: RouterSettings) -> Signals:
    """Return everything that scoring looks at."""
    read = read_text(text)
    facts = len(context.fact_keys)
    weights = effective_weights(settings)
    return Signals(
        context_warmth=context_warmth(context.gist_count, facts, context.turns, weights, settings.saturation),
        working_memory_turns=context.turns,
        gist_count=context.gist_count,
        fact_count=facts,
        fact_keys=context.fact_keys,
        world_state_present=context.world_state_present,
        topic_confidence=context.topic_confidence,
        is_new_topic=context.is_new_topic,
        session_exchange_count=context.exchanges_before,
        prompt_token_count=read.prompt_token_count,
        has_question_mark=read.has_question_mark,
        interrogative_words=read.interrogative_words,
        greeting_pattern=read.greeting_pattern,
        explicit_feedback=read.explicit_feedback,
        information_density=read.information_density,
        implicit_reference=read.implicit_reference,
    )


def select_mode(signals: Signals, context: Context, settings: RouterSettings) -> ModeSelected:
    """Return the decision on ``signals``, with every number it rests on.

    A blank text is IGNORE, offered alone and not scored against the others. Ambiguity between the best two is
    recorded with its candidates, and settled by the higher score.
    """
    weights = effective_weights(settings)
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
    scores = scores_of(guarded(terms, weights, context.previous_mode, context.act_unproductive))
    margin = effective_margin(signals, weights, context.recent_confidences, settings.thresholds)
    choice = choose(scores, margin)
    terminal: Mode | None = choice.mode
    reason = "highest_score"
    if choice.mode == "ACT" and settings.act_available:
        terminal = None
    elif choice.mode == "ACT":
        terminal = next(mode for mode in ranked(scores) if mode != "ACT")
        reason = "act_unavailable"
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


def _by_name(scores: dict[Mode, float]) -> dict[str, float]:
    return {str(mode): score for mode, score in scores.items()}
