"""The shell of an effector: performs requests, and stores each answer exactly once.

Workers compete for requests on one durable consumer. Whoever gets one waits for its turn, looks in the log whether it
is answered, performs it if not, and appends the answer behind a fence over all that the effector has written for the
request's agent. Where the fence does not hold, the log is looked into again, from where the last look ended
(``answers``): so however often a request is delivered, to however many workers, and however long after the broker has
forgotten message ids, one answer is stored.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec
import structlog

from actors.runtime.answers import Answer, Answers
from actors.runtime.clock import Clock, SystemClock
from actors.runtime.records import to_record
from actors.runtime.wholeness import Wholeness
from events.codec import Recorded, Unreadable, decode
from events.decision import APPEND_REFUSED, Cause, Decided, address, cause_of
from events.errors import Conflict, LogError, Refused, Unavailable, UnknownOutcome
from events.jetstream import JetStreamLog
from events.jetstream.delivery import Delivery
from events.jetstream.durable import ACK_WAIT, DurablePull
from events.log import Seal, Stored
from events.losses import LOSS_FILTER, Losses
from schemas.actor import Emission, Message, Scope
from schemas.catalogue import CATALOGUE, entry_of
from schemas.effector import Effector
from schemas.event import Event, topic_of
from schemas.identity import event_id
from schemas.permissions import durable_name
from schemas.subjects import STORED_ROOT, split_stored, topic_filter

T = TypeVar("T")

EFFECT_RAISED = "effect_raised"
EFFECT_TIMED_OUT = "effect_timed_out"
EFFECT_ABANDONED = "effect_abandoned"
RESULT_INVALID = "result_invalid"
TEXT_FORGOTTEN = "text_forgotten"
"""The request's words were forgotten meanwhile: nobody is asked about a mark that stands in their place."""

_LATE = 1.0
"""Seconds by which the broker may be late to take a request from a silent worker."""

_SETTLING = 0.2
"""Seconds that requests which are here may take to their turns."""

STOP_DEADLINE = 10.0
"""Seconds that performances under way get to end when the worker is told to stop."""

_STOP_LOOK = 0.1
"""Seconds between two looks for performances that have come to merely wait, in a worker that stops."""

_RETRY_FIRST, _RETRY_MOST = 0.05, 1.0
_REFUSED_WAIT = 30.0
_logger = structlog.get_logger("neuraxis.effector")


class EffectorCounters(msgspec.Struct):
    """What happened in a process.

    ``delivered`` counts deliveries, ``performed`` performances that ended (also by raising), ``stored`` answers stored,
    ``failed`` those of them that are failures, ``answered`` deliveries of requests that were answered already.
    """

    delivered: int = 0
    performed: int = 0
    stored: int = 0
    failed: int = 0
    answered: int = 0


class _UnderWay(msgspec.Struct):
    """A delivery that is being handled, and by whom.

    ``request`` is what it asks, once it may have its turn, ``acts`` whether its performance has begun, ``lost`` whether
    it is another worker's by now, to which it is handed back unless it ends first.
    """

    delivery: Delivery
    task: asyncio.Task[Any]
    request: Message | None = None
    acts: bool = False
    lost: bool = False


class _Request(msgspec.Struct, frozen=True):
    """A delivered request, and where its answer would be: ``filter`` holds it, ``answer`` is its first event's id."""

    offered: Recorded | Unreadable
    cause: Cause
    filter: str
    answer: str


class EffectorWorker:
    """Runs an effector against a log until told to stop.

    Args:
        name: Unique among living workers.
        build: Version of the code, for the ``ce-build`` header.
        ack_wait: Seconds after which a silent worker's requests go to others.
        stop_deadline: See :data:`STOP_DEADLINE`.

    Attributes:
        effector: What it runs.
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
        self._prefix = entry_of(effector.failed).prefix
        self._under_way: dict[tuple[int, int], _UnderWay] = {}
        self._idle: set[asyncio.Task[Any]] = set()
        self._answers = Answers(log, log.as_stored())
        self._losses = Losses()
        self._wholeness: Wholeness | None = None
        self._pull: DurablePull | None = None
        self._begun_at = 0
        self._out = 0
        self._lost = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set; then take no more, and hand back what is not done within the stop deadline.

        Raises:
            LogCut: the log no longer holds what was read from it; a new worker may begin on what is left.
        """
        pull = self._pull = DurablePull(
            self._log.connection,
            self._log.stream,
            durable_name(self.effector.name),
            [topic_filter(topic_of(event)) for event in self.effector.consumes],
            ack_wait=self._ack_wait,
            began=self.ready,
            begins=self._begins,
            alone=self.effector.alone,
            lost=self._lose,
            imported_through=self._log.imported_through,
        )
        last = self._begun_at = (await self._insist(self._log.info)).last_seq
        losses = self._losses = await self._insist(lambda: Losses.of(self._log, last))
        self._wholeness = Wholeness(
            self._log, losses, source=self._source, build=self._build, now_ns=self._clock.now_ns
        )
        pull.lost_at(losses.last_seq, losses.gap_ends)
        off = self._log.connection.on_reconnect(self._answers.doubt)
        try:
            await self._work(pull, last, stop)
        finally:
            off()
        await pull.make_room()

    async def _work(self, pull: DurablePull, last: int, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as tasks:
            pulling = tasks.create_task(pull.run())
            yielding = tasks.create_task(self._yield())
            following = tasks.create_task(self._follow_losses(last))
            slots = [tasks.create_task(self._serve(pull, stop)) for _ in range(self.effector.concurrency)]
            await stop.wait()
            for task in (pulling, yielding, following, *self._idle):
                task.cancel()
            await self._finish(slots)
            for slot in slots:
                slot.cancel()

    async def _follow_losses(self, last: int) -> None:
        """Whenever the log is found to have lost messages, have all requests delivered again.

        Answers may be among what is lost; a request that has one is only looked up.
        """
        tail = await self._insist(lambda: self._log.tail([LOSS_FILTER], last))
        try:
            while True:
                self._note_losses(await tail.next())
        finally:
            await tail.close()

    def _note_losses(self, found: Sequence[Stored]) -> None:
        losses, pull = self._losses, self._pull
        if [stored for stored in found if losses.note(stored)] and pull is not None:
            _logger.error("requests_delivered_again", effector=self.effector.name, reason="log_loss")
            self._answers.doubt()
            pull.lost_at(losses.last_seq, losses.gap_ends)

    async def _know_losses(self) -> None:
        """Learn of every loss that is recorded by now: what was delivered may repeat a lost request."""
        last = await self._log.last(LOSS_FILTER)
        if last > self._losses.last_seq:
            async for batch in self._log.history([LOSS_FILTER], self._losses.last_seq, last):
                self._note_losses(batch)

    async def _settle(self, seq: int) -> None:
        """Have every gap since a request recorded: its answer may be among what rotted, and is about to be repeated."""
        wholeness = self._wholeness
        assert wholeness is not None, "requests come while it runs"
        upto = (await self._log.info()).last_seq
        await wholeness.settle(seq, upto, self._answers.read_at)

    async def _finish(self, slots: Sequence[asyncio.Task[None]]) -> None:
        """Let performances end within the stop deadline, and those that merely wait at once."""
        over = asyncio.get_running_loop().time() + self._stop_deadline
        left: Sequence[asyncio.Task[None]] = slots
        while left and asyncio.get_running_loop().time() < over:
            for each in self._waiting():
                each.task.cancel()
            await asyncio.wait(left, timeout=min(_STOP_LOOK, self._stop_deadline))
            left = [slot for slot in left if not slot.done()]

    def _lose(self) -> None:
        for each in self._under_way.values():
            each.lost = True
        self._lost.set()

    async def _yield(self) -> None:
        """Whenever another worker is the one to work, hand back to it what merely waits, and what comes to."""
        while True:
            await self._lost.wait()
            self._lost.clear()
            while any(each.lost for each in self._under_way.values()):
                for each in self._waiting():
                    if each.lost:
                        each.task.cancel()
                await asyncio.sleep(_STOP_LOOK)

    def _waiting(self) -> list[_UnderWay]:
        """Return what merely waits, and was not told to be handed back."""
        return [
            each
            for each in self._under_way.values()
            if each.request is not None
            and (not each.acts or self.effector.waits(each.request))
            and not each.task.cancelling()
        ]

    def _begins(self, out: int) -> None:
        self._out = out
        self.effector.begins(self._ack_wait + _LATE if out else 0.0)

    def _one_less_out(self) -> None:
        """Note that one of those that were out when the worker began is here, or done; tell of the last."""
        if self._out:
            self._out -= 1
            if not self._out:
                self.effector.begins(_SETTLING)

    async def _serve(self, pull: DurablePull, stop: asyncio.Event) -> None:
        me = asyncio.current_task()
        assert me is not None
        while not stop.is_set():
            self._idle.add(me)
            delivery = await pull.next()
            self._idle.discard(me)
            await self._handle(delivery)

    async def _handle(self, delivery: Delivery) -> None:
        self.counters.delivered += 1
        if delivery.was_out:
            self._one_less_out()
        seq = delivery.stored.seq
        # By its time, too: a log that was cut gives the sequence to another request.
        key = (seq, delivery.stored.time_ns)
        held = self._under_way.get(key)
        if held is not None:
            # Our signs of life did not reach the broker in time; the performance goes on, and answers for this one too.
            held.delivery.renew(delivery)
            return
        me = asyncio.current_task()
        assert me is not None
        under_way = self._under_way[key] = _UnderWay(delivery, me)
        keeping = asyncio.create_task(self._keep(delivery))
        try:
            await self._answer(under_way)
        except Refused as refused:
            _logger.error("failure_refused", effector=self.effector.name, seq=seq, detail=str(refused))
            await delivery.hand_back(_REFUSED_WAIT)
        except asyncio.CancelledError:
            await delivery.hand_back()
            if not under_way.lost or me.uncancel():
                raise
        except BaseException:
            await delivery.hand_back()
            raise
        else:
            await delivery.acknowledge()
            if under_way.lost:
                self._one_less_out()
        finally:
            keeping.cancel()
            del self._under_way[key]
            if under_way.request is not None:
                self.effector.ended(under_way.request)

    async def _keep(self, delivery: Delivery) -> None:
        while True:
            await asyncio.sleep(self._ack_wait / 3)
            await delivery.keep()

    async def _answer(self, under_way: _UnderWay) -> None:
        """Perform a request and store its answer, unless it has one; raises Refused if not even a failure is taken."""
        delivery = under_way.delivery
        offered = decode(await self._insist(lambda: self._log.opened(delivery.stored)))
        cause = cause_of(offered)
        answer = event_id(cause.id, self.effector.name, 0)
        request = _Request(offered, cause, f"{STORED_ROOT}.{cause.agent_token}.*.{self._prefix}.>", answer)
        started = self._clock.elapsed_ns()
        decided = await self._decide(request, under_way)
        if decided is None:
            self.counters.answered += 1
            return
        took_us = (self._clock.elapsed_ns() - started) // 1000
        try:
            await self._store(request, decided, took_us)
        except Refused as refused:
            _logger.error("append_refused", effector=self.effector.name, detail=str(refused))
            await self._store(request, self._failure(request, APPEND_REFUSED), took_us)

    async def _insist(self, asking: Callable[[], Awaitable[T]]) -> T:
        """Ask the log until it can be asked."""
        wait = _RETRY_FIRST
        while True:
            try:
                return await asking()
            except LogError as error:
                wait = await self._wait(error, wait)

    async def _is_answered(self, request: _Request) -> bool:
        await self._insist(self._know_losses)
        since = self._answerable_since(request)
        return await self._insist(lambda: self._answers.holds(request.filter, request.answer, since))

    def _answerable_since(self, request: _Request) -> int:
        """Return the sequence after which an answer can be: where a request was lost, its writer writes it again."""
        first_lost = self._losses.first_lost
        seq = request.offered.stored.seq
        return seq if first_lost is None else min(seq, first_lost)

    async def _store(self, request: _Request, decided: Sequence[Decided], took_us: int) -> None:
        """Append an answer, unless there is one; raises Refused when the broker takes no such events."""
        now = self._clock.now_ns()
        records = [to_record(one, self._source, self._build, now, took_us) for one in decided]
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

    def _note(self, request: _Request, decided: Sequence[Decided]) -> None:
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

    async def _decide(self, request: _Request, under_way: _UnderWay) -> tuple[Decided, ...] | None:
        """Return what answers a request, None where the log holds an answer."""
        offered = request.offered
        if isinstance(offered, Unreadable):
            return self._failure(request, offered.code)
        if offered.stored.seal is Seal.CLOSED:
            return self._failure(request, TEXT_FORGOTTEN)
        if self.effector.most_attempts is not None and under_way.delivery.attempt > self.effector.most_attempts:
            return self._failure(request, EFFECT_ABANDONED)
        under_way.request = offered.message
        limit = asyncio.timeout(None)
        try:
            async with limit:
                emissions = await self.effector.turn(offered.message)
                if emissions is None:
                    if await self._is_answered(request):
                        return None
                    seq = offered.stored.seq
                    if under_way.delivery.attempt > 1 or seq <= self._begun_at:
                        await self._insist(lambda: self._settle(seq))
                    emissions = await self._perform(under_way, offered.message, limit)
        except asyncio.CancelledError as cancelled:
            me = asyncio.current_task()
            if me is None or me.cancelling():
                raise
            # Not this worker is cancelled, but something within the performance.
            return self._failure(request, EFFECT_RAISED, cancelled)
        except Exception as raised:
            return self._failure(request, EFFECT_TIMED_OUT if limit.expired() else EFFECT_RAISED, raised)
        try:
            decided = address(self.effector.name, request.cause, tuple(emissions), self._log.partitions)
        except Exception as raised:
            return self._failure(request, RESULT_INVALID, raised)
        if not decided or not all(self._may_answer(request, one) for one in decided):
            return self._failure(request, RESULT_INVALID)
        return decided

    async def _perform(
        self, under_way: _UnderWay, request: Message, limit: asyncio.Timeout
    ) -> Sequence[Event | Emission]:
        self.counters.performed += 1
        under_way.acts = True
        limit.reschedule(asyncio.get_running_loop().time() + self.effector.timeout_s)
        return await self.effector.perform(request)

    def _may_answer(self, request: _Request, one: Decided) -> bool:
        """Whether an event is the effector's own, and where a look for the answer finds it."""
        _, agent_token, _ = split_stored(one.subject)
        entry = entry_of(one.message.event)
        return (
            agent_token == request.cause.agent_token
            and entry.owner == self.effector.name
            and entry.prefix == self._prefix
        )

    def _failure(self, request: _Request, reason: str, error: BaseException | None = None) -> tuple[Decided, ...]:
        offered, stored = request.offered, request.offered.stored
        failed = self.effector.failed(
            reason=reason,
            error=type(error).__name__ if error is not None else "",
            failed_seq=stored.seq,
            failed_topic=split_stored(stored.subject)[0],
        )
        if isinstance(offered, Recorded):
            failed = self.effector.naming(failed, offered.message)
        return address(self.effector.name, request.cause, (failed,), self._log.partitions)


def check(effector: Effector) -> None:
    """Raise ValueError, saying why, for an effector that the catalogue contradicts."""
    if not effector.consumes:
        raise ValueError(f"effector {effector.name}: it consumes nothing: name the events that ask for its effect")
    for event in (*effector.consumes, effector.failed):
        if topic_of(event) not in CATALOGUE:
            raise ValueError(f"effector {effector.name}: the catalogue does not list {event.__name__}: add its entry")
    failed = entry_of(effector.failed)
    if failed.owner != effector.name:
        raise ValueError(f"effector {effector.name}: {failed.topic} belongs to {failed.owner}: give it one of its own")
    if len(set(effector.consumes)) != len(effector.consumes):
        raise ValueError(f"effector {effector.name}: it consumes an event twice: list each once")
    requests = [entry_of(event) for event in effector.consumes]
    if failed.scope is Scope.GLOBAL and any(request.scope is not Scope.GLOBAL for request in requests):
        raise ValueError(
            f"effector {effector.name}: {failed.topic} is GLOBAL: a failure must carry its request's agent"
        )
