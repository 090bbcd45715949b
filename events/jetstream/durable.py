"""Work shared by competing consumers: a durable pull consumer whose every message is acknowledged by whoever did it.

Raw pull requests with idle heartbeats, as in ``reading``: nats-py's own pull subscriptions stay silent after a restart
of the broker. On silence, on a status out of the ordinary and on every reconnection the consumer is looked for again
(and made, should the broker have lost it) and pulled from anew.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from events.errors import LogError
from events.jetstream.connection import Connection
from events.jetstream.imported import as_recorded
from events.jetstream.pulling import HEARTBEAT, SILENCE, delivery, pull_request, unserved
from events.log import Stored

ACK_WAIT = 10.0
"""Seconds without a sign of life of whoever has a message, after which it is delivered again."""

MAX_PENDING = 10_000
"""Messages delivered and not acknowledged, over all workers, from which on no more are delivered."""

_SECOND = 1_000_000_000
_RETRY_WAIT = 0.1
_logger = structlog.get_logger("neuraxis.durable")


class Delivery:
    """A message of the log, delivered to this worker until it is acknowledged or handed back.

    Attributes:
        stored: The message.
        attempt: How many times it was delivered, this time included.
    """

    def __init__(self, connection: Connection, stored: Stored, attempt: int, reply: str) -> None:
        self.stored = stored
        self.attempt = attempt
        self._connection = connection
        self._reply = reply

    async def acknowledge(self) -> None:
        """Say that it is done with; should this get lost, the message comes again."""
        await self._say(b"+ACK")

    async def keep(self) -> None:
        """Say that it is being worked on, which makes the wait for its acknowledgement start again."""
        await self._say(b"+WPI")

    async def hand_back(self, after: float = 0.0) -> None:
        """Have it delivered again, to whichever worker asks first, ``after`` seconds from now."""
        await self._say(b'-NAK {"delay": %d}' % int(after * _SECOND) if after else b"-NAK")

    def renew(self, again: "Delivery") -> None:
        """Take over the acknowledgement of a later delivery of the same message."""
        self.attempt, self._reply = again.attempt, again._reply

    async def _say(self, what: bytes) -> None:
        try:
            await self._connection.publish(self._reply, what)
        except LogError as error:
            _logger.info("ack_missed", seq=self.stored.seq, said=what.decode(), error=error.code)


class DurablePull:
    """Pulls from a durable consumer that workers share, as many messages as it is told there is room for.

    Args:
        connection: Where the broker is.
        stream: The stream.
        name: Name of the consumer, the same for all who share it.
        filters: The subjects it delivers, one filter at least; no two may overlap.
        ack_wait: See :data:`ACK_WAIT`; the latest to start decides.
        began: Set when messages can arrive for the first time.
        begins: Called before any can arrive, with how many are out, delivered and not acknowledged, with others.
        imported_through: Messages up to this sequence were imported; see ``JetStreamLog``.
    """

    def __init__(
        self,
        connection: Connection,
        stream: str,
        name: str,
        filters: Sequence[str],
        *,
        ack_wait: float = ACK_WAIT,
        began: asyncio.Event | None = None,
        begins: Callable[[int], None] | None = None,
        imported_through: int = 0,
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._name = name
        self._filters = tuple(filters)
        self._ack_wait = ack_wait
        self._began = began or asyncio.Event()
        self._begins = begins
        self._imported_through = imported_through
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
        """Pull until cancelled; what was delivered and not taken is then handed back."""
        off = self._connection.on_reconnect(self._lost.set)
        self._lost.set()
        try:
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await self._lost.wait()
                except TimeoutError:
                    # Without a pull request under way there is nothing to hear.
                    if not self._asked or self._clock() - self._heard < SILENCE:
                        continue
                    _logger.warning("consumer_silent", consumer=self._name)
                self._lost.clear()
                if self._connection.connected:
                    await self._begin()
                    await asyncio.sleep(_RETRY_WAIT)
        finally:
            off()
            await self._end()
            while not self._arrived.empty():
                await self._arrived.get_nowait().hand_back()

    async def next(self) -> Delivery:
        """Wait for the next message: as many are asked for as calls wait."""
        self._room += 1
        try:
            await self._ask()
            return await self._arrived.get()
        finally:
            self._room -= 1

    async def _begin(self) -> None:
        try:
            await self._end()
            out = await self._ensure()
            if self._begins is not None and not self._began.is_set():
                self._begins(out)
            await self._listen()
        except (LogError, NatsError, OSError) as wrong:
            _logger.info("consumer_retries", consumer=self._name, error=type(wrong).__name__, detail=str(wrong))
            self._lost.set()
            return
        self._began.set()
        await self._ask()

    async def _ensure(self) -> int:
        """Make the consumer, or find it; return how many messages are delivered and not acknowledged."""
        config: dict[str, Any] = {
            "name": self._name,
            "durable_name": self._name,
            # A request that nobody has answered is owed an answer, however old; one that has been is only looked up.
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": int(self._ack_wait * _SECOND),
            "max_deliver": -1,
            "max_ack_pending": MAX_PENDING,
            "replay_policy": "instant",
            "filter_subjects": self._filters,
        }
        info = await self._connection.api(
            f"CONSUMER.CREATE.{self._stream}.{self._name}", {"stream_name": self._stream, "config": config}
        )
        return int(info.get("num_ack_pending", 0))

    async def _listen(self) -> None:
        generation = self._generation

        async def take(msg: Msg) -> None:
            if generation == self._generation:
                await self._take(msg)

        self._inbox = self._connection.new_inbox()
        self._subscription = await self._connection.nc.subscribe(self._inbox, cb=take)
        self._heard = self._clock()

    async def _end(self) -> None:
        """Listen no more: the server forgets pull requests whose inbox nobody listens to."""
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
        if missing <= 0 or self._subscription is None:
            return
        if not self._asked:
            self._heard = self._clock()
        self._asked += missing
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
        try:
            await self._connection.publish(subject, pull_request(missing), reply=self._inbox)
        except LogError:
            self._lost.set()

    async def _take(self, msg: Msg) -> None:
        self._heard = self._clock()
        found = delivery(msg.reply)
        if found is None:
            await self._status(msg.headers or {})
            return
        attempt, sequence, _, time_ns = found
        self._asked = max(0, self._asked - 1)
        stored = as_recorded(sequence, time_ns, msg.subject, msg.headers or {}, msg.data, self._imported_through)
        self._arrived.put_nowait(Delivery(self._connection, stored, attempt, msg.reply))

    async def _status(self, headers: dict[str, str]) -> None:
        if headers.get("Status") == "100":
            return
        left = unserved(headers, self._asked)
        if left is None:
            self._lost.set()
            return
        self._asked = max(0, self._asked - left)
        await self._ask()
