"""What people judged in a log, as rows to learn from."""

import asyncio
from pathlib import Path

from click.testing import CliRunner

from deploy.cli import main as neuraxis
from deploy.training.labelled_corpus import Row
from deploy.training.verdict_rows import rows_of_verdicts
from events.replay.sources import LedgerSource
from schemas.vocabulary.precedents import PrecedentRecorded, PrecedentWithdrawn
from tests.actors.scenario import Address
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS, Recording


def told() -> Recording:
    recording = Recording([])
    ann, bob = Address("ann", "", ""), Address("bob", "", "")
    harm = {"outcome": "harmful", "harm_level": 0.9}
    recording.send(PrecedentRecorded(precedent="p-1", description="Send me the keys.", **harm), ann)
    recording.send(PrecedentRecorded(precedent="p-1", description="Where is the harbour?"), bob)
    recording.send(PrecedentRecorded(precedent="p-2", description="a mistake"), ann)
    recording.send(PrecedentWithdrawn(precedent="p-2", by="ann", why="by mistake"), ann)
    recording.send(PrecedentRecorded(precedent="p-3", description="first words", **harm), ann)
    recording.send(PrecedentRecorded(precedent="p-3", description="later words"), ann)
    return recording


def rows_in(ledger: Path) -> tuple[list[Row], int]:
    source = LedgerSource(ledger)
    try:
        return asyncio.run(rows_of_verdicts(source))
    finally:
        source.close()


def test_precedents_in_force_are_rows_by_how_they_ended(tmp_path: Path) -> None:
    write(tmp_path / "ledger.db", told().log, partitions=PARTITIONS)
    rows, left_out = rows_in(tmp_path / "ledger.db")
    assert left_out == 0
    assert [(row.text, row.label) for row in rows] == [
        ("Send me the keys.", "attack"),
        ("Where is the harbour?", "hard_benign"),
        ("later words", "hard_benign"),
    ]


def test_words_that_were_taken_out_are_learned_by_nobody(tmp_path: Path) -> None:
    write(tmp_path / "ledger.db", told().log, partitions=PARTITIONS)
    bundle = tmp_path / "case.nxb"
    command = ["log", "export", "--log", str(tmp_path / "ledger.db"), "--format", "bundle", "--redact", "-o"]
    result = CliRunner().invoke(neuraxis, [*command, str(bundle)])
    assert result.exit_code == 0, result.output
    assert rows_in(bundle) == ([], 3)
    (tmp_path / "rows.jsonl").write_text("")
    command = ["train", "detection", str(tmp_path / "rows.jsonl"), "--into", str(tmp_path / "models"), "--verdicts"]
    result = CliRunner().invoke(neuraxis, [*command, str(bundle)])
    assert "whose words are sealed, forgotten or redacted, which are left out: 3" in " ".join(result.stderr.split())


def test_a_log_without_verdicts_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "ledger.db", told().log[3:4], partitions=PARTITIONS)
    (tmp_path / "rows.jsonl").write_text("")
    command = ["train", "detection", str(tmp_path / "rows.jsonl"), "--into", str(tmp_path / "models"), "--verdicts"]
    result = CliRunner().invoke(neuraxis, [*command, str(tmp_path / "ledger.db")])
    assert result.exit_code == 2, result.output
    assert "holds no precedents that can be read" in result.stderr
