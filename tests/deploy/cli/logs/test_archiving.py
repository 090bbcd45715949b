"""A ledger whose oldest rows are in archives is replayed, explained, verified, tested and copied as a whole one."""

import asyncio
import json
import shutil
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

import pytest

from events.bundles import read_manifest, unpack
from events.ledger import LedgerReader
from tests.deploy.cli.logs.test_nothing_there import in_a_folder, neuraxis

__all__ = ["in_a_folder"]

BUNDLE = Path(__file__).parents[3] / "fixtures" / "0.1.0.nxb"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """The recorded log as a ledger in a folder of its own."""
    (tmp_path / "whole").mkdir()
    path = tmp_path / "whole" / "ledger.db"
    asyncio.run(unpack(BUNDLE, path))
    return path


@pytest.fixture
def parted(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same log: two thirds of it are in two archives, in the two halves of their time."""
    (tmp_path / "parted").mkdir()
    path = tmp_path / "parted" / "ledger.db"
    shutil.copyfile(whole, path)
    with LedgerReader(path) as reader:
        last = reader.info().last_seq
        times = [reader.last_upto(last * part // 3).time_ns for part in (1, 2)]  # type: ignore[union-attr]
    for time_ns in times:
        # Ages, since the whole log is of one day; a second apart, which is the least that is told.
        monkeypatch.setattr("time.time", lambda time_ns=time_ns: time_ns / 1e9 + 10 * 86_400)
        done = neuraxis("log", "archive", "--older-than", "10", "--ledger", path, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["left"] < last
    monkeypatch.undo()
    return path


def shown(path: Path, *command: object) -> str:
    """Return what a command prints of a ledger."""
    with chdir(path.parent):
        ran = neuraxis(*command, "--log", "ledger.db")
    assert ran.exit_code == 0, (command, ran.output)
    return ran.stdout


def commands(path: Path) -> Sequence[Sequence[object]]:
    with LedgerReader(path) as reader:
        first, last = reader.exchange_ids("", 1)[0], reader.last_exchange()
    return (
        ("replay", "--verify", "--json"),
        ("why", first, "--json"),
        ("why", last, "--json"),
        ("log", "verify", "--json"),
        ("state", "breaker", "00", "--at", "200", "--json"),
        ("diff", "40", "200", "--json"),
        ("log", "tail", "--since", "1", "--count", "500", "--no-follow", "--json"),
        ("what-if", "--set", "router.base_scores.RESPOND=0.55", "--json"),
    )


def test_commands_read_archives_and_ledger_as_one(whole: Path, parted: Path) -> None:
    assert len(list(parted.parent.glob("*.db"))) == 3
    for command in commands(whole):
        assert _comparable(shown(parted, *command)) == _comparable(shown(whole, *command)), command


def _comparable(text: str) -> str:
    """Return a command's output without times of the day and how long it took."""
    lines = [json.loads(line) for line in text.splitlines()]
    return json.dumps(
        [
            {name: value for name, value in line.items() if name not in ("seconds", "rate", "path")}
            if isinstance(line, dict)
            else line
            for line in lines
        ]
    )


def test_a_log_is_tested_exported_and_backed_up_whole(
    parted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert neuraxis("log", "export", "--format", "bundle", "--log", parted, "-o", "all.nxb").exit_code == 0
    assert neuraxis("log", "test", "all.nxb").exit_code == 0
    assert read_manifest(Path("all.nxb")).events == read_manifest(BUNDLE).events
    assert neuraxis("backup", "kept", "--ledger", parted).exit_code == 0
    assert [each.name for each in Path("kept").glob("*.db")] == ["ledger.db"]
    assert neuraxis("log", "verify", "--log", "kept/ledger.db").exit_code == 0


def test_wrong_use_and_what_is_missing_are_told(parted: Path) -> None:
    for flags in ((), ("--before", "2026-01-01", "--older-than", "3"), ("--before", "soon")):
        assert neuraxis("log", "archive", *flags, "--ledger", parted).exit_code == 2
    for day in ("1999-12-31", "0001-01-01"):
        nothing = neuraxis("log", "archive", "--before", day, "--ledger", parted)
        assert (nothing.exit_code, "nothing was archived:" in nothing.stdout) == (0, True), "as `log trim` ends"
        assert "and no room of rows that were archived before" in " ".join(nothing.stdout.split())
    unjoined = neuraxis("log", "archive", "--before", "1999-12-31", "--join", "--ledger", parted)
    assert "nothing was archived or joined:" in unjoined.stdout
    for day in ("3026-01-01", "9999-12-31"):
        ahead = neuraxis("log", "archive", "--before", day, "--ledger", parted)
        assert (ahead.exit_code, f"--before {day} lies ahead" in ahead.stderr) == (2, True)
    first = min(parted.parent.glob("ledger-*.db"))
    alone = neuraxis("replay", "--log", first)
    assert (alone.exit_code, "is an archive of ledger.db: name that ledger" in alone.stderr) == (2, True)
    first.unlink()
    for command in (("replay",), ("log", "verify"), ("log", "tail", "--no-follow")):
        gone = neuraxis(*command, "--log", parted)
        assert gone.exit_code == 2, gone.output
        assert "is not there: put it back beside the ledger" in gone.stderr
