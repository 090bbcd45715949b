"""From the machine's moves to the events that record them.

The machine is the state of one session in numbers; a move is one step of it, such as ``tripped``. A layer's falsehood
is how far it gives orders to the model itself, from 0 to 1.
"""

from collections.abc import Iterable

from actors.breaker.machine import Machine, Move, Reading, stance_of
from actors.breaker.settings import BreakerSettings
from schemas.event import Event
from schemas.vocabulary.breaker import (
    BreakerAttemptFailed,
    BreakerCalmed,
    BreakerCleared,
    BreakerRecovered,
    BreakerRecoveryStarted,
    BreakerTerminated,
    BreakerTripped,
    BreakerWarned,
    BreakerWithheld,
    Standing,
)


def events_of(
    before: Machine, moves: Iterable[Move], reading: Reading | None, settings: BreakerSettings
) -> tuple[Event, ...]:
    """Return the events of a decision's moves, each starting from the state after the one before it.

    ``reading`` is the input's reading; None if no input led to the moves. They then report the latest falsehood.
    """
    events = []
    for move in moves:
        latest = before.falsehoods[-1] if before.falsehoods else 0.0
        falsehood = reading.falsehood if reading is not None else latest
        layer = reading.layer if reading is not None else ""
        events.append(_event(move, standing_of(before, move.after, falsehood, settings), layer, settings))
        before = move.after
    return tuple(events)


def standing_of(before: Machine, after: Machine, falsehood: float, settings: BreakerSettings) -> Standing:
    """Return the fields by which an event reports a move from ``before`` to ``after``."""
    return Standing(
        state_before=before.state,
        state=after.state,
        trust_before=before.trust,
        trust=after.trust,
        falsehood=falsehood,
        violations=after.breakers.total,
        attempts=after.attempts,
        attempt_turns=after.attempt_turns,
        stance=stance_of(after, settings),
    )


def _event(move: Move, standing: Standing, layer: str, settings: BreakerSettings) -> Event:
    match move.name:
        case "cleared":
            return BreakerCleared(standing=standing)
        case "withheld":
            return BreakerWithheld(standing=standing)
        case "tripped":
            assert move.violation is not None, "only a violation trips"
            wake = settings.recovery_after_ms
            return BreakerTripped(violation=move.violation, layer=layer, standing=standing, wake_after_ms=wake)
        case "recovery_started":
            assert move.by is not None, "an attempt is started by something"
            return BreakerRecoveryStarted(by=move.by, standing=standing, wake_after_ms=settings.calm_after_ms)
        case "attempt_failed":
            return BreakerAttemptFailed(standing=standing, wake_after_ms=settings.recovery_after_ms)
        case "recovered":
            return BreakerRecovered(by="timer" if move.by == "timer" else "input", standing=standing)
        case "warned":
            assert move.danger is not None, "a warning is of something"
            return BreakerWarned(danger=move.danger, standing=standing)
        case "calmed":
            return BreakerCalmed(standing=standing)
        case "terminated":
            assert move.reason is not None, "a rule terminates"
            return BreakerTerminated(reason=move.reason, violation=move.violation, layer=layer, standing=standing)
