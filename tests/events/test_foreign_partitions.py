"""Inputs in partitions that the log does not have, under any token: whoever folds all partitions gets past them."""

import asyncio
from pathlib import Path

import msgspec

from actors.registry import ACTORS
from events.log import Stored
from events.replay.run_replay import END, Point
from events.replay.sources import LedgerSource
from events.replay.states.diffing import changed_between
from tests.each import each
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS
from tests.events.whatif.asking import live, whatif

TALK = [("noon", "Hello!"), ("noon", "Thanks!")]
TOKENS = ["xx", "-", "1-", "1-xx", "99", "7-03", "9" * 30, "__"]


def with_stray(token: str) -> list[Stored]:
    """Return a log whose last message is an input in such a partition."""
    log = live(TALK).log
    first = next(stored for stored in log if stored.subject.endswith("input.received"))
    headers = first.headers | {"ce-id": "stray", "ce-exchange": "exchange-9"}
    last = msgspec.structs.replace(
        log[-1], seq=len(log) + 1, subject=f"log.{token}.{token}.input.received", headers=headers, data=first.data
    )
    return [*log, last]


@each("token", TOKENS)
def test_what_if_leaves_it_open_and_changes_nothing(token: str) -> None:
    report = whatif(with_stray(token))
    assert (report.changed, report.open, report.compared) == (0, 1, len(TALK))


@each("token", TOKENS)
def test_states_are_compared_all_the_same(token: str, tmp_path: Path) -> None:
    path = tmp_path / f"{TOKENS.index(token)}.db"
    write(path, with_stray(token), partitions=PARTITIONS)
    source = LedgerSource(path)
    try:
        points = (Point(seq=len(ACTORS)), END)
        assert asyncio.run(changed_between(source, tuple(ACTORS.values()), None, points, lambda _: None))
    finally:
        source.close()
