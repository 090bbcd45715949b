"""A durable pull consumer, which competing workers share. The worker that handled a message acknowledges it.

It uses raw pull requests with idle heartbeats, as ``stream_reader`` does: nats-py's own pull subscriptions stay silent
after a restart of the broker. On silence, on an unexpected status and on every reconnection, the consumer is looked up
again (and made, if the broker has lost it), and pulled from again.

If order matters, one message is delivered at a time, to the worker that asked first. The next is not delivered until it
is acknowledged, and a message that is returned with a delay delays all behind it.

A message that cannot be read any more (a *gap*) makes the server hold back readable messages; see ``stream_reader``. So
a consumer with several filters is made again behind each known gap, once all that it has delivered from before the gap
is handled. Messages behind the gap are then delivered again; a worker that handled one finds its answer in the log.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from events.errors import LogError
from events.jetstream.connection import ApiError, Connection
from events.jetstream.imported import as_recorded
from events.jetstream.reading.pull_protocol import HEARTBEAT, SILENCE, ack_fields, pull_request, undelivered_count
from events.jetstream.reading.pulled_message import PulledMessage
from events.loggers import get_logger

ACK_WAIT = 10.0
"""Seconds without an acknowledgement or progress report after which a message is delivered again."""

MAX_PENDING = 10_000
"""Messages delivered and not acknowledged, over all workers, at which no more are delivered."""

_REQUEST_FRACTION = 4
"""More messages are requested once a quarter of the waiting callers have none requested. Not one by one: a server
silently drops pull requests beyond 512."""

LOST_AT = "neuraxis.lost-at"
"""Key in a consumer's metadata: the sequence of the last loss that the log had recorded when it was made, if any."""

_NO_CONSUMER = 10014  # JetStream's error code
_NS_PER_S = 1_000_000_000
_RETRY_WAIT = 0.1  # seconds
_DRAIN_WITHIN = 2.0  # seconds
_logger = get_logger("neuraxis.durable")


class DurablePull:
    """Pulls from a durable consumer that workers share, about as many messages as :meth:`next` is waiting for.

    Args:
        connection: The connection to the broker.
        stream: The stream's name.
        name: Name of the consumer, the same for all who share it.
        filters: The subjects it delivers, one filter at least; no two may overlap.
        ack_wait: See :data:`ACK_WAIT`; the worker that started last sets it for all.
        in_order: Whether one message at a time is delivered, over all workers.
        imported_through: Messages up to this sequence were imported; see ``JetStreamLog``.

    Attributes:
        began: Set once messages can arrive; cleared while the broker does not give the consumer, though it answers,
            and where the connection is lost while the consumer is asked for.
    """

    def __init__(
        self,
        connection: Connection,
        stream: str,
        name: str,
        filters: Sequence[str],
        *,
        ack_wait: float = ACK_WAIT,
        in_order: bool = False,
        imported_through: int = 0,
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._name = name
        self._filters = tuple(filters)
        self._ack_wait = ack_wait
        self.began = asyncio.Event()
        self._max_unacknowledged = 1 if in_order else MAX_PENDING
        self._imported_through = imported_through
        self._lost_at = 0  # the sequence at which the log last recorded a loss; 0: never
        self._gap_ends: tuple[int, ...] = ()  # the last sequences of the log's gaps, where they matter here
        self._past_gap = 0  # the end of the last gap behind which the consumer starts
        self._last_delivered = (-1, -1)  # consumer and stream sequence, when last asked
        self._waiting_callers = 0  # of ``next``
        self._requested = 0  # messages that were requested and did not arrive yet
        self._last_received = 0.0  # when the last message or heartbeat came (the event loop's time)
        self._generation = 0  # counts the subscriptions; messages to earlier ones are ignored
        self._inbox = ""
        self._subscription: Subscription | None = None
        self._arrived: asyncio.Queue[PulledMessage] = asyncio.Queue()  # what no caller of ``next`` has received yet
        self._must_restart = asyncio.Event()
        self._clock = asyncio.get_running_loop().time

    async def run(self) -> None:
        """Pull until cancelled; messages that no caller has received are then returned to the broker."""
        stop_listening = self._connection.on_reconnect(self._must_restart.set)
        self._must_restart.set()
        try:
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await self._must_restart.wait()
                except TimeoutError:
                    if await self._is_done_up_to_gap():
                        self._must_restart.set()
                    elif await self._is_silent():
                        _logger.warning("consumer_silent", consumer=self._name)
                    else:
                        continue
                self._must_restart.clear()
                if self._connection.connected:
                    await self._start()
                    await asyncio.sleep(_RETRY_WAIT)
        finally:
            stop_listening()
            await self._drain()
            await self._stop()
            await self._hand_back_arrived()

    async def _drain(self) -> None:
        """Take the messages that the server has already sent; else they count as delivered until their ack wait."""
        subscription, self._subscription = self._subscription, None
        if subscription is None or not self._connection.connected:
            return
        try:
            async with asyncio.timeout(_DRAIN_WITHIN):
                await subscription.drain()  # type: ignore[no-untyped-call]  # nats-py annotates no return
        except (NatsError, OSError, TimeoutError) as wrong:
            _logger.debug("drain", error=type(wrong).__name__)

    async def _is_silent(self) -> bool:
        for _ in range(2):
            # Without an open pull request the server sends nothing.
            if not self._requested or self._clock() - self._last_received < SILENCE:
                return False
            # If this process was stalled, messages may wait in its socket: read them first.
            await asyncio.sleep(_RETRY_WAIT)
        return True

    async def next(self) -> PulledMessage:
        """Wait for the next message; about as many are requested as calls wait."""
        self._waiting_callers += 1
        try:
            await self._request_missing()
            return await self._arrived.get()
        finally:
            self._waiting_callers -= 1

    def note_loss(self, seq: int, gap_ends: Sequence[int] = ()) -> None:
        """Note the sequence at which the log last recorded a loss (0: never), and the ends of its gaps, in order.

        A consumer made before that is made again, from the log's start: answers to messages that it counts as handled
        may be lost, and its position may be among lost messages.
        """
        if seq > self._lost_at:
            self._lost_at = seq
            self._gap_ends = tuple(gap_ends) if len(self._filters) > 1 else ()
            self._past_gap = 0
            self._must_restart.set()

    async def _is_done_up_to_gap(self) -> bool:
        """Whether all messages before the next gap are handled, so that the consumer has to start behind the gap.

        That holds if all before the gap's end is acknowledged, or if no message waits to be acknowledged and none
        arrives.
        """
        gap_end = next((end for end in self._gap_ends if end > self._past_gap), None)
        if gap_end is None or not self._connection.connected:
            return False
        try:
            info = await self._info()
        except LogError as error:
            if self._connection.reading_warnings.is_due(f"{self._name} is unknown: {error}"):
                _logger.info("consumer_unknown", consumer=self._name, error=error.code)
            return False
        if info is None:
            return False
        seen, self._last_delivered = (
            self._last_delivered,
            (info["delivered"]["consumer_seq"], info["delivered"]["stream_seq"]),
        )
        is_idle = info["num_waiting"] > 0 and seen == self._last_delivered
        none_open = not info["num_ack_pending"] and (is_idle or info["delivered"]["stream_seq"] > gap_end)
        if not none_open and info["ack_floor"]["stream_seq"] <= gap_end:
            return False
        self._past_gap = gap_end
        return True

    async def _start(self) -> None:
        try:
            await self._stop()
            await self._ensure()
            await self._listen()
        except (LogError, NatsError, OSError) as wrong:
            if self._connection.reading_warnings.is_due(f"{self._name}: {wrong}"):
                _logger.info("consumer_retries", consumer=self._name, error=type(wrong).__name__, detail=str(wrong))
            self.began.clear()
            self._must_restart.set()
            return
        self.began.set()
        await self._request_missing()

    async def _ensure(self) -> None:
        """Make the consumer, or find it."""
        config: dict[str, Any] = {
            "name": self._name,
            "durable_name": self._name,
            # From the start: an unanswered request must be answered, however old. Workers look in the log whether a
            # request has an answer.
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": int(self._ack_wait * _NS_PER_S),
            "max_deliver": -1,
            "max_ack_pending": self._max_unacknowledged,
            "replay_policy": "instant",
            "filter_subjects": self._filters,
        }
        if self._lost_at:
            config["metadata"] = {LOST_AT: str(self._lost_at)}
            await self._drop_outdated()
            if self._past_gap:
                config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": self._past_gap + 1}
        await self._connection.api(
            f"CONSUMER.CREATE.{self._stream}.{self._name}", {"stream_name": self._stream, "config": config}
        )

    async def _drop_outdated(self) -> None:
        """Delete the consumer if it was made before the last loss, or begins before a gap that is handled."""
        found = await self._info()
        if found is None:
            return
        known = str((found["config"].get("metadata") or {}).get(LOST_AT, "0"))
        begins_behind = int(found["config"].get("opt_start_seq", 1)) - 1
        if known == str(self._lost_at) and begins_behind >= self._past_gap:
            self._past_gap = begins_behind  # another worker was further on
            return
        _logger.warning("consumer_made_anew", consumer=self._name, lost_at=self._lost_at, behind=self._past_gap)
        await self._connection.api(f"CONSUMER.DELETE.{self._stream}.{self._name}")

    async def _info(self) -> Mapping[str, Any] | None:
        """Return the broker's information on the consumer, None if it does not exist; raises LogError."""
        try:
            return await self._connection.api(f"CONSUMER.INFO.{self._stream}.{self._name}")
        except ApiError as error:
            if error.number == _NO_CONSUMER:
                return None
            raise

    async def _listen(self) -> None:
        generation = self._generation

        async def on_message(msg: Msg) -> None:
            if generation == self._generation:
                await self._on_message(msg)

        self._inbox = self._connection.new_inbox()
        self._subscription = await self._connection.subscribe(self._inbox, on_message)
        self._last_received = self._clock()

    async def _stop(self) -> None:
        """Unsubscribe: the server drops pull requests whose inbox has no subscriber."""
        self._generation += 1
        self._requested = 0
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await self._connection.unsubscribe(subscription)

    async def _request_missing(self) -> None:
        missing = self._waiting_callers - self._requested - self._arrived.qsize()
        if missing < max(1, self._waiting_callers // _REQUEST_FRACTION) or self._subscription is None:
            return
        if not self._requested:
            self._last_received = self._clock()
        await self._request(missing)

    async def _request(self, messages: int) -> None:
        self._requested += messages
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
        try:
            await self._connection.publish(subject, pull_request(messages), reply=self._inbox)
        except LogError:
            self._must_restart.set()

    async def _hand_back_arrived(self) -> None:
        while not self._arrived.empty():
            await self._arrived.get_nowait().nak()

    async def _on_message(self, msg: Msg) -> None:
        self._last_received = self._clock()
        found = ack_fields(msg.reply)
        if found is None:
            await self._on_status(msg.headers or {})
            return
        attempt, sequence, _, time_ns, behind = found  # behind: messages that are not delivered yet
        self._requested = max(0, self._requested - 1)
        stored = as_recorded(sequence, time_ns, msg.subject, msg.headers or {}, msg.data, self._imported_through)
        self._arrived.put_nowait(PulledMessage(self._connection, stored, attempt, msg.reply, behind=behind))

    async def _on_status(self, headers: dict[str, str]) -> None:
        if headers.get("Status") == "100":
            return
        left = undelivered_count(headers, self._requested)
        if left is None:
            self._must_restart.set()
            return
        self._requested = max(0, self._requested - left)
        await self._request_missing()
