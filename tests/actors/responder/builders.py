"""Events around an exchange, stating only what matters to a test."""

from typing import Any

import msgspec

from schemas.event import Event, Failed
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ENTRIES as REFLEX_ENTRIES
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed
from schemas.vocabulary.router import ENTRIES as ROUTER_ENTRIES
from schemas.vocabulary.router import SAMPLE_SIGNALS, ModeSelected, Signals

_BLOCKED = next(entry.sample for entry in REFLEX_ENTRIES if entry.event is ReflexBlocked)
_SELECTED = next(entry.sample for entry in ROUTER_ENTRIES if entry.event is ModeSelected)

PASSED = ReflexPassed()
OVERDUE = ClockFired(set_by="forged_id.input.received", due_ns=1)


def asked(text: str = "What is the capital of Peru?", reply_to: str = "") -> InputReceived:
    return InputReceived(text=text, reply_to=reply_to)


def blocked(pattern: str = "jailbreak") -> Event:
    return msgspec.structs.replace(_BLOCKED, pattern=pattern)


def signals(**seen: Any) -> Signals:
    plain = msgspec.structs.replace(SAMPLE_SIGNALS, has_question_mark=False, interrogative_words=False)
    return msgspec.structs.replace(plain, **seen)


def chosen(mode: str | None, first: str | None = None, confidence: float = 0.3, **seen: Any) -> ModeSelected:
    """The router's choice of terminal ``mode``; None with the ``first`` choice while an ACT loop runs."""
    choice: Any = msgspec.structs.replace(
        _SELECTED,
        selected_mode=first or mode,
        terminal_mode=mode,
        router_confidence=confidence,
        signals=signals(**seen),
    )
    return choice


def failure(event: type[Failed], topic: str = "forged_id.input.received") -> Failed:
    return event(reason="decider_raised", error="ValueError", failed_seq=1, failed_topic=topic)
