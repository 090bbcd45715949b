"""A ledger whose stream was repartitioned goes on, and tells the counts of before."""

import asyncio
from pathlib import Path

import pytest

from deploy.copying.export import export_bundle
from events.bundles import read_events, read_manifest
from events.errors import LedgerDamaged, Misconfigured
from events.ledger import LedgerReader, LedgerWriter, verify
from events.ledger.schema import connect_for_writing
from events.replay.sources import LedgerSource
from schemas.subjects import FormerCounts, Partitions
from tests.events.ledger.messages import INPUT, stored

BEFORE = Partitions(4, 16)
AFTER = Partitions(8, 32, (FormerCounts(1, 4, 16),))


def written(path: Path, partitions: Partitions, first: int, last: int) -> None:
    async def write() -> None:
        async with await LedgerWriter.open(path, "NEURAXIS", partitions) as writer:
            await writer.append([stored(seq, INPUT) for seq in range(first, last + 1)])

    asyncio.run(write())


def test_it_goes_on_in_one_chain_and_does_not_go_back(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    written(ledger, BEFORE, 1, 1)
    written(ledger, AFTER, 2, 3)
    assert verify(ledger).ok
    with LedgerReader(ledger) as reader:
        assert reader.partitions == AFTER
        assert reader.info().rows == 3
    with pytest.raises(Misconfigured, match="not NEURAXIS with 4 and 16"):
        written(ledger, BEFORE, 4, 4)


def test_a_bundle_of_it_tells_them_too(tmp_path: Path) -> None:
    ledger, bundle = tmp_path / "ledger.db", tmp_path / "case.nxb"
    written(ledger, AFTER, 1, 3)
    asyncio.run(export_bundle(LedgerSource(ledger), bundle))
    assert read_manifest(bundle).partitions == AFTER
    assert sum(len(batch) for batch in read_events(bundle)) == 3


def test_counts_that_cannot_be_are_damage(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    written(ledger, AFTER, 1, 1)
    for wrong in ("nonsense", "5:3:16", "1:4"):
        connection = connect_for_writing(ledger)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'former'", (wrong,))
        connection.close()
        with pytest.raises(LedgerDamaged, match="meta table"), LedgerReader(ledger):
            pass
