"""The entries of a state that are kept under a key are found without looking again through parts that hold none."""

import asyncio
from pathlib import Path

from actors.registry import ACTORS
from events.decoding import Recorded, decode
from events.partition_fold import Processed, View
from events.replay.replay import Replay
from events.replay.run_replay import run_replay
from events.replay.sources import LedgerSource
from events.replay.states.partition_state import ContainsKey, entries_under
from tests.each import each

RECORDED = Path(__file__).parents[2] / "fixtures" / "0.1.0.nxb"


def recorded_sessions() -> list[str]:
    source = LedgerSource(RECORDED)
    try:
        return sorted({one.envelope.session for one in _deliveries(source)} - {""})
    finally:
        source.close()


def _deliveries(source: LedgerSource) -> list[Recorded]:
    async def read() -> list[Recorded]:
        found = [decode(stored) async for batch in source.history(["log.>"], 0, 1_000) for stored in batch]
        return [one for one in found if isinstance(one, Recorded)]

    return asyncio.run(read())


@each("actor", ["breaker", "memory", "responder", "router", "self_review"])
def test_the_same_entries_are_found_in_every_state(actor: str):
    key = recorded_sessions()[0]
    may_contain, found, states = ContainsKey(key), 0, 0

    def look(processed: Processed) -> None:
        nonlocal found, states
        expected = list(entries_under(processed.before, key))
        assert list(entries_under(processed.before, key, may_contain=may_contain)) == expected
        found, states = found + len(expected), states + 1

    def watch(view: View) -> None:
        view.on_processed = look

    source = LedgerSource(RECORDED)
    try:
        replay = Replay([ACTORS[actor]], source.partitions)
        replay.on_view = watch
        asyncio.run(run_replay(source, replay, progress=lambda _: None))
    finally:
        source.close()
    assert states > 20
    if actor in ("breaker", "router"):
        assert found
