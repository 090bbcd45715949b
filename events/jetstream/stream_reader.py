"""Reading the stream in order, without gaps or repeats, whatever happens to the connection and the broker.

It uses the fast path through nats-py: an ephemeral consumer without acknowledgements, raw pull requests, and a callback
that only queues messages. A reading watches the consumer sequence for gaps and the idle heartbeats for silence. On
either, and on every reconnection, it makes a new consumer after the last sequence that it has. (nats-py's own ordered
consumer stays silent for ever after a kill -9 and restart of the broker.)

The sequence alone does not identify that position: a store that lost its tail gives the same sequences to other
messages. So before an endless reading goes on, it checks that its last message is still the one at that sequence.
Without this check it would silently skip the new messages that took the place of the lost ones.

A message that cannot be read any more (a *gap*) makes the server hold back readable ones. To find the next match of
several filters, the server (2.15) asks each subject for its first message from the start position on. If that message
is unreadable, it skips the whole subject, and delivers later messages of other subjects, or nothing. A start position
behind the unreadable message avoids this. So a reading knows the gaps of its log, and starts again behind each. (A
single filter is searched by sequence and is not affected.)
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from events.errors import LogCut, LogError, Unavailable
from events.jetstream.connection import Connection
from events.jetstream.get_message import get_message
from events.jetstream.imported import as_recorded
from events.jetstream.pull_protocol import HEARTBEAT, MOST_BYTES, SILENCE, delivery, pull_request, undelivered_count
from events.log import Stored
from events.loggers import get_logger

PULL = 2_000
"""Messages asked for at a time, where nothing else is said; two requests are kept in flight."""

_LARGEST = 2 * 1024 * 1024
"""Bytes that are asked for at a time, at least: a message that is larger would never come, and no log has one."""

BACKLOG = 10
"""Requests' messages that are held unread before no more are asked for."""

BACKLOG_BYTES = 32 * 1024
"""And their bytes, for each message of a request."""

_SECOND = 1_000_000_000
_RETRY_WAIT = 0.1
_logger = get_logger("neuraxis.reading")


class StreamReader:
    """An ordered reading after a sequence; implements ``events.log.Tail``."""

    def __init__(
        self,
        connection: Connection,
        stream: str,
        filters: Sequence[str],
        after: int,
        name: str,
        imported_through: int = 0,
        gap_ends: Sequence[int] = (),
        pull: int = PULL,
    ) -> None:
        """Read the messages on ``filters`` after a sequence.

        ``gap_ends`` are the last sequences of known gaps. ``pull`` messages are asked for at a time: who reads for
        many that may stop reading asks for few, since what is held for each of them follows from that.
        """
        self._pull_size = pull
        self._pull_bytes = min(MOST_BYTES, max(_LARGEST, BACKLOG_BYTES * pull))
        self._gap_ends = tuple(gap_ends)
        self._ahead: tuple[int, ...] = ()
        self._connection = connection
        self._stream = stream
        self._filters = tuple(filters)
        self._after = after
        self._mark: tuple[int, int] | None = None
        self._scanned = 0
        self._cut: LogCut | None = None
        self._name = name
        self._imported_through = imported_through
        self._generation = 0
        self._buffer: list[Stored] = []
        self._held = 0
        self._filled = asyncio.Event()
        self._lost = asyncio.Event()
        self._credit = 0
        self._expected = 1
        self._heard = 0.0
        self._inbox = ""
        self._consumer = ""
        self._subscription: Subscription | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._off: Any = None
        self._clock = asyncio.get_running_loop().time
        self._pulls: set[asyncio.Task[None]] = set()

    async def start(self, *, endless: bool = False) -> int:
        """Make the consumer; return how many messages matched after the start at this moment.

        An ``endless`` reading notes which message it begins after, and knows that one again.
        """
        if endless and (begun := await get_message(self._connection, self._stream, self._after)) is not None:
            self._mark = begun.seq, begun.time_ns
        pending = await self._create()
        self._off = self._connection.on_reconnect(self._lost.set)
        self._keeper = asyncio.create_task(self._keep(), name=f"reading {self._name}")
        return pending

    async def next(self) -> Sequence[Stored]:
        """Wait for the next messages, in stream order; never empty.

        Raises:
            LogCut: the stream no longer holds what was read.
            Unavailable: the connection is closed for good.
        """
        while not self._buffer:
            if self._cut is not None:
                raise self._cut
            if self._connection.closed:
                raise Unavailable(f"the connection that reads stream {self._stream} is closed")
            self._filled.clear()
            await self._filled.wait()
        batch, self._buffer, self._held = self._buffer, [], 0
        self._pull_more()
        return batch

    async def next_until(self, upto: int, deadline: float) -> Sequence[Stored]:
        """Like :meth:`next`, but empty once the server says that it has looked at all messages up to ``upto``.

        Raises:
            LogCut: as :meth:`next` does.
            Unavailable: ``deadline`` seconds without a message; or as :meth:`next` does.
        """
        try:
            async with asyncio.timeout(deadline):
                while not self._buffer and self._scanned < upto:
                    if self._cut is not None or self._connection.closed:
                        break
                    self._filled.clear()
                    await self._filled.wait()
                return await self.next() if self._buffer or self._scanned < upto else ()
        except TimeoutError:
            raise Unavailable(
                f"the broker at {self._connection.access.servers} has sent nothing of stream {self._stream} for "
                f"{deadline:g} s: look at it with `neuraxis doctor`"
            ) from None

    async def close(self) -> None:
        """Stop reading and free the consumer."""
        if self._off is not None:
            self._off()
            self._off = None
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None
        for pull in tuple(self._pulls):
            pull.cancel()
        await asyncio.gather(*self._pulls, return_exceptions=True)
        await self._drop()

    async def _create(self) -> int:
        """Make a consumer after the last sequence held; the messages of earlier ones are not listened to any more."""
        await self._drop()
        if self._generation > 1:
            await self._check_mark()
        self._generation += 1
        self._ahead = tuple(end for end in self._gap_ends if end > self._after)
        self._consumer = f"nx-{self._connection.access.user or 'any'}-{self._name}-{self._generation}"
        self._inbox = self._connection.new_inbox()
        generation = self._generation

        def take(msg: Msg) -> None:
            if generation == self._generation:
                self._take(msg)

        self._subscription = await self._connection.nc.listen(self._inbox, take)
        config: dict[str, Any] = {
            "name": self._consumer,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self._after + 1,
            "ack_policy": "none",
            "replay_policy": "instant",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": 15 * _SECOND,
            "filter_subjects": list(self._filters),
        }
        made = await self._connection.api(
            f"CONSUMER.CREATE.{self._stream}.{self._consumer}",
            {"stream_name": self._stream, "config": config, "action": "create"},
        )
        self._credit = 0
        self._expected = 1
        self._heard = self._clock()
        await self._pull()
        await self._pull()
        return int(made["num_pending"])

    async def _check_mark(self) -> None:
        """Raise LogCut where the stream holds another message, or none, in the place of the last that was read."""
        if self._mark is None:
            return
        seq, time_ns = self._mark
        there = await get_message(self._connection, self._stream, seq)
        if there is None or there.time_ns != time_ns:
            now = "another message" if there is not None else "no message"
            raise LogCut(
                f"stream {self._stream} holds {now} at sequence {seq}, which was read from it: it lost its tail, or "
                "the broker was given another store"
            )

    async def _drop(self) -> None:
        subscription, self._subscription = self._subscription, None
        consumer, self._consumer = self._consumer, ""
        self._generation += 1
        if subscription is not None and not self._connection.nc.is_closed:
            try:
                await subscription.unsubscribe()
            except NatsError as wrong:
                _logger.debug("unsubscribe", error=type(wrong).__name__)
        if consumer and self._connection.connected:
            try:
                # Nobody waits for the answer: an idle consumer expires by itself.
                await self._connection.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{consumer}", b"")
            except LogError as wrong:
                _logger.debug("consumer_delete", error=wrong.code)

    async def _pull(self) -> None:
        self._credit += self._pull_size
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        await self._connection.publish(subject, pull_request(self._pull_size, self._pull_bytes), reply=self._inbox)

    def _pull_more(self) -> None:
        size = self._pull_size
        full = len(self._buffer) > BACKLOG * size or self._held > BACKLOG_BYTES * size
        if self._credit > size or full or self._subscription is None:
            return
        self._credit += size  # counted at once, so that messages meanwhile do not ask again
        task = asyncio.create_task(self._pull_counted(self._generation))
        self._pulls.add(task)
        task.add_done_callback(self._pulls.discard)

    async def _pull_counted(self, generation: int) -> None:
        if generation != self._generation:
            return
        self._credit -= self._pull_size
        try:
            await self._pull()
        except LogError:
            self._lost.set()

    def _take(self, msg: Msg) -> None:
        self._heard = self._clock()
        found = delivery(msg.reply)
        if found is None:
            self._status(msg.headers or {})
            return
        _, sequence, place, time_ns, _ = found
        if place != self._expected:
            self._lost.set()
            return
        if self._begins_behind_gap(sequence):
            return
        self._expected += 1
        self._credit -= 1
        self._after = sequence
        self._mark = sequence, time_ns
        headers = msg.headers or {}
        self._buffer.append(as_recorded(sequence, time_ns, msg.subject, headers, msg.data, self._imported_through))
        self._held += len(msg.data)
        self._filled.set()
        if self._credit <= self._pull_size:
            self._pull_more()

    def _status(self, headers: dict[str, str]) -> None:
        if headers.get("Status") == "100":
            # It tells how far the consumer has looked, which is further than the last message that matched.
            if headers.get("Nats-Last-Consumer") == str(self._expected - 1):
                scanned = int(headers.get("Nats-Last-Stream", "0"))
                if not self._begins_behind_gap(scanned + 1):
                    self._scanned = max(self._scanned, scanned)
                    self._filled.set()
            return
        left = undelivered_count(headers, self._pull_size)
        if left is None:
            self._lost.set()
            return
        self._credit -= left
        self._pull_more()

    def _begins_behind_gap(self, sequence: int) -> bool:
        """Whether a sequence is behind a gap that the consumer began before: then a new one is made, behind the gap."""
        if not self._ahead or sequence <= self._ahead[0]:
            return False
        self._after = max(self._after, self._ahead[0])
        self._lost.set()
        return True

    async def _keep(self) -> None:
        """Make a new consumer whenever the present one is lost; runs until cancelled."""
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT):
                    await self._lost.wait()
            except TimeoutError:
                if self._clock() - self._heard < SILENCE or not self._connection.connected:
                    continue
                _logger.warning("reading_silent", consumer=self._consumer, after=self._after)
            self._lost.clear()
            if self._connection.closed:
                self._filled.set()
                return
            if not self._connection.connected:
                continue
            try:
                await self._create()
            except LogCut as cut:
                _logger.error("log_cut", stream=self._stream, detail=str(cut))
                self._cut = cut
                self._filled.set()
                return
            except (LogError, NatsError, OSError) as wrong:
                _logger.info("reading_retries", stream=self._stream, error=type(wrong).__name__, detail=str(wrong))
                await asyncio.sleep(_RETRY_WAIT)
                self._lost.set()
