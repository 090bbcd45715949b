"""Orders to a session's circuit breaker: given through the log, and answered there."""

import time

import msgspec

from actors.gateway import Client
from actors.gateway.inputs import Addressed
from deploy.operating.deadline import Deadline
from deploy.operating.operator_edge import Order, records_of
from deploy.operating.recorded import latest_about
from events.codec import Recorded, decode
from events.jetstream import JetStreamLog
from events.log import Tail
from events.replay.looking import NothingThere
from events.replay.sources import Source, StreamSource
from schemas.vocabulary.breaker import BreakerRecoveryStarted, BreakerReset, Standing
from schemas.vocabulary.operator import BreakerRecoveryOrdered, BreakerResetOrdered

Answer = BreakerRecoveryStarted | BreakerReset


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """An order that was carried out: from where to where, and the sequences of order and answer."""

    agent: str
    session: str
    by: str
    why: str
    state_before: str
    trust_before: float
    state: str
    trust: float
    ordered_seq: int
    answered_seq: int


class NotCarriedOut(Exception):
    """An order that the breaker has dealt with, but not carried out; the message says why."""

    code = "not_carried_out"


async def give(
    log: JetStreamLog,
    agent: str,
    session: str,
    event: BreakerRecoveryOrdered | BreakerResetOrdered,
    answer: type[Answer],
    *,
    deadline: Deadline,
    seen: int | None = None,
) -> Done:
    """Append an order and wait for the breaker's answer to it, in the time that is left.

    Args:
        log: Where the breaker's worker reads.
        agent: Whose session it is.
        session: The session.
        event: The order.
        answer: The event that says it was carried out.
        deadline: The command's; told how far the order has come. Who keeps it tells what is known at its end.
        seen: For an order to recover: the sequence up to which the log was read to see the session in VIOLATED.

    Raises:
        NotCarriedOut: the session left VIOLATED before the order came, or the breaker failed on it.
        LogError, InvalidOrder: see ``Edge.submit`` and ``deploy.operating.operator_edge.records_of``.
    """
    async with Client.open(log) as edge:
        (record,) = records_of([Order(event=event, agent=agent, session=session)], log.partitions, time.time_ns())
        find = f"`neuraxis breaker show {session} --agent {agent}` tells, once the broker answers"
        deadline.sending(f"the order about session {session!r}", find)
        # An edge sends it again while its fate is unknown.
        ordered = await edge.submit(Addressed("", record), deadline.inner_s)
    deadline.stored(ordered, "no breaker has carried it out: it will when its worker runs; `neuraxis doctor` tells")
    tokens = log.partitions.agent_token(agent), log.partitions.session_token(session)
    tail = await log.tail([f"log.{tokens[0]}.{tokens[1]}.breaker.>"], ordered if seen is None else seen)
    try:
        order = record.headers["ce-id"]
        if seen is None:
            found = await _answer_to(order, tail)
        else:
            found = await _answer_from_violated(order, ordered, agent, session, tail)
    finally:
        await tail.close()
    if not isinstance(found.message.event, answer):
        raise NotCarriedOut(f"the breaker could not carry out the order: see sequence {found.stored.seq} of the log")
    standing: Standing = found.message.event.standing
    return Done(
        agent=agent,
        session=session,
        by=event.by,
        why=event.why,
        state_before=standing.state_before,
        trust_before=standing.trust_before,
        state=standing.state,
        trust=standing.trust,
        ordered_seq=ordered,
        answered_seq=found.stored.seq,
    )


async def reset(log: JetStreamLog, agent: str, session: str, event: BreakerResetOrdered, *, deadline: Deadline) -> Done:
    """Reset a session's breaker, whatever state it is in.

    Raises:
        NothingThere: the breaker has judged no input of that session: of a name that is misspelt, nobody is to be told
            that it is reset.
        NotCarriedOut, LogError, InvalidOrder: see :func:`give`.
    """
    records_of([Order(event=event, agent=agent, session=session)], log.partitions, time.time_ns())
    source = StreamSource(log)
    if not await latest_of(source, agent, session, (await source.info()).last_seq, 1):
        raise unknown(source, agent, session)
    return await give(log, agent, session, event, BreakerReset, deadline=deadline)


def unknown(source: Source, agent: str, session: str) -> NothingThere:
    """Return the error that says that no input of a session was judged."""
    return NothingThere(
        f"the breaker has judged no input of session {session!r} of agent {agent!r} in the {source.name}: "
        "check the name, or name another agent"
    )


async def latest_of(source: Source, agent: str, session: str, upto: int, most: int) -> list[Recorded]:
    """Return the breaker's latest events of a session, ``most`` at most, oldest first."""
    tokens = source.partitions.agent_token(agent), source.partitions.session_token(session)
    return await latest_about(
        source,
        agent,
        [f"log.{tokens[0]}.{tokens[1]}.breaker.>"],
        upto,
        most,
        lambda each: hasattr(each.message.event, "standing") and each.message.session == session,
    )


async def _answer_to(order: str, tail: Tail) -> Recorded:
    while True:
        for recorded in await _next(tail):
            if recorded.envelope.cause == order:
                return recorded


async def _answer_from_violated(order: str, ordered: int, agent: str, session: str, tail: Tail) -> Recorded:
    """Return the breaker's answer; raises NotCarriedOut when the session left VIOLATED before the order came."""
    left: Recorded | None = None
    while True:
        for recorded in await _next(tail):
            message, envelope = recorded.message, recorded.envelope
            if envelope.cause == order:
                return recorded
            standing: Standing | None = getattr(message.event, "standing", None)
            of_session = (message.agent, message.session) == (agent, session)
            if standing is None or not of_session or envelope.cause_seq > ordered:
                continue
            if standing.state == "VIOLATED":
                left = None
            elif standing.state_before == "VIOLATED":
                left = recorded
            # The rest of the same decision may lead back: a violation begins an attempt and ends it.
            if left is not None and envelope.index == envelope.count - 1:
                raise NotCarriedOut(
                    f"session {session!r} left VIOLATED before the order came: {_told(left)} at sequence "
                    f"{left.stored.seq}; the order (sequence {ordered}) changed nothing"
                )


async def _next(tail: Tail) -> list[Recorded]:
    return [each for each in map(decode, await tail.next()) if isinstance(each, Recorded)]


def _told(moved: Recorded) -> str:
    match moved.message.event:
        case BreakerRecoveryStarted(by="timer"):
            return "its recovery began by the timer"
        case BreakerRecoveryStarted(by="input"):
            return "its recovery began with its next input"
        case BreakerRecoveryStarted():
            return "its recovery began by another order"
        case BreakerReset(by=by):
            return f"{by} reset it"
    return "it was ended for good"
