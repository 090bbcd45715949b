"""Forgetting a session's words, or a fact: counting what would go, doing it step by step, and proving it at the end.

Words are sealed, that is, encrypted with a key for each session. They are forgotten by destroying the key: no event of
the log is changed or removed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from actors.gateway import NoEnd, Order, UnreadableEnd
from actors.registry import ACTORS, actor_named
from deploy.operating.deadline import Deadline
from deploy.operating.operator_session import FACTS_SESSION
from deploy.operating.order_client import NobodyServes, OrderClient
from deploy.operating.session_copies import sessions_with_copies
from events.decoding import Recorded, Unreadable, address_of, decode
from events.errors import LogError
from events.jetstream import JetStreamLog, KeyValueSnapshots
from events.log import Record, Seal, Stored
from events.replay.replay import Replay
from events.replay.run_replay import run_replay
from events.replay.sources import StreamSource
from events.replay.unread_events import UnreadEvents
from events.routes import partition_filters, partitions_of
from events.sealing.keys import Keyring, key_name
from events.sealing.sealed_texts import SEALED_HEADER, holds_words, location_to_seal
from events.sealing.sealing import Sealing
from events.snapshot import snapshot_key
from schemas.actor import Message
from schemas.catalogue import decode_event, upcast_body
from schemas.envelope import decode_headers, exchange_in
from schemas.event import topic_of
from schemas.subjects import EVERYTHING, topic_filter
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import MemoryForgotten, TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted
from schemas.wording.unknown_fields import change_unknown

_SNAPSHOT_WAIT_S = 10.0
"""Seconds within which living workers may replace a snapshot; then it is deleted."""

_POLL_INTERVAL_S = 0.2

_UNKNOWN = "unknown"
"""What is said of an event's words if this release cannot read the event."""


class NotForgotten(LogError):
    """Forgetting stopped half-way; the message says where, and that it may be repeated."""

    code = "not_forgotten"


class NothingToForget(LogError):
    """The log knows no such session."""

    code = "nothing_to_forget"


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What the log holds of a session.

    Of its ``events``, ``sealed`` ones hold words that the session's key decrypts, ``gone`` ones words whose key is
    destroyed, and ``readable`` ones words in plain text. ``open`` counts exchanges without an end. ``sample_seq`` is
    the sequence of the first sealed event, 0 for none. ``reminded`` are sessions of the agent whose own events repeat
    words of this one; see ``deploy.operating.session_copies``. ``unread`` says which events cannot be read by this
    release, or here at all (the log's beginning): they may hold words of the session.
    """

    agent: str
    session: str
    events: int
    exchanges: int
    open: int
    sealed: int
    gone: int
    readable: int
    sample_seq: int
    reminded: tuple[str, ...]
    unread: str = ""


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What was done.

    ``ordered_seq`` and ``forgotten_seq`` are the sequences of the order and of memory's answer; ``memories`` counts
    what memory dropped. Of the snapshots of states, ``snapshots_replaced`` were written anew by workers, and
    ``snapshots_dropped`` were deleted here. ``key_destroyed`` is False if there was no key. ``unreadable`` counts the
    events whose words cannot be read any more, ``readable`` those whose words still can, in a log that is not sealed.
    ``reminded`` are sessions that repeat its words in events of their own, which stay. ``unread`` is as in
    :class:`Survey`.
    """

    agent: str
    session: str
    ordered_seq: int
    forgotten_seq: int = 0
    memories: int = 0
    snapshots_replaced: int = 0
    snapshots_dropped: int = 0
    key_destroyed: bool = False
    unreadable: int = 0
    readable: int = 0
    reminded: tuple[str, ...] = ()
    unread: str = ""


async def survey(log: JetStreamLog, agent: str, session: str) -> Survey:
    """Count what the log holds of a session; raises LogError."""
    key = None
    if log.sealing is not None:
        key = await Keyring(log.sealing.keyring.store).to_seal(key_name(agent, session), create=False)
    counts = {"events": 0, "sealed": 0, "gone": 0, "readable": 0}
    inputs: set[str] = set()
    ends: set[str] = set()
    unread = UnreadEvents()
    sample = 0
    async for message in _messages(log.as_stored(), agent, session):
        stored = message.stored
        counts["events"] += 1
        kind = _kind_of(message, key.id if key is not None else "")
        if kind == _UNKNOWN and isinstance(message, Unreadable):
            unread.note(message)
        elif kind:
            counts[kind] += 1
        if kind == "sealed":
            sample = sample or stored.seq
        topic, exchange = stored.headers.get("ce-type"), exchange_in(stored.headers)
        if topic == topic_of(InputReceived):
            inputs.add(exchange)
        elif topic == topic_of(ResponseEmitted):
            ends.add(exchange)
    reminded = await sessions_with_copies(log, agent, session, unread)
    return Survey(
        agent=agent,
        session=session,
        exchanges=len(inputs),
        open=len(inputs - ends),
        sample_seq=sample,
        reminded=reminded,
        unread="; ".join(filter(None, (unread.text, log.unseen))),
        **counts,
    )


async def count_memories(log: JetStreamLog, agent: str, order: ForgetOrdered, session: str) -> int:
    """Return how many memories an order would drop: memory's own decision on the present log; raises LogError."""
    actor = actor_named("memory")
    partition = log.partitions.agent_token(agent)
    replay = Replay([actor], log.partitions)
    filters = partition_filters(actor, partition, log.partitions)
    await run_replay(StreamSource(log), replay, filters=filters, progress=lambda _: None)
    view = replay.views.get((actor.name, partition))
    state = view.state if view is not None else actor.initial()
    message = Message(order, (await log.info()).last_seq + 1, "", time.time_ns(), agent, session)
    emitted = actor.decide(state, message)
    return sum(event.count for event in emitted if isinstance(event, MemoryForgotten))


async def forget_session(
    log: JetStreamLog, agent: str, session: str, *, by: str, why: str, deadline: Deadline
) -> Forgotten:
    """Forget a session's words: in memory, in snapshots, and, if the log is sealed, in the log.

    It may be repeated, also where it stopped half-way.

    Raises:
        NothingToForget: the log holds nothing of such a session.
        NotForgotten: an exchange stays open, memory does not answer in time, or the words can still be read.
        LogError: the broker cannot be reached.
    """
    found = await _wait_for_ends(log, agent, session, deadline)
    if not found.events:
        raise NothingToForget(
            f"the log holds nothing of session {session} of agent {agent}: nothing was done; look at both names "
            "(`neuraxis log tail --no-follow --since 1` shows those there are)"
            f"{f'; but {log.unseen}: order it where that is' if log.unseen else ''}"
        )
    order = ForgetOrdered(what="session", by=by, why=why)
    done = await _give_order(log, order, agent, session, deadline)
    if log.sealing is not None:
        destroyed = await log.sealing.keyring.store.destroy(key_name(agent, session))
        done = msgspec.structs.replace(done, key_destroyed=destroyed)
        await _prove(log, found.sample_seq)
    after = await survey(log, agent, session)
    return msgspec.structs.replace(
        done, unreadable=after.gone, readable=after.readable, reminded=found.reminded, unread=after.unread
    )


async def forget_fact(log: JetStreamLog, agent: str, key: str, *, by: str, why: str, deadline: Deadline) -> Forgotten:
    """Have memory forget a fact of an agent; the log keeps the words of the sessions in which people told it.

    Raises:
        NotForgotten: memory does not answer in time.
        LogError: the broker cannot be reached.
    """
    return await _give_order(log, ForgetOrdered(what="fact", key=key, by=by, why=why), agent, FACTS_SESSION, deadline)


async def _wait_for_ends(log: JetStreamLog, agent: str, session: str, deadline: Deadline) -> Survey:
    """Wait until the session's open exchanges have ended: until then, the states of actors hold their words."""
    while (found := await survey(log, agent, session)).open:
        if deadline.left_for_step < _POLL_INTERVAL_S:
            raise NotForgotten(
                f"{found.open} exchange(s) of session {session} are still open after {deadline.waited:.1f} s: nothing "
                "was done; wait for their end, and order it again"
            )
        await asyncio.sleep(_POLL_INTERVAL_S)
    return found


async def _give_order(
    log: JetStreamLog, order: ForgetOrdered, agent: str, session: str, deadline: Deadline
) -> Forgotten:
    # Every step may be repeated. So whatever fails, the advice is to give the order again.
    deadline.note_sending("the order to forget", "order it again, once the broker answers")
    async with OrderClient.open(log) as orders:
        given = [Order(event=order, agent=agent, session=session)]
        seq = (await orders.client.order(given, deadline.left_for_step)).seq
        deadline.note_stored(
            seq, "it is not carried out to its end: order it again, once `neuraxis doctor` finds all well"
        )
        answer = await _memory_answer(orders, seq, agent, deadline)
    async for batch in log.history([topic_filter(topic_of(ForgetOrdered))], seq - 1, seq):
        stored = batch[0]
    assert isinstance(answer.message.event, MemoryForgotten)
    count, forgotten_seq = answer.message.event.count, answer.stored.seq
    done = Forgotten(agent=agent, session=session, ordered_seq=seq, forgotten_seq=forgotten_seq, memories=count)
    replaced, dropped = await _renew_snapshots(log, [stored, *await _turns_forgotten_with(log, answer)])
    return msgspec.structs.replace(done, snapshots_replaced=replaced, snapshots_dropped=dropped)


async def _turns_forgotten_with(log: JetStreamLog, answer: Recorded) -> list[Stored]:
    """Return the events that memory emitted after its answer: they name the sessions in which people told the fact."""
    rest = answer.envelope.count - 1 - answer.envelope.index
    filters = [topic_filter(topic_of(TurnsForgotten))]
    first = answer.stored.seq
    return [stored async for batch in log.history(filters, first, first + rest) for stored in batch]


async def _memory_answer(orders: OrderClient, order: int, agent: str, deadline: Deadline) -> Recorded:
    try:
        return await orders.answer_of(
            "memory",
            [topic_filter(topic_of(MemoryForgotten))],
            order,
            lambda recorded: recorded.envelope.cause_seq == order,
            agent=agent,
            what=f"the order (sequence {order})",
            within=deadline.left_for_step,
        )
    except UnreadableEnd as wrong:
        raise NotForgotten(f"{wrong}: order it again with the release that wrote that") from None
    except NobodyServes as wrong:
        raise NotForgotten(
            f"the order (sequence {order}) is in the log, and {wrong}: the words are not forgotten before you order it "
            "again then"
        ) from None
    except NoEnd:
        raise NotForgotten(
            f"memory has not answered the order (sequence {order}) after {deadline.waited:.1f} s: it will when its "
            "worker runs; the words are not forgotten before you order it again then"
        ) from None


async def _renew_snapshots(log: JetStreamLog, orders: Sequence[Stored]) -> tuple[int, int]:
    """Wait until no snapshot can hold the words; return how many workers replaced, and how many were deleted here."""
    snapshots = KeyValueSnapshots(log.connection)
    keys = {
        snapshot_key(actor, partition)
        for order in orders
        for actor in ACTORS.values()
        for partition in partitions_of(actor, order.subject, log.partitions)
    }
    last = max(order.seq for order in orders)
    give_up = time.monotonic() + _SNAPSHOT_WAIT_S
    stale = [key for key in keys if await snapshots.upto(key) is not None]
    all_found = len(stale)
    while stale := [key for key in stale if (found := await snapshots.upto(key)) is not None and found < last]:
        if time.monotonic() > give_up:
            break
        await asyncio.sleep(_POLL_INTERVAL_S)
    for key in stale:
        # No worker leads this partition at present. The next one folds its state from the log.
        await snapshots.drop(key)
    return all_found - len(stale), len(stale)


async def _prove(log: JetStreamLog, seq: int) -> None:
    """Check that a sealed event cannot be read any more, with keys read from the broker, not from a cache."""
    if not seq or log.sealing is None:
        return
    uncached = Sealing(Keyring(log.sealing.keyring.store))
    async for batch in log.as_stored().history([EVERYTHING], seq - 1, seq):
        if (await uncached.open(batch))[0].seal is not Seal.CLOSED:
            raise NotForgotten(f"the event at sequence {seq} still opens: its key was not destroyed; order it again")


async def _messages(log: JetStreamLog, agent: str, session: str) -> AsyncIterator[Recorded | Unreadable]:
    """Yield a session's messages, and those that this release cannot read: a later one may have ended its exchanges."""
    pairs = log.partitions.token_pairs(agent, session)
    filters = [f"log.{agent_token}.{session_token}.>" for agent_token, session_token in pairs]
    async for batch in log.history(filters, 0, (await log.info()).last_seq):
        for message in map(decode, batch):
            if address_of(message) == (agent, session):
                yield message


def _kind_of(message: Recorded | Unreadable, key_id: str) -> str:
    """Return whether a message's words are ``sealed``, ``gone`` or ``readable``; empty if it holds none.

    It is ``_UNKNOWN`` if that cannot be told.
    """
    stored = message.stored
    sealed_with = stored.headers.get(SEALED_HEADER)
    if sealed_with is not None:
        return "sealed" if sealed_with == key_id else "gone"
    if isinstance(message, Unreadable):
        return _UNKNOWN
    return "readable" if _holds_readable_words(stored) else ""


def _holds_readable_words(stored: Stored) -> bool:
    """Whether a message that can be read, and is not sealed, holds words; those of an older version are found, too.

    A text in a field that this release does not know may be somebody's words.
    """
    topic, version = stored.headers["ce-type"], decode_headers(stored.headers).version
    data, unknown = upcast_body(topic, stored.data, version), list[str]()
    change_unknown(msgspec.json.decode(data), decode_event(topic, stored.data, version), unknown.append)
    part = location_to_seal(stored.headers)
    return bool(unknown) or (part is not None and holds_words(Record(stored.subject, stored.headers, data), part))
