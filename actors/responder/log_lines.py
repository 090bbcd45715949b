"""The responder's lines in the worker's log: who is asked for an answer, and who wrote it. No person's text."""

from schemas.event import Event
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested


def log_lines(event: Event, latency_ms: float) -> tuple[str, ...]:
    """Return the lines about an event in the worker's log; ``latency_ms`` is how long its decision took."""
    if isinstance(event, ResponseRequested):
        again = f" again as {event.loop_id} ({event.rerun_reason})" if event.rerun_reason else ""
        # The purpose of the call is the name of its prompt in ``prompts``.
        return (f"[MODE:{event.mode}] Generating response via {event.call.purpose}.md{again}",)
    if isinstance(event, ResponseEmitted) and event.mode is not None:
        by = f"{event.backend} {event.model}".rstrip()
        why = "" if event.reason == event.mode else f" ({event.reason})"
        return (f"[MODE:{event.mode}] Response by {by}{why}",)
    return ()
