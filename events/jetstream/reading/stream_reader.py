"""Reading the stream in order, without gaps or repeats, whatever happens to the connection and the broker.

It uses the fast path through nats-py: an ephemeral consumer without acknowledgements, raw pull requests, and a callback
that only queues messages. A reader watches the consumer sequence for gaps and the idle heartbeats for silence. On
either, and on every reconnection, it makes a new consumer after the last sequence that it has. (nats-py's own ordered
consumer stays silent for ever after a kill -9 and restart of the broker.)

The sequence alone does not identify that position: a store that lost its tail gives the same sequences to other
messages. So before an endless reader goes on, it checks that its last message is still the one at that sequence.
Without this check it would silently skip the new messages that have the sequences of lost ones.

A message that cannot be read any more (a *gap*) makes the server hold back readable ones. To find the next match of
several filters, the server (2.15) asks each subject for its first message from the start position on. If that message
is unreadable, it skips the whole subject, and delivers later messages of other subjects, or nothing. A start position
behind the unreadable message avoids this. So a reader is given the gaps of its log, and starts again behind each. (A
single filter is searched by sequence and is not affected.)

In a cluster, a consumer reads the copy of the server that it is on, which may lag behind the stream's leader. An
endless reader gets the rest later; ``closed_reader`` reads a range that ends. A consumer that is to start behind the
end of such a copy starts at that end instead, so a reader passes over what it has.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from events.errors import LogCut, LogError, Unavailable
from events.jetstream.connection import Connection
from events.jetstream.imported import as_recorded
from events.jetstream.reading.get_message import get_message
from events.jetstream.reading.pull_protocol import (
    HEARTBEAT,
    MOST_BYTES,
    SILENCE,
    ack_fields,
    pull_request,
    undelivered_count,
)
from events.log import Stored
from events.loggers import get_logger

PULL = 2_000
"""Messages requested at a time, by default; two requests are kept in flight."""

_MIN_PULL_BYTES = 2 * 1024 * 1024
"""Bytes requested at a time, at least. It is more than the largest message, which else would never be delivered."""

BACKLOG = 10
"""No more messages are requested while the unread messages of this many requests are buffered."""

BACKLOG_BYTES = 32 * 1024
"""No more messages are requested, either, while the buffer holds this many bytes for each message of a request."""

_NS_PER_S = 1_000_000_000
_RETRY_WAIT = 0.1  # seconds
_logger = get_logger("neuraxis.reading")


class StreamReader:
    """An endless, ordered reading after a sequence; implements ``events.log.Tail``."""

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
        on_demand: bool = False,
    ) -> None:
        """Read the messages on ``filters`` after a sequence.

        Messages up to ``imported_through`` come from another log, and are given as that one recorded them; see
        ``events.jetstream.imported``. ``gap_ends`` are the last sequences of known gaps. ``pull`` messages are
        requested at a time; it also bounds the buffer, so it should be small where a process has many readers that may
        stall. ``on_demand``: see ``events.log.Log.tail``.
        """
        self._on_demand = on_demand
        self._pull_size = pull
        self._pull_bytes = min(MOST_BYTES, max(_MIN_PULL_BYTES, BACKLOG_BYTES * pull))
        self._gap_ends = tuple(gap_ends)
        self._gaps_ahead: tuple[int, ...] = ()  # the last sequences of the gaps behind which it will start again
        self._connection = connection
        self._stream = stream
        self._filters = tuple(filters)
        self._after = after
        self._last_read: tuple[int, int] | None = None  # the last message's sequence and time (Unix nanoseconds)
        self._scanned = 0  # the sequence up to which the server has searched for matching messages
        self._created = 0  # the generation whose consumer the server has made
        self._is_clustered = False
        self._log_cut: LogCut | None = None
        self._name = name
        self._imported_through = imported_through
        self._generation = 0  # counts the consumers; messages of earlier ones are ignored
        self._buffer: list[Stored] = []
        self._buffered_bytes = 0
        self._filled = asyncio.Event()
        self._renew = asyncio.Event()  # set when a new consumer has to be made
        self._requested = 0  # messages that were requested and did not arrive yet
        self._next_consumer_seq = 1
        self._last_received = 0.0  # when the last message or heartbeat came (the event loop's time)
        self._silence = SILENCE  # seconds of silence after which a new consumer is made
        self._inbox = ""
        self._consumer = ""
        self._subscription: Subscription | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._stop_listening: Any = None
        self._clock = asyncio.get_running_loop().time
        self._pulls: set[asyncio.Task[None]] = set()
        self._cut_off_at: float | None = None  # since when no consumer can be made (the event loop's time)

    @property
    def cut_off_s(self) -> float:
        """For how many seconds no consumer could be made: a right may be lacking, or the read service away.

        It counts anew after each loss of the connection, and is 0 only once a consumer was made.
        """
        return 0.0 if self._cut_off_at is None else self._clock() - self._cut_off_at

    async def start(self) -> int:
        """Make the consumer; return how many messages matched after the start at this moment.

        The message after which it begins is noted, to check it later.
        """
        if (before := await get_message(self._connection, self._stream, self._after)) is not None:
            self._last_read = before.seq, before.time_ns
        return await self._begin()

    async def _begin(self) -> int:
        pending = await self._create()
        self._stop_listening = self._connection.on_reconnect(self._renew.set)
        self._renewing = asyncio.create_task(self._renew_consumer(), name=f"reading {self._name}")
        return pending

    async def next(self) -> Sequence[Stored]:
        """Wait for the next messages, in stream order; never empty.

        Raises:
            LogCut: the stream no longer holds what was read.
            Unavailable: the connection is closed for good.
        """
        while not self._buffer or self._more_arrives:
            if self._log_cut is not None:
                raise self._log_cut
            if self._connection.closed:
                why = self._connection.why_closed
                raise Unavailable(f"the connection that reads stream {self._stream} is closed{why}")
            if self._on_demand:
                self._pull_more()
            self._filled.clear()
            await self._filled.wait()
        batch, self._buffer, self._buffered_bytes = self._buffer, [], 0
        if not self._on_demand:
            self._pull_more()
        return batch

    @property
    def _more_arrives(self) -> bool:
        """Whether the rest of what a reader on demand asked for is on its way."""
        if not self._on_demand or self._log_cut is not None or not self._connection.connected:
            return False
        return self._requested > 0 and len(self._buffer) < self._pull_size

    async def close(self) -> None:
        """Stop reading and free the consumer."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
            self._renewing = None
        for pull in tuple(self._pulls):
            pull.cancel()
        await asyncio.gather(*self._pulls, return_exceptions=True)
        await self._drop()

    async def _create(self) -> int:
        """Make a consumer after the last sequence received; messages of earlier consumers are ignored from then on."""
        await self._drop()
        if self._generation > 1:
            await self._check_last_read()
        self._generation += 1
        self._gaps_ahead = tuple(end for end in self._gap_ends if end > self._after)
        self._consumer = f"nx-{self._connection.access.user or 'any'}-{self._name}-{self._generation}"
        self._inbox = self._connection.new_inbox()
        generation = self._generation

        def on_message(msg: Msg) -> None:
            if generation == self._generation:
                self._on_message(msg)

        self._subscription = await self._connection.nc.listen(self._inbox, on_message)
        config: dict[str, Any] = {
            "name": self._consumer,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self._after + 1,
            "ack_policy": "none",
            "replay_policy": "instant",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": 15 * _NS_PER_S,
            "filter_subjects": list(self._filters),
        }
        made = await self._connection.api(
            f"CONSUMER.CREATE.{self._stream}.{self._consumer}",
            {"stream_name": self._stream, "config": config, "action": "create"},
        )
        self._created = generation
        self._is_clustered = "cluster" in made
        self._requested = 0
        self._next_consumer_seq = 1
        self._last_received = self._clock()
        for _ in range(self._most_requests):
            await self._pull()
        return int(made["num_pending"])

    async def _check_last_read(self) -> None:
        """Raise LogCut if the stream holds another message, or none, at the sequence of the last one that was read."""
        if self._last_read is None:
            return
        seq, time_ns = self._last_read
        found = await get_message(self._connection, self._stream, seq)
        if found is None or found.time_ns != time_ns:
            now = "another message" if found is not None else "no message"
            raise LogCut(
                f"stream {self._stream} holds {now} at sequence {seq}, which was read from it: it lost its tail, or "
                "the broker was given another store"
            )

    async def _drop(self) -> None:
        subscription, self._subscription = self._subscription, None
        consumer, self._consumer = self._consumer, ""
        self._generation += 1
        if subscription is not None:
            await self._connection.unsubscribe(subscription)
        if consumer and self._connection.connected:
            try:
                # Nobody waits for the answer: an idle consumer expires by itself.
                await self._connection.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{consumer}", b"")
            except LogError as wrong:
                _logger.debug("consumer_delete", error=wrong.code)

    async def _pull(self) -> None:
        self._requested += self._pull_size
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        request = pull_request(
            self._pull_size, self._pull_bytes, heartbeat_s=self._heartbeat_s, ends_with_log=self._on_demand
        )
        await self._connection.publish(subject, request, reply=self._inbox)

    @property
    def _heartbeat_s(self) -> float | None:
        """Seconds between heartbeats; None: as usual."""
        return None

    @property
    def _most_requests(self) -> int:
        """How many requests are in flight at a time."""
        return 1 if self._on_demand else 2

    def _pull_more(self) -> None:
        size = self._pull_size
        full = len(self._buffer) > BACKLOG * size or self._buffered_bytes > BACKLOG_BYTES * size
        if self._requested > (self._most_requests - 1) * size or full or self._subscription is None:
            return
        if self._on_demand:
            self._last_received = self._clock()  # nothing was requested before, so nothing came
        self._requested += size  # counted at once, so that messages meanwhile do not request again
        task = asyncio.create_task(self._pull_counted(self._generation))
        self._pulls.add(task)
        task.add_done_callback(self._pulls.discard)

    async def _pull_counted(self, generation: int) -> None:
        if generation != self._generation:
            return
        self._requested -= self._pull_size
        try:
            await self._pull()
        except LogError:
            self._renew.set()

    def _on_message(self, msg: Msg) -> None:
        self._last_received = self._clock()
        found = ack_fields(msg.reply)
        if found is None:
            self._on_status(msg.headers or {})
        else:
            self._on_stored(msg, found)

    def _on_stored(self, msg: Msg, found: tuple[int, int, int, int, int]) -> None:
        _, sequence, consumer_seq, time_ns, _ = found
        if consumer_seq != self._next_consumer_seq:
            self._renew.set()
            return
        if self._restarts_behind_gap(sequence):
            return
        self._next_consumer_seq += 1
        self._requested -= 1
        if sequence <= self._after and self._is_known():
            return
        self._after = sequence
        self._last_read = sequence, time_ns
        headers = msg.headers or {}
        self._buffer.append(as_recorded(sequence, time_ns, msg.subject, headers, msg.data, self._imported_through))
        self._buffered_bytes += len(msg.data)
        self._filled.set()
        if self._requested <= (self._most_requests - 1) * self._pull_size:
            self._pull_more()

    def _is_known(self) -> bool:
        """Whether the message at ``_after`` was read, so that a message at or before it is one read before."""
        return self._is_clustered and self._last_read is not None

    def _on_status(self, headers: dict[str, str]) -> None:
        if headers.get("Status") == "100":
            # A heartbeat says how far the consumer has searched, which is further than the last match.
            if headers.get("Nats-Last-Consumer") == str(self._next_consumer_seq - 1):
                scanned = int(headers.get("Nats-Last-Stream", "0"))
                if not self._restarts_behind_gap(scanned + 1):
                    self._scanned = max(self._scanned, scanned)
                    self._filled.set()
            return
        # The server does not always say how much was left of a request that ends with the log; it is the only one then.
        left = undelivered_count(headers, self._requested if self._on_demand else self._pull_size)
        if left is None:
            self._renew.set()
            return
        self._requested -= left
        if not self._on_demand or headers.get("Status") == "409":
            self._pull_more()
        else:
            self._filled.set()  # there is no more: ``next`` returns what has come, or asks again

    def _silence_after(self, silence: float) -> float:
        """Return how many seconds the next consumer may be silent; ``silence`` is what the last one was allowed."""
        return silence

    def _restarts_behind_gap(self, sequence: int) -> bool:
        """Whether a sequence is behind a gap that the consumer began before; if so, has a new one made behind it."""
        if not self._gaps_ahead or sequence <= self._gaps_ahead[0]:
            return False
        self._after = max(self._after, self._gaps_ahead[0])
        self._renew.set()
        return True

    async def _renew_consumer(self) -> None:
        """Make a new consumer whenever the current one is lost; runs until cancelled."""
        silent = 0.0  # seconds in which this process listened and heard nothing
        while True:
            heard = self._last_received
            if self._cut_off_at is not None and not self._connection.connected:
                self._cut_off_at = self._clock()
            try:
                async with asyncio.timeout(HEARTBEAT):
                    await self._renew.wait()
            except TimeoutError:
                # A stall of this process counts as one interval at most: what came meanwhile is still to be read. The
                # server sends nothing while nothing is requested: the buffer is full, or nobody demands anything.
                keeps_back = self._on_demand or bool(self._buffer)
                expects = self._connection.connected and (self._requested > 0 or not keeps_back)
                silent = silent + HEARTBEAT if expects and self._last_received == heard else 0.0
                if silent < self._silence:
                    continue
                self._silence = self._silence_after(self._silence)
                _logger.warning("reading_silent", consumer=self._consumer, after=self._after)
            self._renew.clear()
            silent = 0.0
            if self._connection.closed:
                self._filled.set()
                return
            if not self._connection.connected:
                continue
            try:
                await self._create()
            except LogCut as cut:
                _logger.error("log_cut", stream=self._stream, detail=str(cut))
                self._log_cut = cut
                self._filled.set()
                return
            except (LogError, NatsError, OSError) as wrong:
                self._cut_off_at = self._clock() if self._cut_off_at is None else self._cut_off_at
                # All readers of a connection meet this error, ten times a second.
                if self._connection.reading_warnings.is_due(f"{self._stream}: {wrong}"):
                    _logger.info("reading_retries", stream=self._stream, error=type(wrong).__name__, detail=str(wrong))
                await asyncio.sleep(_RETRY_WAIT)
                self._renew.set()
            else:
                self._cut_off_at = None
