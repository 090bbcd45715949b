"""Public prompts through the whole set. They are no part of the project: tests look for them beside it."""

import itertools
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.live import Live

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def corpus() -> Path | None:
    """Return the folder of corpora: ``NEURAXIS_CORPORA``, or ``shared/corpora`` beside the checkout."""
    named = os.environ.get("NEURAXIS_CORPORA")
    folder = Path(named) if named else ROOT.parent / "shared" / "corpora"
    return folder if (folder / "prompts.jsonl").is_file() else None


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of corpora; skips where there is none."""
    found = corpus()
    if found is None:
        pytest.skip("no corpora: set NEURAXIS_CORPORA to a folder that holds prompts.jsonl")
    return found


def every(path: Path, step: int, most: int) -> list[str]:
    """Return lines spread over a file."""
    with path.open(encoding="utf-8") as file:
        return list(itertools.islice(itertools.islice(file, 0, None, step), most))


@pytest.mark.parametrize("lines", [75, pytest.param(300, marks=pytest.mark.faults)])
def test_prompts_of_every_kind_get_one_end_each_and_replay_the_same(lines: int, folder: Path, tmp_path: Path) -> None:
    running = Live(tmp_path)
    try:
        prompts = every(folder / "prompts.jsonl", 7_500 // lines, lines)
        talks = every(folder / "conversations.jsonl", 6_000 // lines, lines)
        (tmp_path / "prompts.jsonl").write_text("".join(prompts))
        (tmp_path / "talks.jsonl").write_text("".join(talks))
        # What the corpora say of their lines is no part of the inputs.
        unread = [f"--ignore={field}" for field in ("label", "category", "source", "licence", "weak_tag")]
        outcomes = running.rows("feed", "prompts.jsonl", "--session-per-line", *unread)
        turns = running.rows("feed", "talks.jsonl", *unread)
        assert Counter(row["id"] for row in outcomes) == Counter(json.loads(line)["id"] for line in prompts)
        spoken = {
            json.loads(line)["id"]: sum(turn["role"] == "user" for turn in json.loads(line)["turns"]) for line in talks
        }
        assert Counter(row["id"] for row in turns) == Counter(spoken)
        assert {row["action"] for row in turns} <= {"BLOCKED", "EXECUTED", "REJECTED", "WITHHELD"}
        ends = {row["action"] for row in outcomes}
        assert {"BLOCKED", "EXECUTED", "REJECTED"} <= ends <= {"BLOCKED", "EXECUTED", "REJECTED", "WITHHELD"}

        (first,) = running.rows("replay", "--verify", "--json")
        assert first["clean"] is True
        # An agent that was talked to is not done: timers of drift and alerts go on adding to the log.
        there = ("--to", str(first["last_seq"]))
        (second,) = running.rows("replay", "--json", *there)
        assert first["overall"] == second["overall"]
        counts = running.rows("log", "info", "--json")[0]["topics"]
        assert counts["forged_id.input.received"] == counts["forged_id.response.emitted"] == len(outcomes) + len(turns)
        (verified,) = running.rows("log", "verify", "--json")
        assert verified["ok"] is True
    finally:
        running.stop()
    (offline,) = running.rows("replay", "--json", *there, "--log", str(running.ledger))
    assert offline["overall"] == first["overall"]
