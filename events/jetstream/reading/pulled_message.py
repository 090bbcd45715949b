"""A message that a durable consumer has delivered, and its acknowledgements to the broker."""

from events.errors import LogError
from events.jetstream.connection import Connection
from events.log import Stored
from events.loggers import get_logger

_NS_PER_S = 1_000_000_000
_logger = get_logger("neuraxis.durable")


class PulledMessage:
    """A message of the log, which this worker has until it acknowledges or returns it (nak).

    Attributes:
        stored: The message.
        attempt: How many times it was delivered, this time included.
        behind: How many messages the consumer has not delivered yet.
    """

    def __init__(self, connection: Connection, stored: Stored, attempt: int, reply: str, *, behind: int = 0) -> None:
        self.stored = stored
        self.attempt = attempt
        self.behind = behind
        self._connection = connection
        self._reply = reply

    async def acknowledge(self) -> None:
        """Acknowledge it as handled; if the acknowledgement is lost, the message is delivered again."""
        await self._say(b"+ACK")

    async def in_progress(self) -> None:
        """Tell the broker that it is being worked on: the wait for its acknowledgement starts again."""
        await self._say(b"+WPI")

    async def nak(self, after: float = 0.0) -> None:
        """Have it delivered again, to any worker, ``after`` seconds from now."""
        await self._say(b'-NAK {"delay": %d}' % int(after * _NS_PER_S) if after else b"-NAK")

    def renew(self, again: "PulledMessage") -> None:
        """Use the acknowledgement subject of a later delivery of the same message."""
        self.attempt, self._reply = again.attempt, again._reply

    async def _say(self, what: bytes) -> None:
        try:
            await self._connection.publish(self._reply, what)
        except LogError as error:
            _logger.info("ack_missed", seq=self.stored.seq, said=what.decode(), error=error.code)
