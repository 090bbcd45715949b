"""The effector contract: code that acts on the outside world, and what its shell (the code that runs it) must know.

An effector answers requests with events; requests are events too. An answer is, for example, a language model's text or
the receipt of a delivery. Outside, an effect happens at least once, since a foreign system and the log cannot be
updated in one transaction. In the log, each request is answered exactly once.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from schemas.actor import Emission, Message
from schemas.event import Event, Failed


def _unchanged(failed: Failed, request: Message) -> Failed:
    return failed


class TryLater(Exception):
    """Raised by an effector: the effect did not happen yet. Any worker may perform the request again later.

    Attributes:
        after_s: Seconds until then.
    """

    def __init__(self, after_s: float) -> None:
        self.after_s = after_s
        super().__init__(after_s)


@dataclass(frozen=True, slots=True)
class QueueTurn:
    """What is known of a request whose turn in a queue has come.

    Attributes:
        attempt: How many times it was delivered, this time included.
        behind: How many requests behind it the broker has not delivered yet, including those of other queues.
    """

    attempt: int = 1
    behind: int = 0


@dataclass(frozen=True, slots=True)
class OrderedQueue:
    """Requests that are performed one after another in the log's order, whichever worker performs each.

    Over all workers, one request of a queue is performed at a time. A request that is to be tried later holds up those
    behind it.

    Attributes:
        name: Letters and digits. It must never change: the queue's durable consumer, and so its position in the log,
            has this name.
        consumes: The event types that ask for an effect.
        takes: Whether a request belongs to this queue; others are skipped.
        handle: (request, its turn) -> the events that answer it; see :attr:`Effector.handle`.
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
        handle: Performs a request, and returns the events that answer it, at least one. They inherit the request's
            address (agent, session, exchange), and must be about the same agent. It may run twice for one request:
            where the foreign system knows idempotency keys, pass the request's ``id`` as one. If it raises, or takes
            longer than ``timeout_s``, the answer is a ``failed`` event. Only :class:`TryLater` leaves the request
            unanswered.
        failed: Its own ``Failed`` event type.
        enrich_failure: (a failure that the shell made, its request) -> the failure with the fields by which whoever
            asked finds the request, such as its id.
        timeout_s: Seconds that one request may take.
        concurrency: Requests at once in one process.
        in_order: Whether requests are performed one after another, as those of an :class:`OrderedQueue` are.
        ordered_queues: Queues of further requests, each with an order of its own.
        most_attempts: Deliveries without an answer after which a request is failed and not performed again, since it
            may be what kills the workers. None: no limit, for an effector that mostly waits. There a worker's death is
            rarely caused by the request.
    """

    name: str
    consumes: tuple[type[Event], ...]
    handle: Callable[[Message], Awaitable[Sequence[Event | Emission]]]
    failed: type[Failed]
    enrich_failure: Callable[[Failed, Message], Failed] = _unchanged
    timeout_s: float = 60.0
    concurrency: int = 8
    most_attempts: int | None = 10
    in_order: bool = False
    ordered_queues: tuple[OrderedQueue, ...] = ()
