"""The log's simulated adapter: appends behind fences, and reading."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from events.errors import Refused, Unavailable, UnknownOutcome
from events.log import Append, LogInfo, Stored
from schemas.subjects import Partitions
from tests.simulated.connection import SimulatedConnection
from tests.simulated.store import checked_filters, checked_records

_END = 2**63


class SimulatedTail:
    """An ordered reading that outlives outages; implements ``events.log.Tail``."""

    cut_off_s = 0.0

    def __init__(self, connection: SimulatedConnection, filters: tuple[str, ...], after: int) -> None:
        self._connection = connection
        self._filters = filters
        self._after = after
        self._closed = False

    async def next(self) -> Sequence[Stored]:
        """Wait for the next messages, in stream order; never empty."""
        connection, stream = self._connection, self._connection.stream
        while True:
            if self._closed:
                raise Refused("the reading is closed")
            batch = stream.store.read(self._filters, self._after, _END, stream.page()) if stream.up else ()
            if batch:
                delay = stream.delivery_delay()
                if delay > 0.0:
                    await connection.sleep(delay)
                await connection.thaw()
                connection.crash_point()
                self._after = batch[-1].seq
                return batch
            connection.check_alive()
            await connection.wait(stream.sleep_until_more(self._filters, self._after))

    async def close(self) -> None:
        """Stop reading."""
        self._closed = True


class SimulatedLog:
    """A worker's view of the simulated log; implements ``events.log.Log``."""

    def __init__(self, connection: SimulatedConnection) -> None:
        self.connection = connection
        self._stream = connection.stream
        self._sending: set[asyncio.Future[int]] = set()

    @property
    def partitions(self) -> Partitions:
        """The partition counts fixed when the stream was made."""
        return self._stream.partitions

    @property
    def trimmed_through(self) -> int:
        """Nothing is removed here."""
        return 0

    def kill(self) -> None:
        """Kill the worker that holds this log; see ``SimulatedConnection.kill``."""
        self.connection.kill()

    async def append(self, appends: Sequence[Append]) -> int:
        """Store records behind fences; see ``events.log.Log.append``."""
        appends = tuple(appends)
        records = checked_records(appends)
        return await self.connection.request(lambda: self._stream.append(appends, records), UnknownOutcome)

    def append_now(self, append: Append, on_done: Callable[[int | BaseException], None]) -> bool:
        """Send an append of one record, with the crash points of :meth:`append`; see ``events.log.Log.append_now``."""
        sending = asyncio.ensure_future(self.append([append]))
        self._sending.add(sending)

        def on_sent(sent: asyncio.Future[int]) -> None:
            self._sending.discard(sent)
            if not sent.cancelled():
                on_done(sent.exception() or sent.result())

        sending.add_done_callback(on_sent)
        return True

    async def last(self, filter: str) -> int:
        """Return the sequence of the last message on subjects matching ``filter``, 0 when there is none."""
        return await self.connection.request(lambda: self._stream.store.last(filter), Unavailable)

    async def at(self, seq: int) -> Stored | None:
        """Return the message at a sequence, None when there is none."""
        return await self.connection.request(lambda: self._at(seq), Unavailable)

    def _at(self, seq: int) -> Stored | None:
        messages = self._stream.store.messages
        return messages[seq - 1] if 0 < seq <= len(messages) else None

    async def info(self) -> LogInfo:
        """Return the log's extent."""
        return await self.connection.request(self._extent, Unavailable)

    def _extent(self) -> LogInfo:
        store = self._stream.store
        last = len(store.messages)
        return LogInfo(self.partitions, min(last, 1), last, last, store.bytes)

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read a closed range; see ``events.log.Log.history``."""
        chosen = checked_filters(filters)
        position = after
        while position < upto:
            batch = await self._page(chosen, position, upto)
            if not batch:
                return
            yield batch
            position = batch[-1].seq

    async def _page(self, filters: tuple[str, ...], after: int, upto: int) -> Sequence[Stored]:
        store, limit = self._stream.store, self._stream.page()
        return await self.connection.request(lambda: store.read(filters, after, upto, limit), Unavailable)

    async def tail(self, filters: Sequence[str], after: int, *, on_demand: bool = False) -> SimulatedTail:
        """Start an endless reading; see ``events.log.Log.tail``."""
        chosen = checked_filters(filters)
        await self.connection.request(lambda: None, Unavailable)
        return SimulatedTail(self.connection, chosen, after)
