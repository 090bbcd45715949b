"""The effector contract: what touches the outside world, and what its shell must know to run it.

An effector answers requests, which are events, with events: a language model's answer, a delivery's receipt. Towards
the outside it acts at least once, since nobody can make a foreign system and the log agree at one instant; in the log
a request is answered exactly once.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from schemas.actor import Emission, Message
from schemas.event import Event, Failed


def _as_it_is(failed: Failed, request: Message) -> Failed:
    return failed


def _never(request: Message) -> bool:
    return False


async def _at_once(request: Message) -> None:
    return None


def _nothing(of: Message | float) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Effector:
    """A performer of requests.

    Attributes:
        name: Owner name in the catalogue; what it answers with must be its own events.
        consumes: The event types that ask for an effect.
        handle: Has the effect, and returns the events it came to, one at least; they inherit the request's address,
            and may not leave its agent. It may run twice for a request: pass the request's ``id`` on as an idempotency
            key where the outside knows such a thing. To raise or to overrun ``timeout_s`` is an answer too: ``failed``.
        failed: Its own ``Failed`` event type.
        naming: (a failure that the shell made, the request it is of) -> the failure with what whoever asked knows the
            request by, such as its id.
        timeout_s: Seconds that one performance may take.
        concurrency: Performances at once in one process.
        most_attempts: Deliveries of a request, each ended without an answer, after which it is failed unperformed: it
            may be what kills. None where a performance is mostly waiting, so that ends in between say nothing of it.
        admit: Called with each request as soon as it is delivered, in the order of deliveries. Returns None once it is
            to be performed, which happens then unless the log holds its answer; or what answers it without any effect.
            Here an effector for which order matters has a request wait.
        waits: (request) -> whether its performance, under way, does nothing at the moment that would be had twice: a
            worker that stops hands such a request back at once, as it does with one that waits for its turn.
        ended: (request) -> called when a request that was given to ``admit`` has its answer in the log, or is handed
            back: what it has kept others from is theirs.
        exclusive: Whether one worker at a time gets requests, while others stand by: for an effector for which order
            matters.
        begins: (seconds) -> called when a worker begins: requests older than those that come first may come within so
            many seconds, since they are out with other workers, which may be dead; 0 where none is. Called again, with
            fewer, once all have come.
    """

    name: str
    consumes: tuple[type[Event], ...]
    handle: Callable[[Message], Awaitable[Sequence[Event | Emission]]]
    failed: type[Failed]
    enrich_failure: Callable[[Failed, Message], Failed] = _as_it_is
    timeout_s: float = 60.0
    concurrency: int = 8
    most_attempts: int | None = 10
    admit: Callable[[Message], Awaitable[Sequence[Event | Emission] | None]] = _at_once
    waits: Callable[[Message], bool] = _never
    ended: Callable[[Message], None] = _nothing
    exclusive: bool = False
    on_start: Callable[[float], None] = _nothing
