"""A lost tail: what a power cut does to a store that was not flushed, made by cutting the files of a stopped broker."""

import asyncio
from pathlib import Path

import pytest

from actors.registry import ACTORS
from events.ledger import Check, compare
from tests.faults.rig import Load, RunningSet, at_rest, running_set
from tests.judging import broken_promises


async def _load_for(running: RunningSet, seconds: float) -> list[str]:
    load, stop = Load(rate=60), asyncio.Event()
    async with running.log() as log:
        loading = asyncio.create_task(load.run(log, stop))
        await asyncio.sleep(seconds)
        stop.set()
        await loading
        await at_rest(log)
    return load.accepted


def _cut_tail(folder: Path, size: int) -> None:
    """Cut the last bytes off the stream's newest block, and drop the index that would vouch for them."""
    messages = next(folder.glob("data/broker/store/jetstream/*/streams/NEURAXIS/msgs"))
    block = max(messages.glob("*.blk"), key=lambda path: int(path.stem))
    with block.open("r+b") as file:
        file.truncate(block.stat().st_size - size)
    (messages / "index.db").unlink(missing_ok=True)


def test_a_log_that_lost_its_tail_says_so_and_goes_on_from_what_is_left(tmp_path: Path) -> None:
    """The ledger notices and refuses; once it is set aside, snapshots ahead of the log are passed over."""
    with running_set(tmp_path, processes=1) as running:
        asyncio.run(_load_for(running, 1.5))
        ledger = running.data.ledger
    _cut_tail(tmp_path, 60_000)

    with pytest.raises(AssertionError, match="lost its tail; move the file aside"), running_set(tmp_path, processes=1):
        pass
    aside = ledger.rename(ledger.with_name("before-the-cut.db"))

    async def go_on(running: RunningSet) -> None:
        after = await _load_for(running, 1.0)
        assert after
        async with running.log() as log:
            messages = await at_rest(log)
            assert broken_promises(tuple(ACTORS.values()), messages, after, log.partitions) == []
            comparison = await compare(aside, log.as_stored())
        assert not comparison.ok
        assert {finding.check for finding in comparison.findings} & {Check.MISSING_IN_STREAM, Check.DIFFERS}

    with running_set(tmp_path, processes=1) as running:
        asyncio.run(go_on(running))
