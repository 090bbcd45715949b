"""The router's log lines: one for each mode (way to answer) selected, one more for a tie-breaker. No person's text."""

from schemas.event import Event
from schemas.vocabulary.router import ModeSelected


def log_lines(event: Event, latency_ms: float) -> tuple[str, ...]:
    """Return the lines about an event in the worker's log; ``latency_ms`` is how long its decision took."""
    if not isinstance(event, ModeSelected):
        return ()
    line = (
        f"[ROUTER] Mode selected: {event.selected_mode} (confidence: {event.router_confidence:.2f}, {latency_ms:.1f}ms)"
    )
    if not event.tiebreaker_used:
        return (line,)
    first, second = event.tiebreaker_candidates
    return (f"[ROUTER] Tie-breaker invoked: {first} vs {second} → {event.selected_mode}", line)
