"""Signals, grounds, contexts and partitions that state only what matters to a test."""

from typing import Any

import msgspec

from actors.router import ACTOR
from actors.router.selection import Context, select_mode, signals_of
from actors.router.settings import RouterSettings
from schemas.event import Event
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import COLD, Familiarity, MemoryRecalled
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import FeedbackObserved, Mode, ModeSelected, Signals, TiebreakRequested
from tests.actors.scenario import Address, Partition

STANDARD = RouterSettings()
"""The profile that is the default: what appraisal reads in the text decides."""

CALIBRATED = RouterSettings(profile="calibrated")
SEED = RouterSettings(profile="seed")
WITHOUT_ACT = RouterSettings(profile="calibrated", act=False)
ASKING = RouterSettings(profile="calibrated", tiebreak="llm")

NEUTRAL = Signals(
    context_warmth=0.5,
    working_memory_turns=4,
    gist_count=0,
    fact_count=5,
    fact_keys=("a", "b", "c", "d", "e"),
    world_state_present=False,
    topic_confidence=0.0,
    is_new_topic=False,
    session_exchange_count=4,
    prompt_token_count=6,
    has_question_mark=False,
    interrogative_words=False,
    greeting_pattern=False,
    explicit_feedback=None,
    information_density=1.0,
    implicit_reference=False,
)
"""Neither cold nor warm, with facts enough that none is missing, and a text without any feature."""


def signals(**changes: Any) -> Signals:
    """Return the neutral signals with some replaced."""
    return msgspec.structs.replace(NEUTRAL, **changes)


def ground(turns: int = 0, gists: int = 0, facts: int = 0, **others: Any) -> Familiarity:
    """Return a familiarity of these counts, with the warmth that memory's formula gives them; no new topic."""
    warmth = 0.4 * min(gists / 5, 1.0) + 0.3 * min(facts / 5, 1.0) + 0.3 * min(turns / 4, 1.0)
    counted = {
        "context_warmth": round(warmth, 6),
        "working_memory_turns": turns,
        "gist_count": gists,
        "fact_count": facts,
        "fact_keys": tuple(f"fact {index}" for index in range(facts)),
        "is_new_topic": False,
        "session_exchange_count": turns,
    }
    return msgspec.structs.replace(COLD, **{**counted, **others})


def route(
    text: str,
    familiarity: Familiarity = COLD,
    settings: RouterSettings = CALIBRATED,
    **context: Any,
) -> ModeSelected:
    """Return the decision on a text; unless a ground is given, on the first of an agent."""
    return select_mode(
        signals_of(text, familiarity), Context(topic=familiarity.conversation_topic, **context), settings
    )


def partition(settings: RouterSettings = CALIBRATED) -> Partition:
    """Return an empty router partition with these settings."""
    return Partition(ACTOR).configure(settings)


def recalled(familiarity: Familiarity = COLD) -> MemoryRecalled:
    """Return memory's word on an exchange."""
    return MemoryRecalled(familiarity=familiarity, recollections=())


def finished(*, productive: bool) -> ActFinished:
    """Return the end of an ACT loop."""
    return ActFinished(termination="plan_empty", iterations=1, productive=productive, elapsed_ms=9, findings=())


def answered(
    mode: Mode | None = "RESPOND", action: str = "EXECUTED", first_mode: Mode | None = None
) -> ResponseEmitted:
    """Return the end of an exchange."""
    return msgspec.convert(
        {
            "topic": "forged_id.response.emitted",
            "stage": "DELIBERATIVE" if action == "EXECUTED" else "REFLEX",
            "action": action,
            "reason": "",
            "mode": mode,
            "first_mode": first_mode or mode,
            "response": "",
            "backend": "composer",
        },
        ResponseEmitted,
    )


def told(request: str, text: str, purpose: str = "tiebreak") -> LlmCompleted:
    """Return a model's answer to a request."""
    return LlmCompleted(
        request=request,
        purpose=purpose,  # type: ignore[arg-type]
        text=text,
        model="qwen3:4b",
        backend="openai",
        finish_reason="stop",
        prompt_tokens=90,
        completion_tokens=9,
        attempts=1,
    )


def untold(request: str, reason: str = "endpoint_unreachable", topic: str = "router.tiebreak_requested") -> LlmFailed:
    """Return a model's failure to answer a request; an empty one could not be read."""
    return LlmFailed(
        reason=reason,
        error="",
        failed_seq=1,
        failed_topic=f"forged_id.{topic}",
        request=request,
        purpose="tiebreak" if request else None,
    )


def hear(router: Partition, text: str, exchange: str, session: str = "session") -> list[Event]:
    """Send an input; return what it leads to by itself."""
    return router.when(InputReceived(text=text), Address(session=session, exchange=exchange))


def ask(
    router: Partition, text: str, exchange: str, session: str = "session", familiarity: Familiarity = COLD
) -> ModeSelected:
    """Send a text through; return the one decision on it. The exchange is left open."""
    hear(router, text, exchange, session)
    (selected,) = router.when(recalled(familiarity), Address(session=session, exchange=exchange))
    assert isinstance(selected, ModeSelected)
    return selected


def talk(
    router: Partition, text: str, exchange: str, session: str = "session", familiarity: Familiarity = COLD
) -> ModeSelected:
    """Send a text through and end its exchange in the mode that was selected."""
    selected = ask(router, text, exchange, session, familiarity)
    router.hear(answered(selected.terminal_mode), Address(session=session, exchange=exchange))
    return selected


def questioned(router: Partition, text: str, exchange: str, familiarity: Familiarity = COLD) -> tuple[str, Any]:
    """Send a text through that a tie-breaker is asked about; return the request's id, and the request."""
    hear(router, text, exchange)
    (message,) = router.hear(recalled(familiarity), Address(exchange=exchange))
    assert isinstance(message.event, TiebreakRequested)
    return message.id, message.event


def feedback(router: Partition, text: str, exchange: str) -> tuple[str, str] | None:
    """Send an input; return the feedback that it is, and the signal it was recognised by."""
    observed = hear(router, text, exchange)
    if not observed:
        return None
    (event,) = observed
    assert isinstance(event, FeedbackObserved)
    return event.feedback, event.signal
