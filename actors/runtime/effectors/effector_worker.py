"""The worker of an effector: performs requests, and stores each answer exactly once.

Workers compete for requests on a durable consumer, and on one more for each ordered queue. A worker that gets a request
first reads in the log whether it has an answer. If not, the worker performs it and appends the answer behind a fence,
which covers all events that the effector has written for the request's agent. If the fence does not hold, another
worker has appended. The log is then read again from where the last read ended (``answered_ids``). So one answer is
stored, however often a request is delivered, to however many workers, and even after the broker has forgotten message
ids.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from actors.runtime.clock import Clock, SystemClock
from actors.runtime.effectors.answered_ids import Answer, Answers
from actors.runtime.effectors.left_to_others import NEWER_S, LeftToOthers
from actors.runtime.effectors.requests import (
    EFFECT_ABANDONED,
    EFFECT_RAISED,
    EFFECT_TIMED_OUT,
    RESULT_INVALID,
    TEXT_FORGOTTEN,
    EffectorCounters,
    InFlight,
    Request,
    check_effector,
    failure_of,
    may_answer,
)
from actors.runtime.envelopes import to_record, trace_of
from actors.runtime.known_losses import KnownLosses
from actors.runtime.partition.gap_check import GapCheck
from events.decoding import Recorded, Unreadable, decode
from events.errors import Conflict, LogError, Refused, Unavailable, UnknownOutcome
from events.jetstream import JetStreamLog
from events.jetstream.reading.durable_pull import ACK_WAIT, DurablePull
from events.jetstream.reading.pulled_message import PulledMessage
from events.jetstream.reading.read_requests import gap_finder
from events.log import Seal
from events.loggers import get_logger
from events.losses import LOSS_FILTER, Losses
from events.make_decision import APPEND_REFUSED, NewEvent, address_events, cause_of
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
"""Seconds that requests in progress get to end when the worker is told to stop."""

_RETRY_FIRST, _RETRY_MOST = 0.05, 1.0
"""First and longest pause before the log is asked again, in seconds."""

_REFUSED_WAIT = 30.0
"""Seconds until a request is delivered again if the broker refuses to store even its failure."""

_logger = get_logger("neuraxis.effector")


class EffectorWorker:
    """Runs an effector against a log until told to stop.

    Args:
        name: Unique among living workers.
        build: Version of the code, for the ``ce-build`` header.
        ack_wait: Seconds without an in-progress signal after which a worker's requests are delivered to others.
        stop_deadline: See :data:`STOP_DEADLINE`.
        newer_s: See :data:`NEWER_S`.

    Attributes:
        effector: The effector that it runs.
        counters: What happened.
        ready: Set once requests can reach it for the first time.

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
        check_effector(effector)
        self.effector = effector
        self.ready = asyncio.Event()
        self.counters = EffectorCounters()
        self._log = log
        self._source = f"neuraxis/{name}/{effector.name}"
        self._clock = clock or SystemClock()
        self._build = build
        self._ack_wait = ack_wait
        self._stop_deadline = stop_deadline
        self._left_to_others = LeftToOthers(self._clock, newer_s)
        self._prefix = entry_of(effector.failed).prefix
        main = OrderedQueue("", effector.consumes, _takes_any, _ignoring_turn(effector.handle))
        # Queue -> whether its requests are performed one after another.
        self._queues = {main: effector.in_order} | dict.fromkeys(effector.ordered_queues, True)
        self._in_flight: dict[tuple[str, int, int], InFlight] = {}
        self._idle: set[asyncio.Task[Any]] = set()  # tasks that wait for a request
        self._answers = Answers(log, log.as_stored())
        self._losses = Losses()
        self._known_losses: KnownLosses | None = None
        self._pulls: Mapping[OrderedQueue, DurablePull] = {}
        self._start_seq = 0  # the log's last sequence when the worker started

    def is_working(self) -> bool:
        """Whether requests can reach it now, as far as is known: without its consumers at the broker, none does."""
        return self.ready.is_set() and all(pull.began.is_set() for pull in self._pulls.values())

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set; then take no more requests, and give back what is not done by the stop deadline.

        Raises:
            LogCut: the log no longer holds what was read from it; a new worker may begin on what is left.
        """
        pulls = self._pulls = {queue: self._pull(queue, in_order) for queue, in_order in self._queues.items()}
        last = self._start_seq = (await self._retry_until_done(self._log.info)).last_seq
        losses = self._losses = await self._retry_until_done(lambda: Losses.of(self._log, last))
        source, now_ns = self._source, self._clock.now_ns
        find_gaps = gap_finder(self._log.connection, self._log.stream)
        gap_check = GapCheck(self._log, losses, source=source, build=self._build, now_ns=now_ns, find_gaps=find_gaps)
        self._known_losses = KnownLosses(self._log, losses, gap_check, partial(self._deliver_again, pulls.values()))
        for pull in pulls.values():
            pull.note_loss(losses.last_seq, losses.gap_ends)
        unregister = self._log.connection.on_reconnect(self._answers.distrust)
        try:
            await self._work(pulls, self._known_losses, last, stop)
        finally:
            unregister()

    def _pull(self, queue: OrderedQueue, in_order: bool) -> DurablePull:
        return DurablePull(
            self._log.connection,
            self._log.stream,
            durable_name(self.effector.name, queue.name),
            [topic_filter(topic_of(event)) for event in queue.consumes],
            ack_wait=self._ack_wait,
            in_order=in_order,
            imported_through=self._log.imported_through,
        )

    async def _work(
        self, pulls: Mapping[OrderedQueue, DurablePull], known: KnownLosses, last: int, stop: asyncio.Event
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            readers = [tasks.create_task(pull.run()) for pull in pulls.values()]
            readers.append(tasks.create_task(self._follow_losses(known, last)))
            readers.append(tasks.create_task(self._await_ready(pulls.values())))
            slots = [
                tasks.create_task(self._serve(queue, pull, stop))
                for queue, pull in pulls.items()
                for _ in range(1 if self._queues[queue] else self.effector.concurrency)
            ]
            await stop.wait()
            for task in (*readers, *self._idle):
                task.cancel()
            await asyncio.wait(slots, timeout=self._stop_deadline)
            for slot in slots:
                slot.cancel()

    async def _await_ready(self, pulls: Iterable[DurablePull]) -> None:
        for pull in pulls:
            await pull.began.wait()
        self.ready.set()

    async def _follow_losses(self, known: KnownLosses, last: int) -> None:
        await known.follow(await self._retry_until_done(lambda: self._log.tail([LOSS_FILTER], last)))

    def _deliver_again(self, pulls: Iterable[DurablePull]) -> None:
        """Have all requests delivered again: answers may be lost. A request with an answer is not performed again."""
        _logger.error("requests_delivered_again", effector=self.effector.name, reason="log_loss")
        self._answers.distrust()
        for pull in pulls:
            pull.note_loss(self._losses.last_seq, self._losses.gap_ends)

    async def _serve(self, queue: OrderedQueue, pull: DurablePull, stop: asyncio.Event) -> None:
        me = asyncio.current_task()
        assert me is not None
        while not stop.is_set():
            self._idle.add(me)
            delivery = await pull.next()
            self._idle.discard(me)
            await self._handle(queue, delivery)

    async def _handle(self, queue: OrderedQueue, delivery: PulledMessage) -> None:
        self.counters.delivered += 1
        # The key includes the time stored: a log that was cut assigns the same sequence to another request.
        key = (queue.name, delivery.stored.seq, delivery.stored.time_ns)
        earlier = self._in_flight.get(key)
        if earlier is not None:
            # The in-progress signals reached the broker too late, so it delivered again. The first call goes on.
            earlier.delivery.renew(delivery)
            return
        in_flight = self._in_flight[key] = InFlight(delivery, queue)
        signalling = asyncio.create_task(self._signal_progress(delivery))
        try:
            await self._answer(in_flight)
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
            signalling.cancel()
            del self._in_flight[key]

    async def _signal_progress(self, delivery: PulledMessage) -> None:
        while True:
            await asyncio.sleep(self._ack_wait / 3)
            await delivery.in_progress()

    async def _answer(self, in_flight: InFlight) -> None:
        """Perform a request and store its answer, unless it has one.

        Raises:
            TryLater: it is to be performed again.
            Refused: the broker does not even accept a failure as the answer.
        """
        delivery = in_flight.delivery
        decoded = decode(await self._retry_until_done(lambda: self._log.opened(delivery.stored)))
        if isinstance(decoded, Recorded) and not in_flight.queue.takes(decoded.message):
            return
        cause = cause_of(decoded)
        answer_id = event_id(cause.id, self.effector.name, 0)
        request = Request(decoded, cause, f"{STORED_ROOT}.{cause.agent_token}.*.{self._prefix}.>", answer_id)
        started = self._clock.elapsed_ns()
        decided = await self._decide(request, in_flight)
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

    async def _retry_until_done(self, reading: Callable[[], Awaitable[T]]) -> T:
        """Call a read of the log until the log can be reached."""
        wait = _RETRY_FIRST
        while True:
            try:
                return await reading()
            except LogError as error:
                wait = await self._wait(error, wait)

    async def _is_answered(self, request: Request) -> bool:
        assert self._known_losses is not None, "requests come while it runs"
        await self._retry_until_done(self._known_losses.catch_up)
        since = self._answerable_since(request)
        return await self._retry_until_done(lambda: self._answers.holds(request.filter, request.answer_id, since))

    def _answerable_since(self, request: Request) -> int:
        """Return the sequence after which an answer can be: normally the request's own.

        A request that the log has lost is written again: its answer may be in the log before it.
        """
        first_lost = self._losses.first_lost
        seq = request.decoded.stored.seq
        return seq if first_lost is None else min(seq, first_lost)

    async def _store(self, request: Request, decided: Sequence[NewEvent], took_us: int) -> None:
        """Append an answer, unless there is one; raises Refused when the broker does not accept the events."""
        now = self._clock.now_ns()
        trace = trace_of(request.decoded)
        records = [to_record(event, self._source, self._build, now, took_us, trace=trace) for event in decided]
        answer = Answer(request.answer_id, self._answerable_since(request), records)
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
        self._count_failure(request, decided)

    def _count_failure(self, request: Request, decided: Sequence[NewEvent]) -> None:
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

    async def _decide(self, request: Request, in_flight: InFlight) -> tuple[NewEvent, ...] | None:
        """Return the events that answer a request; None where the log already holds an answer."""
        decoded, delivery = request.decoded, in_flight.delivery
        if isinstance(decoded, Unreadable):
            stored = decoded.stored
            if decoded.code == UnknownVersion.code and (
                pause_s := self._left_to_others.pause_s(in_flight.queue.name, stored.seq, stored.time_ns)
            ):
                raise TryLater(pause_s)
            return self._failure(request, decoded.code)
        if decoded.stored.seal is Seal.CLOSED:
            return self._failure(request, TEXT_FORGOTTEN)
        if self.effector.most_attempts is not None and delivery.attempt > self.effector.most_attempts:
            return self._failure(request, EFFECT_ABANDONED)
        if await self._is_answered(request):
            return None
        seq = decoded.stored.seq
        # A request that may have been performed before: its answer may be among lost messages.
        if self._known_losses is not None and (delivery.attempt > 1 or seq <= self._start_seq):
            await self._retry_until_done(partial(self._known_losses.ensure_gaps_recorded, seq, self._answers.read_at))
        self.counters.performed += 1
        limit = asyncio.timeout(self.effector.timeout_s)
        try:
            async with limit:
                turn = QueueTurn(delivery.attempt, delivery.behind)
                emissions = await in_flight.queue.handle(decoded.message, turn)
        except TryLater:
            raise
        except asyncio.CancelledError as cancelled:
            me = asyncio.current_task()
            if me is None or me.cancelling():
                raise
            # This worker was not cancelled, but something that the effector called was.
            return self._failure(request, EFFECT_RAISED, cancelled)
        except Exception as raised:
            return self._failure(request, EFFECT_TIMED_OUT if limit.expired() else EFFECT_RAISED, raised)
        try:
            decided = address_events(self.effector.name, request.cause, tuple(emissions), self._log.partitions)
        except Exception as raised:
            return self._failure(request, RESULT_INVALID, raised)
        if not decided or not all(may_answer(self.effector, request, event) for event in decided):
            return self._failure(request, RESULT_INVALID)
        return decided

    def _failure(self, request: Request, reason: str, error: BaseException | None = None) -> tuple[NewEvent, ...]:
        return failure_of(self.effector, request, reason, error, self._log.partitions)


def _takes_any(_: Message) -> bool:
    return True


def _ignoring_turn(
    handle: Callable[[Message], Awaitable[Sequence[Event | Emission]]],
) -> Callable[[Message, QueueTurn], Awaitable[Sequence[Event | Emission]]]:
    return lambda message, _: handle(message)
