"""Lines in the worker's log about an idle agent's thoughts: numbers and names, no text of any person. Pure.

A thought goes from a concept (a term) to an episode (an exchange), both named by their ids in memory.
"""

from collections.abc import Iterable

from schemas.event import Event
from schemas.vocabulary.drift import DriftThought


def log_lines(event: Event, latency_ms: float) -> Iterable[str]:
    """Yield the line of a thought; nothing for other events. ``latency_ms``, the time of its decision, is not in it."""
    if isinstance(event, DriftThought):
        worded = f"{event.by} ({event.reason})" if event.reason else event.by
        yield (
            f"[DRIFT] {event.kind} from {event.seed} ({event.strategy}), activation {event.activation:.2f}, "
            f"on {event.episode}, by {worded}"
        )
