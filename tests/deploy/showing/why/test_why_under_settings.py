"""What ``why`` tells of a decision rests on the settings under which it was made, not on those of today."""

from pathlib import Path

from click.testing import CliRunner

from deploy.cli import main
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS
from tests.events.whatif.asking import live

TALK = [("warm", "What is a lease?")] * 2


def test_a_decision_under_other_thresholds_is_explained_by_those(tmp_path: Path) -> None:
    told = {}
    for thresholds in ({}, {"cold": 0.1, "very_cold": 0.1}):
        ledger = tmp_path / f"{len(thresholds)}.db"
        write(ledger, live(TALK, {"router": {"thresholds": thresholds}}).log, partitions=PARTITIONS)
        told[bool(thresholds)] = CliRunner().invoke(main, ["why", "last", "--log", str(ledger)]).stdout
    for other, text in told.items():
        assert "signals: context_warmth 0.155" in text, "the default thresholds call this cold"
        assert ("clarify.cold_boost" in text) is not other
        assert "do not add up" not in text
