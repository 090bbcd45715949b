"""One way to run a test's body on either adapter of the log, and the builders those tests share."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from events.errors import Unavailable, UnknownOutcome
from events.jetstream.log import JetStreamLog
from events.log import Append, Fence, Log, Record, Stored, Tail
from tests.broker import Broker
from tests.simulated import SimulatedConnection, SimulatedLog, SimulatedStream
from tests.simulation.loop import VirtualLoop, run_virtual


@dataclass(frozen=True)
class Setting:
    """A log, and the power switch of the broker behind it."""

    log: Log
    kill_broker: Callable[[], None]
    start_broker: Callable[[], None]


_numbers = itertools.count()

Body = Callable[[Setting], Awaitable[None]]
RunOnLog = Callable[[Body], None]


def run_simulated(body: Body) -> None:
    """Run a body on a simulated log without faults, in virtual time."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        stream = SimulatedStream(clock=loop.time_ns)
        await body(Setting(SimulatedLog(SimulatedConnection(stream)), stream.stop, stream.start))

    run_virtual(main(), seed=0)


def run_on_jetstream(broker: Broker, body: Body) -> None:
    """Run a body on a fresh stream of a real broker; the stream is dropped afterwards."""

    async def main() -> None:
        # A name of its own: nats-server may find messages of a stream that was just dropped in one made again under
        # its name, since it removes the files behind its back.
        log = await JetStreamLog.connect(broker.url, stream=f"RUN{next(_numbers)}")
        try:
            async with asyncio.timeout(60):
                await body(Setting(log, broker.kill, broker.start))
        finally:
            await log.connection.api(f"STREAM.DELETE.{log.stream}")
            await log.close()

    asyncio.run(main())


def record(subject: str = "log.00.00.reflex.passed", data: bytes = b"{}", **headers: str) -> Record:
    """Build a record; ``id`` among the headers is its message id."""
    if "id" in headers:
        headers["Nats-Msg-Id"] = headers.pop("id")
    return Record(subject, headers, data)


def fenced(filter: str, last: int, *records: Record) -> Append:
    """Build an append behind a fence."""
    return Append(records, Fence(filter, last))


def plain(*records: Record) -> Append:
    """Build an append without a fence."""
    return Append(records)


async def collect(log: Log, after: int = 0, upto: int = 1_000_000, filters: Sequence[str] = ("log.>",)) -> list[Stored]:
    """Return what a history holds."""
    # Up to its end: a broker counts an unreadable message among those to come, and would be waited for.
    upto = min(upto, (await log.info()).last_seq)
    return [stored async for batch in log.history(filters, after, upto) for stored in batch]


async def bodies(log: Log) -> list[bytes]:
    """Return the data of all that is stored, in order."""
    return [stored.data for stored in await collect(log)]


async def read(tail: Tail, count: int) -> list[Stored]:
    """Read exactly ``count`` messages; more is an error."""
    seen: list[Stored] = []
    async with asyncio.timeout(30):
        while len(seen) < count:
            seen.extend(await tail.next())
    assert len(seen) == count
    return seen


async def back(setting: Setting) -> None:
    """Wait until the broker serves again."""
    async with asyncio.timeout(30):
        while True:
            try:
                await setting.log.info()
            except (Unavailable, UnknownOutcome):
                await asyncio.sleep(0.02)
            else:
                return
