"""A cluster's server that was stopped and comes back lags: what is read from its copy lacks nothing for that.

Readings that a lagging copy serves do not end early, and a server that believes that it leads still does not make
stored messages count as lost.
"""

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from deploy.processes.broker.users import workers_of_actors
from events.errors import LogError
from events.jetstream import JetStreamLog
from events.jetstream.reading.stream_reader import StreamReader
from events.losses import LOSS_FILTER, gaps_between
from schemas.subjects import EVERYTHING
from tests.cluster import Deployed, deployed
from tests.events.sealing.records import said
from tests.events.setting import plain, read
from tests.faults.test_cluster import Appending, leader_of

READERS = 10
"""Readings that begin while a server is stopped: each is served by a server that the cluster chooses at random."""

FAR_BACK = "log.00.02.input.received", "log.00.02.clock.fired"
"""Subjects of a partition in which hardly anything happens."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("cluster"), nodes=3, workers=workers_of_actors()) as running:
        yield running


async def connected(cluster: Deployed, index: int) -> JetStreamLog:
    """Connect to one server of the cluster."""
    access = cluster.access("gateway")
    return await JetStreamLog.connect(
        msgspec.structs.replace(access, servers=access.servers.split(",")[index]), create=False
    )


async def stored(log: JetStreamLog, first: int, count: int) -> int:
    """Append that many events at once; return the sequence of the last."""
    texts = [f"number {number}" for number in range(first, first + count)]
    events = [plain(said(text, session="s", id=text.replace(" ", "-"))) for text in texts]
    return max(await asyncio.gather(*(log.append([event]) for event in events)))


async def sequences(log: JetStreamLog, filters: list[str], after: int, upto: int) -> list[int]:
    return [each.seq async for batch in log.history(filters, after, upto) for each in batch]


@pytest.mark.parametrize("rounds", [6, pytest.param(60, marks=pytest.mark.faults)])
def test_a_closed_reading_lacks_nothing_that_a_lagging_copy_lacks(cluster: Deployed, rounds: int) -> None:
    async def run() -> None:
        for number in range(rounds):
            leader = cluster.servers.index(await leader_of(cluster))
            victim = cluster.servers[(leader + 1 + number % 2) % 3]
            log = await connected(cluster, leader)
            end = (await log.info()).last_seq
            victim.pause()
            upto = await stored(log, end, 150)
            reading = [asyncio.create_task(sequences(log, [EVERYTHING], 0, upto)) for _ in range(READERS)]
            ends = [asyncio.create_task(sequences(log, [EVERYTHING], upto - 1, upto)) for _ in range(READERS)]
            gaps = [asyncio.create_task(gaps_between(log, end, upto)) for _ in range(READERS)]
            await asyncio.sleep(0.3)
            victim.resume()
            for found in await asyncio.gather(*reading):
                assert found == list(range(1, upto + 1)), (number, len(found), upto)
            assert await asyncio.gather(*ends) == [[upto]] * READERS
            assert await asyncio.gather(*gaps) == [[]] * READERS
            await log.close()
            await asyncio.to_thread(cluster.wait_ready)

    asyncio.run(run())


def test_a_closed_reading_whose_last_match_lies_far_back_needs_one_consumer(
    cluster: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's partitions mostly read such ranges: with a consumer made again and again, its start took minutes."""
    made: list[str] = []
    create = StreamReader._create

    async def counted(reader: StreamReader) -> int:
        made.append(reader._name)
        return await create(reader)

    monkeypatch.setattr(StreamReader, "_create", counted)

    async def run() -> None:
        log = await connected(cluster, cluster.servers.index(await leader_of(cluster)))
        one = msgspec.structs.replace(said("the one", session="far-back", id="far-back"), subject=FAR_BACK[0])
        first = await log.append([plain(one)])
        upto = await stored(log, 10_000, 50)
        made.clear()
        assert await sequences(log, list(FAR_BACK), first - 1, upto) == [first]
        assert len(made) == 1
        await log.close()

    asyncio.run(run())


def test_a_closed_reading_that_matches_nothing_ends_once_its_whole_range_is_searched(cluster: Deployed) -> None:
    async def run() -> None:
        leader = cluster.servers.index(await leader_of(cluster))
        log = await connected(cluster, leader)
        upto = await stored(log, 1_000_000, 5)
        async with asyncio.timeout(20):
            for _ in range(20):
                assert await sequences(log, [LOSS_FILTER], 0, upto) == []
            # Nor is a range waited for that the log does not reach.
            assert (await sequences(log, [EVERYTHING], 0, upto + 7))[-1] == upto
        await log.close()

    asyncio.run(run())


def test_an_endless_reading_repeats_nothing_when_a_lagging_copy_takes_it_over(cluster: Deployed) -> None:
    async def run() -> None:
        for number in range(6):
            leader = cluster.servers.index(await leader_of(cluster))
            victim = cluster.servers[(leader + 1 + number % 2) % 3]
            log = await connected(cluster, leader)
            end = (await log.info()).last_seq
            victim.pause()
            upto = await stored(log, 2_000_000 + end, 150)
            beginning = [asyncio.create_task(log.tail([EVERYTHING], upto)) for _ in range(READERS)]
            await asyncio.sleep(0.3)
            victim.resume()
            tails = await asyncio.gather(*beginning)
            last = await stored(log, 2_000_000 + upto, 20)
            for tail in tails:
                got = [each.seq for each in await read(tail, last - upto)]
                assert got == list(range(upto + 1, last + 1))
                await tail.close()
            await log.close()
            await asyncio.to_thread(cluster.wait_ready)

    asyncio.run(run())


@pytest.mark.parametrize("rounds", [1, pytest.param(8, marks=pytest.mark.faults)])
def test_no_stored_message_counts_as_absent_at_a_server_that_believes_it_leads(cluster: Deployed, rounds: int) -> None:
    async def run() -> None:
        for number in range(rounds):
            former = await leader_of(cluster)
            at = cluster.servers.index(former)
            old, new = await connected(cluster, at), await connected(cluster, (at + 1) % 3)
            appending = Appending(new, named=f"round {rounds} {number}")
            former.pause()
            await appending.until_acknowledged()
            seq = appending.acknowledged[-1]
            asking = [asyncio.create_task(is_there(old, seq)) for _ in range(20)]
            await asyncio.sleep(0.5)
            former.resume()
            found = await asyncio.gather(*asking)
            found += [await is_there(old, seq) for _ in range(10)]
            assert False not in found, found
            await old.close()
            await new.close()
            await asyncio.to_thread(cluster.wait_ready)

    asyncio.run(run())


async def is_there(log: JetStreamLog, seq: int) -> bool | None:
    """Whether a message is there; None where nobody says."""
    try:
        return await log.at(seq) is not None
    except LogError:
        return None
