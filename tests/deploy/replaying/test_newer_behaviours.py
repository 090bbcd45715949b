"""What a newer release decided under a behaviour of its own: every command that shows states of it says so."""

from dataclasses import replace
from pathlib import Path

import pytest

from actors.registry import ACTORS
from schemas.vocabulary.gateway import InputReceived
from tests.actors.scenario import Address
from tests.deploy.replaying.test_log_copies import neuraxis
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS
from tests.events.replay.test_behaviours import upgrade
from tests.events.whatif.asking import live


@pytest.mark.parametrize(
    "command",
    [
        ("replay",),
        ("replay", "--jobs", "2"),
        ("replay", "--verify"),
        ("state", "reflex", "noon"),
        ("diff", "reflex", "noon", "--at", "1", "--at", "{end}"),
    ],
)
def test_states_that_a_newer_release_decided_otherwise_are_told(command: tuple[str, ...], tmp_path: Path) -> None:
    recording = live([("noon", "Hello!")])
    before = len(recording.log)
    upgrade(recording, replace(ACTORS["reflex"], behaviour=2))
    recording.send(InputReceived(text="Thanks!"), Address("ann", "noon", "exchange-1"))
    recording.settle()
    write(tmp_path / "ledger.db", recording.log, partitions=PARTITIONS)
    told = neuraxis(*(part.format(end=len(recording.log)) for part in command), "--log", tmp_path / "ledger.db")
    said = " ".join(told.stderr.split())
    assert "the states of reflex may differ: from sequence" in said, told.output
    assert f"from sequence {before + 1}" in said or "noon" in command, said
