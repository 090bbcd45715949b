"""What the worker of an effector knows of a request: its queue, where its answer is stored, which events may answer."""

from itertools import chain

import msgspec

from events.decoding import Recorded, Unreadable
from events.jetstream.reading.pulled_message import PulledMessage
from events.make_decision import Cause, NewEvent, address_events
from schemas.actor import Scope
from schemas.catalogue import CATALOGUE, entry_of
from schemas.effectors.contract import Effector, OrderedQueue
from schemas.event import topic_of
from schemas.subjects import Partitions, split_stored

EFFECT_RAISED = "effect_raised"
EFFECT_TIMED_OUT = "effect_timed_out"
EFFECT_ABANDONED = "effect_abandoned"
RESULT_INVALID = "result_invalid"
TEXT_FORGOTTEN = "text_forgotten"
"""Reasons why a request failed, in this order.

The effector raised an exception; it took too long; the request was delivered too often without an answer; the effector
returned events that it may not write; the request's text was forgotten meanwhile, so that there is nothing to perform.
"""


class EffectorCounters(msgspec.Struct):
    """What happened in a process.

    Attributes:
        delivered: Deliveries of requests.
        performed: Times that the effector was called.
        stored: Stored answers.
        failed: Those of them that are failures.
        answered: Deliveries of requests that already had an answer.
    """

    delivered: int = 0
    performed: int = 0
    stored: int = 0
    failed: int = 0
    answered: int = 0


class InFlight(msgspec.Struct):
    """A delivery that is being handled, and the queue of the effector that it came from."""

    delivery: PulledMessage
    queue: OrderedQueue


class Request(msgspec.Struct, frozen=True):
    """A delivered request. Its answer is stored under ``filter``, and its first event has the id ``answer_id``."""

    decoded: Recorded | Unreadable
    cause: Cause
    filter: str
    answer_id: str


def may_answer(effector: Effector, request: Request, event: NewEvent) -> bool:
    """Return whether the effector may write this event: it owns it, and the search for the answer will find it."""
    _, agent_token, _ = split_stored(event.subject)
    entry = entry_of(event.message.event)
    return (
        agent_token == request.cause.agent_token
        and entry.owner == effector.name
        and entry.prefix == entry_of(effector.failed).prefix
    )


def failure_of(
    effector: Effector, request: Request, reason: str, error: BaseException | None, partitions: Partitions
) -> tuple[NewEvent, ...]:
    """Return the failure that answers a request which has no other answer."""
    decoded, stored = request.decoded, request.decoded.stored
    failed = effector.failed(
        reason=reason,
        error=type(error).__name__ if error is not None else "",
        failed_seq=stored.seq,
        failed_topic=split_stored(stored.subject)[0],
    )
    if isinstance(decoded, Recorded):
        failed = effector.enrich_failure(failed, decoded.message)
    return address_events(effector.name, request.cause, (failed,), partitions)


def check_effector(effector: Effector) -> None:
    """Raise ValueError, with the reason, if the effector contradicts the catalogue."""
    consumed = effector.consumes, *(queue.consumes for queue in effector.ordered_queues)
    if not all(consumed):
        raise ValueError(f"effector {effector.name}: it consumes nothing: name the events that ask for its effect")
    for event in (*chain.from_iterable(consumed), effector.failed):
        if topic_of(event) not in CATALOGUE:
            raise ValueError(f"effector {effector.name}: the catalogue does not list {event.__name__}: add its entry")
    failed = entry_of(effector.failed)
    if failed.owner != effector.name:
        raise ValueError(f"effector {effector.name}: {failed.topic} belongs to {failed.owner}: give it one of its own")
    if any(len(set(events)) != len(events) for events in consumed):
        raise ValueError(f"effector {effector.name}: it consumes an event twice: list each once")
    requests = [entry_of(event) for event in chain.from_iterable(consumed)]
    if failed.scope is Scope.GLOBAL and any(request.scope is not Scope.GLOBAL for request in requests):
        raise ValueError(
            f"effector {effector.name}: {failed.topic} is GLOBAL: a failure must carry its request's agent"
        )
