"""Orders to a session's circuit breaker, to recover or to be reset: given through the log, and answered there."""

from functools import partial

import msgspec

from actors.gateway import Order, Receipt, is_answer_to
from actors.gateway.operator_orders import check_orders
from deploy.operating.agent_events import latest_events_of_agent
from deploy.operating.deadline import Deadline
from deploy.operating.order_client import OrderClient
from events.decoding import Recorded
from events.jetstream import JetStreamLog
from events.replay.presence_checks import NothingFound
from events.replay.sources import Source, StreamSource
from schemas.vocabulary.breaker import BreakerRecoveryStarted, BreakerReset, Standing
from schemas.vocabulary.operator import BreakerRecoveryOrdered, BreakerResetOrdered

Answer = BreakerRecoveryStarted | BreakerReset


class OrderDone(msgspec.Struct, frozen=True, kw_only=True):
    """An order that was carried out: the breaker's state before and after, and the sequences of order and answer."""

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
    """The breaker has read an order, but not carried it out; the message says why."""

    code = "not_carried_out"


async def give_breaker_order(
    log: JetStreamLog,
    agent: str,
    session: str,
    event: BreakerRecoveryOrdered | BreakerResetOrdered,
    answer: type[Answer],
    *,
    deadline: Deadline,
    violated_at: int | None = None,
) -> OrderDone:
    """Append an order and wait for the breaker's answer to it, in the time that is left.

    Args:
        log: Where the breaker's worker reads.
        agent: The agent that the session belongs to.
        session: The session.
        event: The order.
        answer: The event that says it was carried out.
        deadline: The command's deadline, which is told how far the order has come: its error says so.
        violated_at: For an order to recover: the end of the log when the session was found in state VIOLATED.

    Raises:
        NotCarriedOut: the session left VIOLATED before the order came, or the breaker failed on it.
        LogError, InvalidInput: see ``Client.order`` and ``Client.first``.
    """
    async with OrderClient.open(log) as orders:
        how_to_look = f"`neuraxis breaker show {session} --agent {agent}` tells, once the broker answers"
        deadline.note_sending(f"the order about session {session!r}", how_to_look)
        order = await orders.client.order([Order(event=event, agent=agent, session=session)], deadline.left_for_step)
        deadline.note_stored(
            order.seq, "no breaker has carried it out: it will when its worker runs; `neuraxis doctor` tells"
        )
        agent_token, session_token = log.partitions.agent_token(agent), log.partitions.session_token(session)
        found = await orders.answer_of(
            "breaker",
            [f"log.{agent_token}.{session_token}.breaker.>"],
            order.seq if violated_at is None else violated_at,
            partial(is_answer_to, order.id) if violated_at is None else _RecoveryWatch(order, agent, session).is_answer,
            agent=agent,
            session=session,
            what=f"the order (sequence {order.seq})",
            within=deadline.left + 1,  # later than the command's deadline, whose error says how far the order has come
        )
    if not isinstance(found.message.event, answer):
        raise NotCarriedOut(f"the breaker could not carry out the order: see sequence {found.stored.seq} of the log")
    standing: Standing = found.message.event.standing
    return OrderDone(
        agent=agent,
        session=session,
        by=event.by,
        why=event.why,
        state_before=standing.state_before,
        trust_before=standing.trust_before,
        state=standing.state,
        trust=standing.trust,
        ordered_seq=order.seq,
        answered_seq=found.stored.seq,
    )


async def reset_breaker(
    log: JetStreamLog, agent: str, session: str, event: BreakerResetOrdered, *, deadline: Deadline
) -> OrderDone:
    """Reset a session's breaker, whatever state it is in.

    Where the log's beginning is not seen, the breaker may have judged the session there, and is asked in any case.

    Raises:
        NothingFound: the breaker has judged no input of that session: the name may be misspelt.
        NotCarriedOut, LogError, InvalidInput: see :func:`give_breaker_order`.
    """
    check_orders([Order(event=event, agent=agent, session=session)], log.partitions)
    source = StreamSource(log)
    if not log.unseen and not await latest_breaker_events(source, agent, session, (await source.info()).last_seq, 1):
        raise no_judged_input(source, agent, session)
    return await give_breaker_order(log, agent, session, event, BreakerReset, deadline=deadline)


def no_judged_input(source: Source, agent: str, session: str) -> NothingFound:
    """Return the error that says that no input of a session was judged."""
    return NothingFound(
        f"the breaker has judged no input of session {session!r} of agent {agent!r} in the {source.name}: "
        "check the name, or name another agent"
    )


async def latest_breaker_events(source: Source, agent: str, session: str, upto: int, most: int) -> list[Recorded]:
    """Return the breaker's latest events of a session, ``most`` at most, oldest first."""
    pairs = source.partitions.token_pairs(agent, session)
    return await latest_events_of_agent(
        source,
        agent,
        [f"log.{agent_token}.{session_token}.breaker.>" for agent_token, session_token in pairs],
        upto,
        most,
        lambda each: hasattr(each.message.event, "standing") and each.message.session == session,
    )


class _RecoveryWatch:
    """Looks for the answer to an order to recover, and notices if the session left VIOLATED before the order came."""

    def __init__(self, order: Receipt, agent: str, session: str) -> None:
        self._order = order
        self._address = agent, session
        self._leaving: Recorded | None = None

    def is_answer(self, recorded: Recorded) -> bool:
        """Whether an event is the answer; raises NotCarriedOut if the session left VIOLATED before the order came."""
        message, envelope = recorded.message, recorded.envelope
        if is_answer_to(self._order.id, recorded):
            return True
        standing: Standing | None = getattr(message.event, "standing", None)
        of_session = (message.agent, message.session) == self._address
        if standing is None or not of_session or envelope.cause_seq > self._order.seq:
            return False
        if standing.state == "VIOLATED":
            self._leaving = None
        elif standing.state_before == "VIOLATED":
            self._leaving = recorded
        # Wait for the last event of the decision: in one decision, a recovery may begin and a violation end it.
        if self._leaving is not None and envelope.index == envelope.count - 1:
            raise NotCarriedOut(
                f"session {message.session!r} left VIOLATED before the order came: {_move_text(self._leaving)} at "
                f"sequence {self._leaving.stored.seq}; the order (sequence {self._order.seq}) changed nothing"
            )
        return False


def _move_text(moved: Recorded) -> str:
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
