"""The effector contract: code that acts on the outside world, and what its shell must know to run it.

An effector answers requests with events; requests are events too. Answers are a language model's text, or the receipt
of a delivery. Towards the outside it acts at least once, since a foreign system and the log cannot be updated in one
transaction. In the log each request is answered exactly once.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from schemas.actor import Emission, Message
from schemas.event import Event, Failed


def _as_it_is(failed: Failed, request: Message) -> Failed:
    return failed


class TryLater(Exception):
    """A performance came to nothing yet: the request is to be performed again, by whichever worker gets it then.

    Attributes:
        after_s: Seconds until then.
    """

    def __init__(self, after_s: float) -> None:
        self.after_s = after_s
        super().__init__(after_s)


@dataclass(frozen=True, slots=True)
class QueueTurn:
    """How a request has come to its turn in a line.

    Attributes:
        attempt: How many times it was delivered, this time included.
        behind: How many requests behind it the broker has not delivered yet, also such as the line passes over.
    """

    attempt: int = 1
    behind: int = 0


@dataclass(frozen=True, slots=True)
class OrderedQueue:
    """Requests that are performed one after another in the log's order, whichever worker performs each.

    One request of a line is out at a time, over all workers; one that is tried later holds up those behind it.

    Attributes:
        name: Of letters and digits; tells an effector's lines apart, for good: a line's place in the log is kept by it.
        consumes: The event types that ask for an effect.
        takes: Whether a request is the line's: what is not is passed over.
        handle: (request, its turn) -> as an effector's own ``handle``.
    """

    name: str
    consumes: tuple[type[Event], ...]
    takes: Callable[[Message], bool]
    handle: Callable[[Message, QueueTurn], Awaitable[Sequence[Event | Emission]]]


@dataclass(frozen=True, slots=True)
class Effector:
    """A performer of requests.

    Attributes:
        name: Owner name in the catalogue; what it answers with must be its own events.
        consumes: The event types that ask for an effect.
        handle: Has the effect, and returns the events it came to, one at least; they inherit the request's address,
            and may not leave its agent. It may run twice for a request: pass the request's ``id`` on as an idempotency
            key where the outside knows such a thing. To raise or to overrun ``timeout_s`` is an answer too: ``failed``;
            only :class:`TryLater` is none.
        failed: Its own ``Failed`` event type.
        enrich_failure: (a failure that the shell made, the request it is of) -> the failure with what whoever asked
            knows the request by, such as its id.
        timeout_s: Seconds that one performance may take.
        concurrency: Performances at once in one process.
        in_order: Whether requests are performed one after another, as a :class:`OrderedQueue`'s are.
        lines: What asks for effects in other orders than the events of ``consumes`` do.
        most_attempts: Deliveries of a request, each ended without an answer, after which it is failed unperformed: it
            may be what kills. None where a performance is mostly waiting, so that ends in between say nothing of it.
    """

    name: str
    consumes: tuple[type[Event], ...]
    handle: Callable[[Message], Awaitable[Sequence[Event | Emission]]]
    failed: type[Failed]
    enrich_failure: Callable[[Failed, Message], Failed] = _as_it_is
    timeout_s: float = 60.0
    concurrency: int = 8
    most_attempts: int | None = 10
    in_order: bool = False
    ordered_queues: tuple[OrderedQueue, ...] = ()
