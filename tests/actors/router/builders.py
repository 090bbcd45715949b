"""Signals, contexts and partitions that state only what matters to a test."""

from typing import Any

import msgspec

from actors.router import ACTOR
from actors.router.selection import Context, observe, select_mode
from actors.router.settings import RouterSettings
from schemas.vocabulary.appraisal import ENTRIES as APPRAISAL_ENTRIES
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import Mode, ModeSelected, Signals
from tests.actors.scenario import Address, Partition

ESCALATED = ArbiterEscalated(reason="no_precedent", nearest="", similarity=0.0, deadline_after_ms=5_000)
_APPRAISED = next(entry.sample for entry in APPRAISAL_ENTRIES if entry.event is AppraisalCompleted)

CALIBRATED = RouterSettings()
SEED = RouterSettings(profile="seed")

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


def route(text: str, context: Context | None = None, settings: RouterSettings = CALIBRATED) -> ModeSelected:
    """Return the decision on a text; without a context, on the first of a session."""
    context = context or Context(is_new_topic=True)
    return select_mode(observe(text, context, settings), context, settings)


def partition(settings: RouterSettings = CALIBRATED) -> Partition:
    """Return an empty router partition with these settings."""
    return Partition(ACTOR).configure(settings)


def appraised(topic: str, confidence: float, *, is_new: bool) -> AppraisalCompleted:
    """Return an appraisal that says what a text is about."""
    return msgspec.structs.replace(  # type: ignore[return-value]
        _APPRAISED, conversation_topic=topic, topic_confidence=confidence, is_new_topic=is_new
    )


def answered(mode: Mode | None = "RESPOND", action: str = "EXECUTED") -> ResponseEmitted:
    """Return the end of an exchange."""
    return msgspec.convert(
        {
            "topic": "forged_id.response.emitted",
            "stage": "DELIBERATIVE" if action == "EXECUTED" else "REFLEX",
            "action": action,
            "reason": "",
            "mode": mode,
            "first_mode": mode,
            "response": "",
            "backend": "composer",
        },
        ResponseEmitted,
    )


def ask(router: Partition, text: str, exchange: str, session: str = "session") -> ModeSelected:
    """Send a text through; return the one decision on it. The exchange is left open."""
    here = Address(session=session, exchange=exchange)
    router.hear(InputReceived(text=text), here)
    (selected,) = router.when(ESCALATED, here)
    assert isinstance(selected, ModeSelected)
    return selected


def talk(router: Partition, text: str, exchange: str, session: str = "session") -> ModeSelected:
    """Send a text through and end its exchange in the mode that was selected."""
    selected = ask(router, text, exchange, session)
    router.hear(answered(selected.terminal_mode), Address(session=session, exchange=exchange))
    return selected
