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


@dataclass(frozen=True, slots=True)
class Effector:
    """A performer of requests.

    Attributes:
        name: Owner name in the catalogue; what it answers with must be its own events.
        consumes: The event types that ask for an effect.
        perform: Has the effect, and returns the events it came to, one at least; they inherit the request's address,
            and may not leave its agent. It may run twice for a request: pass the request's ``id`` on as an idempotency
            key where the outside knows such a thing. To raise or to overrun ``timeout_s`` is an answer too: ``failed``.
        failed: Its own ``Failed`` event type.
        naming: (a failure that the shell made, the request it is of) -> the failure with what whoever asked knows the
            request by, such as its id.
        timeout_s: Seconds that one performance may take.
        concurrency: Performances at once in one process.
        most_attempts: Deliveries of a request, each ended without an answer, after which it is failed unperformed: it
            may be what kills. None where a performance is mostly waiting, so that ends in between say nothing of it.
    """

    name: str
    consumes: tuple[type[Event], ...]
    perform: Callable[[Message], Awaitable[Sequence[Event | Emission]]]
    failed: type[Failed]
    naming: Callable[[Failed, Message], Failed] = _as_it_is
    timeout_s: float = 60.0
    concurrency: int = 8
    most_attempts: int | None = 10
