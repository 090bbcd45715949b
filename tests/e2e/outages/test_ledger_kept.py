"""The ledger that a live set writes: its read models are what a rebuild folds, and its chain holds."""

import json
from pathlib import Path

from events.ledger import verify
from tests.e2e.live import Live, run
from tests.e2e.test_examining import copied
from tests.e2e.test_exchanges import ATTACK, fresh
from tests.events.ledger.messages import tables


def test_a_rebuild_folds_the_read_models_that_the_live_set_wrote(live: Live, tmp_path: Path) -> None:
    session = fresh("kept")
    for text in ("My name is Ada.", "What is my name?", "No, that is wrong.", "Thanks!", ATTACK, ""):
        # An agent of its own: what it remembers, and thinks of itself, is no part of the other tests.
        live.ask(text, "--session", session, "--agent", session)
    ledger = copied(live, tmp_path)
    written = tables(ledger)
    assert {name for name, rows in written.items() if rows} >= {"exchanges", "routing_decisions", "routing_feedback"}
    run(tmp_path, "log", "rebuild", "--log", str(ledger))
    assert tables(ledger) == written
    assert verify(ledger).ok


def test_a_live_ledger_is_verified_beside_its_writer(live: Live) -> None:
    live.ask("Hello there!", "--agent", fresh("verified"))
    told = json.loads(live.run("log", "verify", "--json").stdout)
    assert told["ok"]
    assert told["chain"]["findings"] == []
    assert told["stream"]["compared"] > 0
