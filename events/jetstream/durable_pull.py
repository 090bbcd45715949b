"""Work shared by competing consumers: a durable pull consumer. The worker that handled a message acknowledges it.

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
from events.jetstream.delivery import Delivery
from events.jetstream.imported import as_recorded
from events.jetstream.pull_protocol import HEARTBEAT, SILENCE, delivery, pull_request, undelivered_count
from events.loggers import get_logger

ACK_WAIT = 10.0
"""Seconds without a sign of life of whoever has a message, after which it is delivered again."""

MAX_PENDING = 10_000
"""Messages delivered and not acknowledged, over all workers, from which on no more are delivered."""

_ASKED_AT_LEAST = 4
"""What part of the room is not asked for before more is: requests one by one, a server drops beyond 512, unsaid."""

LOST_AT = "neuraxis.lost-at"
"""In a consumer's metadata: where the log last recorded a loss when it was made, if it has."""

_NO_CONSUMER = 10014
_SECOND = 1_000_000_000
_RETRY_WAIT = 0.1
_DRAIN_WITHIN = 2.0
_logger = get_logger("neuraxis.durable")


class DurablePull:
    """Pulls from a durable consumer that workers share, about as many messages as :meth:`next` is waiting for.

    Args:
        connection: Where the broker is.
        stream: The stream.
        name: Name of the consumer, the same for all who share it.
        filters: The subjects it delivers, one filter at least; no two may overlap.
        ack_wait: See :data:`ACK_WAIT`; the latest to start decides.
        in_order: Whether one message at a time is out, over all workers.
        imported_through: Messages up to this sequence were imported; see ``JetStreamLog``.

    Attributes:
        began: Set when messages can arrive for the first time.
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
        self._most_out = 1 if in_order else MAX_PENDING
        self._imported_through = imported_through
        self._lost_at = 0
        self._gap_ends: tuple[int, ...] = ()
        self._behind = 0
        self._seen = (-1, -1)
        self._room = 0
        self._asked = 0
        self._heard = 0.0
        self._generation = 0
        self._inbox = ""
        self._subscription: Subscription | None = None
        self._arrived: asyncio.Queue[Delivery] = asyncio.Queue()
        self._lost = asyncio.Event()
        self._clock = asyncio.get_running_loop().time

    async def run(self) -> None:
        """Pull until cancelled; messages that were delivered and not taken are then returned to the broker."""
        off = self._connection.on_reconnect(self._lost.set)
        self._lost.set()
        try:
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await self._lost.wait()
                except TimeoutError:
                    if await self._is_through_to_gap():
                        self._lost.set()
                    elif await self._is_silent():
                        _logger.warning("consumer_silent", consumer=self._name)
                    else:
                        continue
                self._lost.clear()
                if self._connection.connected:
                    await self._begin()
                    await asyncio.sleep(_RETRY_WAIT)
        finally:
            off()
            await self._drain()
            await self._end()
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
            # Without a pull request under way there is nothing to hear.
            if not self._asked or self._clock() - self._heard < SILENCE:
                return False
            # Who was stalled has not read what has come meanwhile.
            await asyncio.sleep(_RETRY_WAIT)
        return True

    async def next(self) -> Delivery:
        """Wait for the next message: about as many are asked for as calls wait."""
        self._room += 1
        try:
            await self._ask()
            return await self._arrived.get()
        finally:
            self._room -= 1

    def lost_at(self, seq: int, gap_ends: Sequence[int] = ()) -> None:
        """Note that the log last recorded a loss at a sequence (0: never), and where its gaps end, in order.

        A consumer from before is made anew, from the log's start: what it counts as done may be undone, and its
        position may be of messages that are gone.
        """
        if seq > self._lost_at:
            self._lost_at = seq
            self._gap_ends = tuple(gap_ends) if len(self._filters) > 1 else ()
            self._behind = 0
            self._lost.set()

    async def _is_through_to_gap(self) -> bool:
        """Whether all messages before the next gap are handled, so that the consumer has to start behind the gap.

        That holds if all before the gap's end is acknowledged, or if no message is open and none arrives.
        """
        gap_end = next((end for end in self._gap_ends if end > self._behind), None)
        if gap_end is None or not self._connection.connected:
            return False
        try:
            info = await self._info()
        except LogError as error:
            _logger.info("consumer_unknown", consumer=self._name, error=error.code)
            return False
        if info is None:
            return False
        seen, self._seen = self._seen, (info["delivered"]["consumer_seq"], info["delivered"]["stream_seq"])
        rests = info["num_waiting"] > 0 and seen == self._seen
        nothing_out = not info["num_ack_pending"] and (rests or info["delivered"]["stream_seq"] > gap_end)
        if not nothing_out and info["ack_floor"]["stream_seq"] <= gap_end:
            return False
        self._behind = gap_end
        return True

    async def _begin(self) -> None:
        try:
            await self._end()
            await self._ensure()
            await self._listen()
        except (LogError, NatsError, OSError) as wrong:
            _logger.info("consumer_retries", consumer=self._name, error=type(wrong).__name__, detail=str(wrong))
            self._lost.set()
            return
        self.began.set()
        await self._ask()

    async def _ensure(self) -> None:
        """Make the consumer, or find it."""
        config: dict[str, Any] = {
            "name": self._name,
            "durable_name": self._name,
            # A request that nobody has answered is owed an answer, however old; one that has been is only looked up.
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": int(self._ack_wait * _SECOND),
            "max_deliver": -1,
            "max_ack_pending": self._most_out,
            "replay_policy": "instant",
            "filter_subjects": self._filters,
        }
        if self._lost_at:
            config["metadata"] = {LOST_AT: str(self._lost_at)}
            await self._drop_from_before_loss()
            if self._behind:
                config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": self._behind + 1}
        await self._connection.api(
            f"CONSUMER.CREATE.{self._stream}.{self._name}", {"stream_name": self._stream, "config": config}
        )

    async def _drop_from_before_loss(self) -> None:
        """Drop the consumer that was made before the last loss, or begins before the gap that is done with."""
        found = await self._info()
        if found is None:
            return
        known = str((found["config"].get("metadata") or {}).get(LOST_AT, "0"))
        begins_behind = int(found["config"].get("opt_start_seq", 1)) - 1
        if known == str(self._lost_at) and begins_behind >= self._behind:
            self._behind = begins_behind  # another worker was further on
            return
        _logger.warning("consumer_made_anew", consumer=self._name, lost_at=self._lost_at, behind=self._behind)
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

        async def take(msg: Msg) -> None:
            if generation == self._generation:
                await self._take(msg)

        self._inbox = self._connection.new_inbox()
        self._subscription = await self._connection.nc.subscribe(self._inbox, cb=take)
        self._heard = self._clock()

    async def _end(self) -> None:
        """Unsubscribe: the server drops pull requests whose inbox has no subscriber."""
        self._generation += 1
        self._asked = 0
        subscription, self._subscription = self._subscription, None
        if subscription is not None and not self._connection.closed:
            try:
                await subscription.unsubscribe()
            except NatsError as wrong:
                _logger.debug("unsubscribe", error=type(wrong).__name__)

    async def _ask(self) -> None:
        missing = self._room - self._asked - self._arrived.qsize()
        if missing < max(1, self._room // _ASKED_AT_LEAST) or self._subscription is None:
            return
        if not self._asked:
            self._heard = self._clock()
        await self._ask_for(missing)

    async def _ask_for(self, messages: int) -> None:
        self._asked += messages
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
        try:
            await self._connection.publish(subject, pull_request(messages), reply=self._inbox)
        except LogError:
            self._lost.set()

    async def _hand_back_arrived(self) -> None:
        while not self._arrived.empty():
            await self._arrived.get_nowait().nak()

    async def _take(self, msg: Msg) -> None:
        self._heard = self._clock()
        found = delivery(msg.reply)
        if found is None:
            await self._status(msg.headers or {})
            return
        attempt, sequence, _, time_ns, behind = found
        self._asked = max(0, self._asked - 1)
        stored = as_recorded(sequence, time_ns, msg.subject, msg.headers or {}, msg.data, self._imported_through)
        self._arrived.put_nowait(Delivery(self._connection, stored, attempt, msg.reply, behind=behind))

    async def _status(self, headers: dict[str, str]) -> None:
        if headers.get("Status") == "100":
            return
        left = undelivered_count(headers, self._asked)
        if left is None:
            self._lost.set()
            return
        self._asked = max(0, self._asked - left)
        await self._ask()
