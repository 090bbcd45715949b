"""The orders of operators to a running set, as events of the entry point ``operator``. Pure.

No message causes such an event. Its id is derived from a random id of the operation. So all events of one operation
belong together, and none is mistaken for an event of another operation.
"""

from collections.abc import Sequence

import msgspec

from actors.gateway.external_events import InvalidInput, WrappedEvent, build_event
from events.log import MAX_RECORD_BYTES, Record
from schemas.actor import Scope
from schemas.catalogue import entry_of
from schemas.event import Event, topic_of
from schemas.identity import event_id, new_exchange_id
from schemas.intake.blank import is_blank
from schemas.subjects import Partitions

OWNER = "operator"
"""The part of the system that all these events come from, as their envelopes name it."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """An event that an operator causes, and the agent and session that it is about."""

    event: Event
    agent: str = ""
    session: str = ""


def records_of(orders: Sequence[Order], partitions: Partitions, now_ns: int) -> list[Record]:
    """Return the records of one operation, in order.

    Raises:
        InvalidInput: one is not valid, or does not fit into a message of the log.
    """
    return [each.record for each in events_of_orders(orders, partitions, now_ns)]


def check_orders(orders: Sequence[Order], partitions: Partitions) -> None:
    """Raise InvalidInput if :func:`records_of` would, before something else is done for the orders."""
    records_of(orders, partitions, 0)


def events_of_orders(orders: Sequence[Order], partitions: Partitions, now_ns: int) -> list[WrappedEvent]:
    """Return the events of one operation, in order; raises as :func:`records_of`."""
    operation = new_exchange_id(now_ns)
    return [
        _wrapped(order, event_id(operation, OWNER, index), partitions, now_ns) for index, order in enumerate(orders)
    ]


def _wrapped(order: Order, id: str, partitions: Partitions, now_ns: int) -> WrappedEvent:
    topic, scope = topic_of(order.event), entry_of(order.event).scope
    about_session = scope is Scope.SESSION
    if scope is not Scope.GLOBAL and is_blank(order.agent):
        raise InvalidInput(f"{topic}: the agent is empty: name the agent it is about")
    if about_session and is_blank(order.session):
        raise InvalidInput(f"{topic}: the session is empty: name the session it is about")
    wrapped = build_event(
        order.event,
        id=id,
        owner=OWNER,
        agent=order.agent if scope is not Scope.GLOBAL else "",
        session=order.session if about_session else "",
        partitions=partitions,
        now_ns=now_ns,
    )
    headers, body = wrapped.record.headers, wrapped.record.data
    size = len(body) + sum(len(name) + len(value) + 4 for name, value in headers.items())
    if size > MAX_RECORD_BYTES:
        raise InvalidInput(f"{topic}: {size} bytes with its headers, of at most {MAX_RECORD_BYTES}: shorten it")
    return wrapped
