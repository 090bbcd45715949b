"""Lines in the worker's log about the ACT loop, which gathers information before an answer. No person's text."""

from schemas.event import Event
from schemas.vocabulary.act import ActActionsRequested, ActDelegationRequested, ActFinished

_PREFIX = "[MODE:ACT] [ACT LOOP]"


def log_lines(event: Event, latency_ms: float) -> tuple[str, ...]:
    """Return the lines about an event in the worker's log; ``latency_ms``, the time of its decision, is not in them."""
    match event:
        case ActActionsRequested(iteration=iteration, actions=actions):
            return (f"{_PREFIX} Iteration {iteration}: executing {_counted(len(actions), 'action')}",)
        case ActDelegationRequested(iteration=iteration):
            return (f"{_PREFIX} Iteration {iteration}: delegating 1 action",)
        case ActFinished(termination=termination, iterations=iterations, findings=findings):
            found = _counted(len(findings), "finding")
            return (f"{_PREFIX} Finished after {_counted(iterations, 'iteration')}: {termination}, {found}",)
    return ()


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
