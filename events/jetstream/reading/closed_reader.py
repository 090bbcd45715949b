"""Reading a closed range of the stream: what matches up to a given last sequence. It ends once all of it has come.

Where nothing matches any more, only the consumer's server can say how far it has searched. On a single server the
messages that it counted at the start are all. In a cluster, a consumer reads the copy of the server that it is on,
which may lag behind the stream's leader: see :meth:`ClosedReader.has_searched`.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from events.errors import LogError, NotPermitted, Unavailable
from events.jetstream.reading.leader import confirmed_end
from events.jetstream.reading.stream_reader import StreamReader
from events.log import Stored
from events.loggers import get_logger

HISTORY_PULL = 256
"""Messages requested at a time of a closed range.

Several partitions of a process read their past at once, over the connection by which it appends. What they have asked
for arrives before an acknowledgement does. If they asked for much, a slow process would take the acknowledgement for
lost, fold the log again, and ask for more.
"""

CLOSED_SILENCE = 20.0
"""Seconds of silence, at most, after which the reader of a closed range makes a new consumer.

It waits ``pull_protocol.SILENCE`` at first, and twice as long each time. For each new consumer the server searches the
stream again. If it is too busy to begin within ``SILENCE``, many readers that made new ones at that rate would keep it
busy for ever.
"""

_CLOSED_HEARTBEAT = 0.1
"""Seconds between heartbeats of a closed reading in a cluster, which waits for one: only a heartbeat tells how far a
consumer has searched behind the last message that it delivered."""

_SEARCHED_WITHIN = 3 * _CLOSED_HEARTBEAT
"""Seconds within which a consumer's server reports that it has searched far enough, unless its copy lags."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 1.0  # seconds between two looks at a copy that lags
_INFO_DEADLINE = 1.0  # seconds; in a cluster a question about a new consumer may stay without an answer
_logger = get_logger("neuraxis.reading")


class ClosedReader(StreamReader):
    """An ordered reading after a sequence, up to a last one that its caller names."""

    async def start(self) -> int:
        """Make the consumer; return how many messages matched after the start at this moment."""
        return await self._begin()

    async def next_until(self, upto: int, deadline: float) -> Sequence[Stored]:
        """Like :meth:`next`, but empty once the server has reported that it searched all messages up to ``upto``.

        Raises:
            LogCut: as :meth:`next` does.
            Unavailable: ``deadline`` seconds without a message; or as :meth:`next` does.
        """
        try:
            async with asyncio.timeout(deadline):
                while not self._buffer and self._scanned < upto:
                    if self._log_cut is not None or self._connection.closed:
                        break
                    self._filled.clear()
                    await self._filled.wait()
                return await self.next() if self._buffer or self._scanned < upto else ()
        except TimeoutError:
            raise Unavailable(
                f"the broker at {self._connection.access.servers} has sent nothing of stream {self._stream} for "
                f"{deadline:g} s: look at it with `neuraxis doctor`"
            ) from None

    async def has_searched(self, upto: int, deadline: float) -> bool:
        """Return whether all up to ``upto`` is searched and received; False: more has arrived, or is on its way.

        To be asked once everything that the server counted at the start has arrived. On a single server that is all. In
        a cluster the consumer's server says how far it has searched. If that is not far enough, its copy of the stream
        lags: another consumer is made, which may be on another server.

        Raises:
            Unavailable: the consumers' servers lag for ``deadline`` seconds.
            LogError: the broker cannot be asked.
        """
        if not self._is_clustered:
            return True
        end, pause, started_at = upto, _FIRST_PAUSE, self._clock()
        asked, asked_at = 0, 0.0  # the generation that was asked last: a new consumer may not have begun to search
        while not self._buffer and self._scanned < end:
            if self._log_cut is not None or self._connection.closed:
                return False
            generation = self._generation
            delivered = await self._delivered() if generation == self._created else None
            if self._buffer:
                return False
            if delivered is not None and generation == self._generation:
                count, scanned = delivered
                if count >= self._next_consumer_seq:
                    return False
                if not self._restarts_behind_gap(scanned + 1):
                    self._scanned = max(self._scanned, scanned)
                    if scanned < end and asked == generation and self._clock() - asked_at > _SEARCHED_WITHIN:
                        self._renew.set()
                if asked != generation:
                    asked, asked_at = generation, self._clock()
            if self._scanned < end:
                self._filled.clear()  # set by a message, and by a heartbeat
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._filled.wait()
                pause = min(2 * pause, _LONGEST_PAUSE)
            lagging = self._clock() - started_at
            if lagging > deadline:
                raise Unavailable(
                    f"the servers that read stream {self._stream} have searched up to sequence {self._scanned}, not up "
                    f"to {end}, for {deadline:g} s: their copies lag; look at the cluster with `neuraxis doctor`"
                )
            if lagging > _LONGEST_PAUSE and end == upto:  # does the stream reach so far at all?
                end = min(upto, await confirmed_end(self._connection, self._stream, upto))
        return not self._buffer

    async def _delivered(self) -> tuple[int, int] | None:
        """Return how many messages the consumer delivered, and the sequence it has searched up to; None: unknown."""
        subject = f"CONSUMER.INFO.{self._stream}.{self._consumer}"
        try:
            info = await self._connection.api(subject, deadline=_INFO_DEADLINE)
        except NotPermitted:
            raise
        except LogError as wrong:
            _logger.debug("consumer_info", consumer=self._consumer, error=wrong.code)
            return None
        return int(info["delivered"]["consumer_seq"]), int(info["delivered"]["stream_seq"])

    @property
    def _heartbeat_s(self) -> float | None:
        return _CLOSED_HEARTBEAT if self._is_clustered else None

    def _is_known(self) -> bool:
        """Whether messages at or before the position may come and are passed over: only in a cluster."""
        return self._is_clustered

    def _silence_after(self, silence: float) -> float:
        return min(2 * silence, CLOSED_SILENCE)
