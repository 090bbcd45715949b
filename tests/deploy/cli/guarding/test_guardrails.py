"""``neuraxis guardrails show`` over a ledger file."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from deploy.cli.guarding.guardrails import guardrails
from schemas.catalogue import entry_of
from schemas.vocabulary.guardrails import GuardrailsOverridden, GuardrailsRerunOrdered
from tests.events.ledger.messages import INPUT, stored, write

ORDERED = entry_of(GuardrailsRerunOrdered).sample
MESSAGES = [
    stored(1, INPUT),
    stored(2, entry_of(GuardrailsOverridden).sample, exchange="", session=""),
    stored(3, ORDERED),
]


def show(ledger: Path, *arguments: str) -> Result:
    write(ledger, MESSAGES)
    assert isinstance(ORDERED, GuardrailsRerunOrdered)
    arguments = (ORDERED.trace.loop_id, "--agent", "ada", *arguments)
    return CliRunner().invoke(guardrails, ["show", *arguments, "--log", str(ledger)])


def test_a_loop_is_shown_in_words_with_its_family(tmp_path: Path) -> None:
    done = show(tmp_path / "ledger.db")
    assert done.exit_code == 0, done.exception
    assert isinstance(ORDERED, GuardrailsRerunOrdered)
    trace = ORDERED.trace
    head, why, family, *rows = done.output.splitlines()
    assert head == f"loop {trace.loop_id} of agent ada: runs again as {ORDERED.new_loop_id} · {trace.rerun_reason}"
    assert why.startswith(f"why: {trace.rerun_reason_detail}")
    assert family.startswith(f"family {trace.family}: {trace.rerun_count} of {trace.max_reruns} reruns")
    assert any("rerun_ordered" in row for row in rows)


def test_a_loop_is_shown_to_machines_as_it_was_judged(tmp_path: Path) -> None:
    found = json.loads(show(tmp_path / "ledger.db", "--json").stdout)
    assert (found["decision"], found["trace"]["loop_id"]) == ("rerun_ordered", found["loop_id"])
    assert [row["seq"] for row in found["family"]] == [3]
