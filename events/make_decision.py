"""Making one decision: from a message and a state to events ready to be stored. Live and replay use the same code."""

from collections.abc import Sequence
from typing import Any

import msgspec

from events.decoding import Recorded, Unreadable, exchange_of
from schemas.actor import NEWEST_BEHAVIOUR, Actor, Emission, Message, Scope
from schemas.catalogue import entry_of
from schemas.envelope import decode_headers
from schemas.event import Event, encode_event, topic_of
from schemas.identity import event_id
from schemas.subjects import NO_PARTITION, Partitions, split_stored, stored_subject

DECIDER_RAISED = "decider_raised"
FOLD_RAISED = "fold_raised"
APPEND_REFUSED = "append_refused"
"""Reasons of a failure: deciding, or folding, raised an exception; the broker refuses to store what was decided."""

_ADDRESS_HEADERS = ("ce-id", "ce-agent", "ce-session")


class NewEvent(msgspec.Struct, frozen=True, gc=False):
    """An event that a decision yields: where it goes, its stored bytes, and how its own actor folds it."""

    message: Message
    topic: str
    subject: str
    data: bytes
    cause: str
    cause_seq: int
    index: int
    count: int


class Cause(msgspec.Struct, frozen=True, gc=False):
    """Why an event is emitted (a message or a timer), the address it inherits, and the behaviour in force there."""

    id: str
    seq: int
    time_ns: int
    agent: str
    session: str
    exchange: str
    agent_token: str
    session_token: str
    behaviour: int = NEWEST_BEHAVIOUR


def cause_of(delivery: Recorded | Unreadable) -> Cause:
    """Return a consumed message as the cause of events; of an unreadable message, as much as can be read."""
    stored = delivery.stored
    _, agent_token, session_token = split_stored(stored.subject)
    if isinstance(delivery, Recorded):
        envelope = delivery.envelope
    else:
        # Only the headers that address the failure event: an exchange must end even if its other headers are malformed.
        readable = {name: stored.headers[name] for name in _ADDRESS_HEADERS if name in stored.headers}
        envelope = decode_headers({"ce-id": f"seq-{stored.seq}", "ce-type": "", **readable})
    return Cause(
        envelope.id,
        stored.seq,
        stored.time_ns,
        envelope.agent,
        envelope.session,
        exchange_of(delivery),
        agent_token,
        session_token,
        delivery.message.behaviour if isinstance(delivery, Recorded) else NEWEST_BEHAVIOUR,
    )


def address_events(
    owner: str, cause: Cause, emissions: Sequence[Event | Emission], partitions: Partitions
) -> tuple[NewEvent, ...]:
    """Give the events that ``owner`` emits because of one cause their subjects, ids, indexes and bytes.

    An event that inherits its cause's agent and session gets its cause's partitions, even if those of its own agent and
    session are others. Otherwise it would lie outside the fence of the partition that wrote it: the condition that
    nobody else has appended to that partition's subjects.
    """
    decided = []
    for index, item in enumerate(emissions):
        emission = item if isinstance(item, Emission) else Emission(item)
        event = emission.event
        scope = entry_of(event).scope
        agent = cause.agent if emission.agent is None else emission.agent
        session = cause.session if emission.session is None else emission.session
        exchange = cause.exchange if emission.exchange is None else emission.exchange
        agent_token = partitions.agent_token(emission.agent) if emission.agent else cause.agent_token
        session_token = partitions.session_token(emission.session) if emission.session else cause.session_token
        if scope is not Scope.SESSION:
            session, session_token = "", NO_PARTITION
        if scope is Scope.GLOBAL:
            agent, agent_token = "", NO_PARTITION
        topic = topic_of(event)
        decided.append(
            NewEvent(
                Message(
                    event,
                    cause.seq,
                    event_id(cause.id, owner, index),
                    cause.time_ns,
                    agent,
                    session,
                    exchange,
                    cause.behaviour,
                ),
                topic,
                stored_subject(topic, agent_token, session_token),
                encode_event(event),
                cause.id,
                cause.seq,
                index,
                len(emissions),
            )
        )
    return tuple(decided)


def at_behaviour(delivery: Recorded | Unreadable, behaviour: int) -> Recorded | Unreadable:
    """Return a consumed message with the number of the behaviour that is in force."""
    if isinstance(delivery, Unreadable) or delivery.message.behaviour == behaviour:
        return delivery
    message = msgspec.structs.replace(delivery.message, behaviour=behaviour)
    return Recorded(delivery.stored, delivery.envelope, message)


def with_models(delivery: Recorded | Unreadable, models: tuple[str, ...]) -> Recorded | Unreadable:
    """Return a consumed message with the names of the trained models that its recorded decision used."""
    if isinstance(delivery, Unreadable) or not models:
        return delivery
    return Recorded(delivery.stored, delivery.envelope, msgspec.structs.replace(delivery.message, models=models))


def _failure(actor: Actor[Any], delivery: Recorded | Unreadable, reason: str, error: str) -> Event:
    topic = split_stored(delivery.stored.subject)[0]
    return actor.failed(reason=reason, error=error, failed_seq=delivery.stored.seq, failed_topic=topic)


def fold(actor: Actor[Any], state: Any, delivery: Recorded | Unreadable, own: Sequence[Message]) -> Any:
    """Fold a consumed message and the events it led to, in this order.

    A message that could not be read, folded or stored when it was decided is skipped: only its failure is folded.
    """
    if not own:
        return actor.fold(state, delivery.message) if isinstance(delivery, Recorded) else state
    skipped = any(isinstance(m.event, actor.failed) and m.event.reason != DECIDER_RAISED for m in own)
    if isinstance(delivery, Recorded) and not skipped:
        state = actor.fold(state, delivery.message)
    for message in own:
        state = actor.fold(state, message)
    return state


def _owner_and_cause(actor: Actor[Any], cause: Cause, partition: str, partitions: Partitions) -> tuple[str, Cause]:
    """Return the owner's identity and the cause as one partition of ``actor`` sees it.

    A message without the actor's key (an agent-wide one to a session-scoped actor) belongs to every partition. Each
    emits events under ids of its own, and within its own fence. A message stored in a partition that was divided later
    is decided in the one that its key belongs to now.
    """
    if partitions.former:
        cause = msgspec.structs.replace(
            cause,
            agent_token=partitions.resolve(cause.agent_token, cause.agent, of_sessions=False),
            session_token=partitions.resolve(cause.session_token, cause.session, of_sessions=True),
        )
    if actor.scope is Scope.SESSION and cause.session_token == NO_PARTITION:
        return f"{actor.name}/{partition}", msgspec.structs.replace(cause, session_token=partition)
    if actor.scope is Scope.AGENT and cause.agent_token == NO_PARTITION:
        return f"{actor.name}/{partition}", msgspec.structs.replace(cause, agent_token=partition)
    return actor.name, cause


def fail_append(
    actor: Actor[Any], state: Any, delivery: Recorded | Unreadable, partitions: Partitions, partition: str
) -> tuple[tuple[NewEvent, ...], Any]:
    """Replace the events of a decision that cannot be stored by a failure; return it and the next state."""
    return _fail(actor, state, delivery, partitions, partition, _failure(actor, delivery, APPEND_REFUSED, ""))


def decide(
    actor: Actor[Any], state: Any, delivery: Recorded | Unreadable, partitions: Partitions, partition: str
) -> tuple[tuple[NewEvent, ...], Any]:
    """Decide one message and fold it with its events; return the events and the next state.

    Never raises because of the message: if it cannot be read, decided or folded, the actor's ``failed`` event results.
    """
    try:
        decided = decide_only(actor, state, delivery, partitions, partition)
    except Exception as raised:
        failure = _failure(actor, delivery, FOLD_RAISED, type(raised).__name__)
        return _fail(actor, state, delivery, partitions, partition, failure)
    return fold_decided(actor, state, delivery, decided, partitions, partition)


def fold_decided(
    actor: Actor[Any],
    state: Any,
    delivery: Recorded | Unreadable,
    decided: tuple[NewEvent, ...],
    partitions: Partitions,
    partition: str,
) -> tuple[tuple[NewEvent, ...], Any]:
    """Fold a message with its decided events; return them, or the failure if folding fails, and the next state."""
    try:
        return decided, fold(actor, state, delivery, [d.message for d in decided])
    except Exception as raised:
        failure = _failure(actor, delivery, FOLD_RAISED, type(raised).__name__)
        return _fail(actor, state, delivery, partitions, partition, failure)


def _fail(
    actor: Actor[Any],
    state: Any,
    delivery: Recorded | Unreadable,
    partitions: Partitions,
    partition: str,
    failure: Event,
) -> tuple[tuple[NewEvent, ...], Any]:
    owner, cause = _owner_and_cause(actor, cause_of(delivery), partition, partitions)
    decided = address_events(owner, cause, (failure,), partitions)
    try:
        return decided, fold(actor, state, delivery, [d.message for d in decided])
    except Exception:
        # ``evolve`` raises even on its own failure event. Replay skips such an event, so the live fold does, too.
        return decided, state


def decide_only(
    actor: Actor[Any], state: Any, delivery: Recorded | Unreadable, partitions: Partitions, partition: str
) -> tuple[NewEvent, ...]:
    """Decide one message without folding it; return the events.

    Raises:
        Exception: the events cannot be addressed or encoded; :func:`decide` turns that into a failure.
    """
    emissions: Sequence[Event | Emission]
    if isinstance(delivery, Unreadable):
        emissions = (_failure(actor, delivery, delivery.code, ""),)
    else:
        try:
            emissions = tuple(actor.decide(state, delivery.message))
        except Exception as raised:
            emissions = (_failure(actor, delivery, DECIDER_RAISED, type(raised).__name__),)
    if not emissions:
        return ()
    owner, cause = _owner_and_cause(actor, cause_of(delivery), partition, partitions)
    return address_events(owner, cause, emissions, partitions)
