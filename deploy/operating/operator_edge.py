"""The operator's edge: what people do to a running set, as events of owner ``operator``.

No message leads to such an event. Its id is derived from a random act, so that all events of one act belong together
and none is ever taken for another's.
"""

import asyncio
import getpass
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from events.errors import Unavailable, UnknownOutcome
from events.log import MAX_BATCH, MAX_RECORD_BYTES, Append, Log, Record
from schemas.actor import Scope
from schemas.catalogue import entry_of
from schemas.envelope import Envelope, encode_headers
from schemas.event import Event, encode_event, topic_of
from schemas.identity import event_id, new_exchange_id
from schemas.intake.choices import blame
from schemas.subjects import NO_PARTITION, Partitions, stored_subject

OWNER = "operator"
_SOURCE = "neuraxis/operator"
_RETRY_FIRST_S, _RETRY_MOST_S = 0.05, 1.0


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a person causes, and what it is about."""

    event: Event
    agent: str = ""
    session: str = ""


class InvalidOrder(ValueError):
    """An event that cannot be put on record; the message says which, why and what to do."""

    code = "invalid_input"


def who() -> str:
    """Return the name of the person at this machine, to be put on record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"


def records_of(orders: Sequence[Order], partitions: Partitions, now_ns: int) -> list[Record]:
    """Return the records of one act, in order.

    Raises:
        InvalidOrder: one is not valid, or does not fit into a message of the log.
    """
    act = new_exchange_id(now_ns)
    time = datetime.fromtimestamp(now_ns / 1e9, UTC).isoformat().replace("+00:00", "Z")
    return [_record(order, event_id(act, OWNER, place), time, partitions) for place, order in enumerate(orders)]


async def append(log: Log, orders: Sequence[Order], now_ns: int, within_s: float = 0.0) -> int:
    """Append the events of one act in order; return the sequence of the last.

    More than :data:`events.log.MAX_BATCH` events are stored batch by batch, each all or none. While the broker is away
    they are sent again, for ``within_s`` seconds; a batch in doubt is not, since it would be refused whole.

    Raises:
        InvalidOrder: see :func:`records_of`; nothing was stored.
        LogError: see ``events.log.Log.append``; earlier batches may be stored.
    """
    records = records_of(orders, log.partitions, now_ns)
    give_up = asyncio.get_running_loop().time() + within_s
    last = 0
    for begin in range(0, len(records), MAX_BATCH):
        last = await _stored(log, records[begin : begin + MAX_BATCH], give_up)
    return last


async def _stored(log: Log, records: Sequence[Record], give_up: float) -> int:
    loop, wait, doubt = asyncio.get_running_loop(), _RETRY_FIRST_S, ""
    while True:
        try:
            # The same message ids each time: the stream stores them once.
            return await log.append([Append(records)])
        except (Unavailable, UnknownOutcome) as wrong:
            if isinstance(wrong, UnknownOutcome):
                doubt = str(wrong)
            left = give_up - loop.time()
            if left <= 0 or (doubt and len(records) > 1):
                # What was in doubt once stays so, whatever the broker said after that.
                raise (UnknownOutcome(doubt) if doubt else wrong) from wrong
        await asyncio.sleep(min(wait, left))
        wait = min(2 * wait, _RETRY_MOST_S)


def _body(event: Event) -> bytes:
    try:
        body = encode_event(event)
        msgspec.json.decode(body, type=type(event))  # constructors check nothing
    except (msgspec.ValidationError, UnicodeEncodeError) as wrong:
        raise InvalidOrder(f"{topic_of(event)} is not valid: {blame(type(event), str(wrong))}") from wrong
    return body


def _record(order: Order, id: str, time: str, partitions: Partitions) -> Record:
    topic, scope = topic_of(order.event), entry_of(order.event).scope
    about_session = scope is Scope.SESSION
    if scope is not Scope.GLOBAL and not order.agent.strip():
        raise InvalidOrder(f"{topic}: the agent is empty: name the agent it is about")
    if about_session and not order.session.strip():
        raise InvalidOrder(f"{topic}: the session is empty: name the session it is about")
    envelope = Envelope(
        id=id,
        topic=topic,
        source=_SOURCE,
        time=time,
        agent=order.agent if scope is not Scope.GLOBAL else "",
        session=order.session if about_session else "",
    )
    subject = stored_subject(
        topic,
        partitions.agent_token(envelope.agent),
        partitions.session_token(envelope.session) if about_session else NO_PARTITION,
    )
    headers, body = encode_headers(envelope), _body(order.event)
    size = len(body) + sum(len(name) + len(value) + 4 for name, value in headers.items())
    if size > MAX_RECORD_BYTES:
        raise InvalidOrder(f"{topic}: {size} bytes with its headers, of at most {MAX_RECORD_BYTES}: shorten it")
    return Record(subject, headers, body)
