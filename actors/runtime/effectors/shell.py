"""The shell of an effector: performs requests, and stores each answer exactly once.

Workers compete for requests on a durable consumer, and on one more for each queue. A worker that gets a request first
reads in the log whether it has an answer. If not, the worker performs it and appends the answer behind a fence, which
covers all events that the effector has written for the request's agent. If the fence does not hold, another worker has
appended. The log is then read again from where the last read ended (``answers``). So one answer is stored, however
often a request is delivered, to however many workers, and even after the broker has forgotten message ids.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from actors.runtime.clock import Clock, SystemClock
from actors.runtime.effectors.answered_ids import Answer, Answers
from actors.runtime.effectors.handover import NEWER_S, Handover
from actors.runtime.effectors.requests import (
    EFFECT_ABANDONED,
    EFFECT_RAISED,
    EFFECT_TIMED_OUT,
    RESULT_INVALID,
    TEXT_FORGOTTEN,
    EffectorCounters,
    InFlight,
    Request,
    check,
    failure_of,
    may_answer,
)
from actors.runtime.envelopes import to_record, trace_of
from actors.runtime.known_losses import KnownLosses
from actors.runtime.partition.gap_check import GapCheck
from events.codec import Recorded, Unreadable, decode
from events.decision import APPEND_REFUSED, NewEvent, address_events, cause_of
from events.errors import Conflict, LogError, Refused, Unavailable, UnknownOutcome
from events.jetstream import JetStreamLog
from events.jetstream.delivery import Delivery
from events.jetstream.durable_pull import ACK_WAIT, DurablePull
from events.log import Seal
from events.loggers import get_logger
from events.losses import LOSS_FILTER, Losses
from schemas.actor import Emission, Message
from schemas.catalogue import entry_of
from schemas.effectors.contract import Effector, OrderedQueue, QueueTurn, TryLater
from schemas.errors import UnknownVersion
from schemas.event import Event, topic_of
from schemas.identity import event_id
from schemas.permissions import durable_name
from schemas.subjects import STORED_ROOT, topic_filter

T = TypeVar("T")

STOP_DEADLINE = 10.0
"""Seconds that running performances get to end when the worker is told to stop."""

_RETRY_FIRST, _RETRY_MOST = 0.05, 1.0
_REFUSED_WAIT = 30.0
_logger = get_logger("neuraxis.effector")


class EffectorWorker:
    """Runs an effector against a log until told to stop.

    Args:
        name: Unique among living workers.
        build: Version of the code, for the ``ce-build`` header.
        ack_wait: Seconds without a sign of life after which a worker's requests are delivered to others.
        stop_deadline: See :data:`STOP_DEADLINE`.
        newer_s: See :data:`NEWER_S`.

    Attributes:
        effector: The effector that it runs.
        counters: What happened.
        ready: Set once requests can reach it.

    Raises:
        ValueError: the effector contradicts the catalogue.
    """

    def __init__(
        self,
        log: JetStreamLog,
        effector: Effector,
        *,
        name: str,
        clock: Clock | None = None,
        build: str = "",
        ack_wait: float = ACK_WAIT,
        stop_deadline: float = STOP_DEADLINE,
        newer_s: float = NEWER_S,
    ) -> None:
        check(effector)
        self.effector = effector
        self.ready = asyncio.Event()
        self.counters = EffectorCounters()
        self._log = log
        self._source = f"neuraxis/{name}/{effector.name}"
        self._clock = clock or SystemClock()
        self._build = build
        self._ack_wait = ack_wait
        self._stop_deadline = stop_deadline
        self._newer = Handover(self._clock, newer_s)
        self._prefix = entry_of(effector.failed).prefix
        own = OrderedQueue("", effector.consumes, _any, _whatever_turn(effector.handle))
        self._lines = {own: effector.in_order} | dict.fromkeys(effector.ordered_queues, True)
        self._under_way: dict[tuple[str, int, int], InFlight] = {}
        self._idle: set[asyncio.Task[Any]] = set()
        self._answers = Answers(log, log.as_stored())
        self._losses = Losses()
        self._known: KnownLosses | None = None
        self._begun_at = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set; then take no more requests, and give back those not done by the stop deadline.

        Raises:
            LogCut: the log no longer holds what was read from it; a new worker may begin on what is left.
        """
        pulls = {line: self._pull(line, in_order) for line, in_order in self._lines.items()}
        last = self._begun_at = (await self._retry_until_done(self._log.info)).last_seq
        losses = self._losses = await self._retry_until_done(lambda: Losses.of(self._log, last))
        source, now_ns = self._source, self._clock.now_ns
        wholeness = GapCheck(self._log, losses, source=source, build=self._build, now_ns=now_ns)
        self._known = KnownLosses(self._log, losses, wholeness, partial(self._begin_anew, pulls.values()))
        for pull in pulls.values():
            pull.lost_at(losses.last_seq, losses.gap_ends)
        off = self._log.connection.on_reconnect(self._answers.distrust)
        try:
            await self._work(pulls, self._known, last, stop)
        finally:
            off()

    def _pull(self, line: OrderedQueue, in_order: bool) -> DurablePull:
        return DurablePull(
            self._log.connection,
            self._log.stream,
            durable_name(self.effector.name, line.name),
            [topic_filter(topic_of(event)) for event in line.consumes],
            ack_wait=self._ack_wait,
            in_order=in_order,
            imported_through=self._log.imported_through,
        )

    async def _work(
        self, pulls: Mapping[OrderedQueue, DurablePull], known: KnownLosses, last: int, stop: asyncio.Event
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            around = [tasks.create_task(pull.run()) for pull in pulls.values()]
            around.append(tasks.create_task(self._follow_losses(known, last)))
            around.append(tasks.create_task(self._tell_ready(pulls.values())))
            slots = [
                tasks.create_task(self._serve(line, pull, stop))
                for line, pull in pulls.items()
                for _ in range(1 if self._lines[line] else self.effector.concurrency)
            ]
            await stop.wait()
            for task in (*around, *self._idle):
                task.cancel()
            await asyncio.wait(slots, timeout=self._stop_deadline)
            for slot in slots:
                slot.cancel()

    async def _tell_ready(self, pulls: Iterable[DurablePull]) -> None:
        for pull in pulls:
            await pull.began.wait()
        self.ready.set()

    async def _follow_losses(self, known: KnownLosses, last: int) -> None:
        await known.follow(await self._retry_until_done(lambda: self._log.tail([LOSS_FILTER], last)))

    def _begin_anew(self, pulls: Iterable[DurablePull]) -> None:
        """Have all requests delivered again: answers may be lost. A request with an answer is not performed again."""
        _logger.error("requests_delivered_again", effector=self.effector.name, reason="log_loss")
        self._answers.distrust()
        for pull in pulls:
            pull.lost_at(self._losses.last_seq, self._losses.gap_ends)

    async def _serve(self, line: OrderedQueue, pull: DurablePull, stop: asyncio.Event) -> None:
        me = asyncio.current_task()
        assert me is not None
        while not stop.is_set():
            self._idle.add(me)
            delivery = await pull.next()
            self._idle.discard(me)
            await self._handle(line, delivery)

    async def _handle(self, line: OrderedQueue, delivery: Delivery) -> None:
        self.counters.delivered += 1
        # The key includes the time stored: a log that was cut assigns the same sequence to another request.
        key = (line.name, delivery.stored.seq, delivery.stored.time_ns)
        held = self._under_way.get(key)
        if held is not None:
            # The in-progress signals reached the broker too late, so it delivered again. The first performance goes on.
            held.delivery.renew(delivery)
            return
        under_way = self._under_way[key] = InFlight(delivery, line)
        keeping = asyncio.create_task(self._keep(delivery))
        try:
            await self._answer(under_way)
        except Refused as refused:
            _logger.error("failure_refused", effector=self.effector.name, seq=delivery.stored.seq, detail=str(refused))
            await delivery.nak(_REFUSED_WAIT)
        except TryLater as later:
            await delivery.nak(later.after_s)
        except BaseException:
            await delivery.nak()
            raise
        else:
            await delivery.acknowledge()
        finally:
            keeping.cancel()
            del self._under_way[key]

    async def _keep(self, delivery: Delivery) -> None:
        while True:
            await asyncio.sleep(self._ack_wait / 3)
            await delivery.in_progress()

    async def _answer(self, under_way: InFlight) -> None:
        """Perform a request and store its answer, unless it has one.

        Raises:
            TryLater: it is to be performed again.
            Refused: the broker does not even accept a failure as the answer.
        """
        delivery = under_way.delivery
        offered = decode(await self._retry_until_done(lambda: self._log.opened(delivery.stored)))
        if isinstance(offered, Recorded) and not under_way.line.takes(offered.message):
            return
        cause = cause_of(offered)
        answer = event_id(cause.id, self.effector.name, 0)
        request = Request(offered, cause, f"{STORED_ROOT}.{cause.agent_token}.*.{self._prefix}.>", answer)
        started = self._clock.elapsed_ns()
        decided = await self._decide(request, under_way)
        if decided is None:
            self.counters.answered += 1
            return
        took_us = (self._clock.elapsed_ns() - started) // 1000
        try:
            await self._store(request, decided, took_us)
        except Refused as refused:
            exchange = request.cause.exchange
            _logger.error("append_refused", effector=self.effector.name, exchange=exchange, detail=str(refused))
            await self._store(request, self._failure(request, APPEND_REFUSED), took_us)

    async def _retry_until_done(self, asking: Callable[[], Awaitable[T]]) -> T:
        """Call a read of the log until the log can be reached."""
        wait = _RETRY_FIRST
        while True:
            try:
                return await asking()
            except LogError as error:
                wait = await self._wait(error, wait)

    async def _is_answered(self, request: Request) -> bool:
        assert self._known is not None, "requests come while it runs"
        await self._retry_until_done(self._known.catch_up)
        since = self._answerable_since(request)
        return await self._retry_until_done(lambda: self._answers.holds(request.filter, request.answer, since))

    def _answerable_since(self, request: Request) -> int:
        """Return the sequence after which an answer can be: a lost request is written again, after its answer."""
        first_lost = self._losses.first_lost
        seq = request.offered.stored.seq
        return seq if first_lost is None else min(seq, first_lost)

    async def _store(self, request: Request, decided: Sequence[NewEvent], took_us: int) -> None:
        """Append an answer, unless there is one; raises Refused when the broker does not accept the events."""
        now = self._clock.now_ns()
        trace = trace_of(request.offered)
        records = [to_record(one, self._source, self._build, now, took_us, trace=trace) for one in decided]
        answer = Answer(request.answer, self._answerable_since(request), records)
        wait = _RETRY_FIRST
        while answer.pending:
            try:
                await self._answers.store(request.filter, answer)
            except Conflict:
                continue
            except (Unavailable, UnknownOutcome) as error:
                wait = await self._wait(error, wait)
        if not answer.stored:
            self.counters.answered += 1
            return
        self.counters.stored += 1
        self._note(request, decided)

    def _note(self, request: Request, decided: Sequence[NewEvent]) -> None:
        failure = decided[0].message.event
        if not isinstance(failure, self.effector.failed):
            return
        self.counters.failed += 1
        _logger.error(
            "effect_failed",
            effector=self.effector.name,
            reason=failure.reason,
            error=failure.error,
            seq=failure.failed_seq,
            exchange=request.cause.exchange,
        )

    async def _wait(self, error: LogError, seconds: float) -> float:
        """Wait before trying again; returns how long to wait the next time."""
        _logger.warning("answer_waits", effector=self.effector.name, error=error.code, detail=str(error))
        await asyncio.sleep(seconds)
        return min(2 * seconds, _RETRY_MOST)

    # --- from a request to the events that answer it

    async def _decide(self, request: Request, under_way: InFlight) -> tuple[NewEvent, ...] | None:
        """Return the events that answer a request; None where the log already holds an answer."""
        offered, delivery = request.offered, under_way.delivery
        if isinstance(offered, Unreadable):
            stored = offered.stored
            if offered.code == UnknownVersion.code and (
                pause_s := self._newer.pause_s(under_way.line.name, stored.seq, stored.time_ns)
            ):
                raise TryLater(pause_s)
            return self._failure(request, offered.code)
        if offered.stored.seal is Seal.CLOSED:
            return self._failure(request, TEXT_FORGOTTEN)
        if self.effector.most_attempts is not None and delivery.attempt > self.effector.most_attempts:
            return self._failure(request, EFFECT_ABANDONED)
        if await self._is_answered(request):
            return None
        seq = offered.stored.seq
        if self._known is not None and (delivery.attempt > 1 or seq <= self._begun_at):
            await self._retry_until_done(partial(self._known.settle, seq, self._answers.read_at))
        self.counters.performed += 1
        limit = asyncio.timeout(self.effector.timeout_s)
        try:
            async with limit:
                emissions = await under_way.line.handle(offered.message, QueueTurn(delivery.attempt, delivery.behind))
        except TryLater:
            raise
        except asyncio.CancelledError as cancelled:
            me = asyncio.current_task()
            if me is None or me.cancelling():
                raise
            # This worker is not cancelled: something within the performance was.
            return self._failure(request, EFFECT_RAISED, cancelled)
        except Exception as raised:
            return self._failure(request, EFFECT_TIMED_OUT if limit.expired() else EFFECT_RAISED, raised)
        try:
            decided = address_events(self.effector.name, request.cause, tuple(emissions), self._log.partitions)
        except Exception as raised:
            return self._failure(request, RESULT_INVALID, raised)
        if not decided or not all(may_answer(self.effector, request, one) for one in decided):
            return self._failure(request, RESULT_INVALID)
        return decided

    def _failure(self, request: Request, reason: str, error: BaseException | None = None) -> tuple[NewEvent, ...]:
        return failure_of(self.effector, request, reason, error, self._log.partitions)


def _any(_: Message) -> bool:
    return True


def _whatever_turn(
    handle: Callable[[Message], Awaitable[Sequence[Event | Emission]]],
) -> Callable[[Message, QueueTurn], Awaitable[Sequence[Event | Emission]]]:
    return lambda message, _: handle(message)
