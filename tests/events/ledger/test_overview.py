"""How a set was at a point of its log, from the ledger alone."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from events.errors import Misconfigured
from events.ledger import Overview, overview, overview_at
from events.ledger.overview import SHOWN
from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.intake.strict import BadInput
from tests.events.ledger.messages import INPUT, MODE, RESPONSE, START_NS, exchanges, stored, write
from tests.events.ledger.test_alerts import alert

HEALTHY = {"RESPOND": (0.5, 0.75), "ACT": (0.05, 0.15)}


def sample(name: str) -> Any:
    return CATALOGUE[f"forged_id.{name}"].sample


def looked(path: Path, at: int = 0) -> Overview:
    return overview_at(path, at, HEALTHY)


def ledger(folder: Path, *messages: Stored) -> Path:
    path = folder / "ledger.db"
    write(path, messages)
    return path


def test_an_empty_ledger_has_nothing_to_tell(tmp_path: Path) -> None:
    seen = looked(ledger(tmp_path))
    assert (seen.at, seen.time, seen.head, seen.exchanges, seen.ended, seen.p50_ms) == (0, "", 0, 0, (), None)
    assert [(each.mode, each.share) for each in seen.modes] == [("RESPOND", 0.0), ("ACT", 0.0)]


def test_exchanges_are_counted_by_how_they_ended_and_how_long_they_took(tmp_path: Path) -> None:
    refused = msgspec.structs.replace(RESPONSE, stage="REFLEX", action="BLOCKED")
    more = [stored(13, INPUT, exchange="y", at_ms=200), stored(14, refused, exchange="y", at_ms=290)]
    path = ledger(tmp_path, *exchanges(3), *more, stored(15, INPUT, exchange="z", at_ms=300))
    seen = looked(path)
    assert (seen.at, seen.head, seen.exchanges, seen.open) == (15, 15, 5, 1)
    assert [(each.stage, each.action, each.count) for each in seen.ended] == [
        (RESPONSE.stage, RESPONSE.action, 3),
        ("REFLEX", "BLOCKED", 1),
    ]
    assert (seen.p50_ms, seen.p99_ms) == (30.0, 90.0)


def test_modes_are_counted_by_agent_of_the_latest_decisions_of_each(tmp_path: Path) -> None:
    acting = msgspec.structs.replace(MODE, terminal_mode=None)
    of = {"ada": (MODE, MODE, acting), "bob": (acting,)}
    messages = list[Stored]()
    for agent, decisions in of.items():
        for number, mode in enumerate(decisions):
            for event in (INPUT, mode):
                messages.append(stored(len(messages) + 1, event, exchange=f"{agent}-{number}", agent=agent))
    seen = looked(ledger(tmp_path, *messages))
    told = [(each.agent, each.decisions, each.modes) for each in seen.modes_by_agent]
    chosen = str(MODE.terminal_mode)
    assert told == [("ada", 3, {chosen: 2, "ACT": 1}), ("bob", 1, {"ACT": 1})]
    assert looked(tmp_path / "ledger.db", 2).modes_by_agent[0].decisions == 1


def test_at_a_point_nothing_behind_it_has_happened(tmp_path: Path) -> None:
    path = ledger(tmp_path, *exchanges(3))
    for at in range(1, 13):
        seen = looked(path, at)
        assert (seen.at, seen.head, seen.exchanges, seen.open) == (at, 12, (at + 3) // 4, bool(at % 4))
        assert sum(each.count for each in seen.ended) == at // 4
        assert seen.decisions == (at + 1) // 4
    assert looked(path, 12) == looked(path)
    with pytest.raises(BadInput, match="the ledger ends at sequence 12, before 13"):
        looked(path, 13)


def test_modes_are_counted_as_the_monitor_does(tmp_path: Path) -> None:
    """ACT where a loop ran, under its first choice, and not the choice after the loop."""
    chosen = [
        msgspec.structs.replace(MODE, selected_mode="RESPOND", terminal_mode="RESPOND", rerouted=False),
        msgspec.structs.replace(MODE, selected_mode="ACT", terminal_mode=None, rerouted=False),
        msgspec.structs.replace(MODE, selected_mode="RESPOND", terminal_mode="RESPOND", rerouted=True),
    ]
    path = ledger(tmp_path, *(stored(seq, event, exchange=f"x{seq}") for seq, event in enumerate(chosen, 1)))
    assert [(each.mode, each.count, each.share, each.low, each.high) for each in looked(path).modes] == [
        ("RESPOND", 1, 0.5, 0.5, 0.75),
        ("ACT", 1, 0.5, 0.05, 0.15),
    ]


def test_an_alert_fires_from_its_first_event_until_its_end(tmp_path: Path) -> None:
    path = ledger(
        tmp_path,
        stored(1, INPUT),
        alert(8, at_ms=1),
        alert(12, at_ms=2, count=2, cause_seq=11),
        alert(20, at_ms=5, count=2, cause_seq=11, status="resolved", resolved_by="quiet"),
    )
    assert [looked(path, at).alerts_firing for at in (1, 8, 12, 20)] == [0, 1, 1, 0]
    (firing,) = looked(path, 12).alerts
    assert (firing.severity, firing.event, firing.session, firing.count) == (
        "critical",
        "forged_id.breaker.tripped",
        "s1",
        2,
    )
    # Of how many events it was at an earlier point the ledger does not say: the latest announcement stands.
    assert looked(path, 8).alerts[0].count is None


def test_a_breaker_stands_as_the_latest_event_of_its_session_says(tmp_path: Path) -> None:
    path = ledger(
        tmp_path,
        stored(1, sample("breaker.tripped"), session="s1", at_ms=1),
        stored(2, sample("breaker.tripped"), session="s2", at_ms=2),
        stored(3, sample("breaker.recovery_started"), session="s1", at_ms=3),
        stored(4, sample("breaker.reset"), session="s2", at_ms=4),
    )

    def standing(at: int) -> list[tuple[str, str, float]]:
        return [(each.session, each.state, each.trust) for each in looked(path, at).breakers]

    tripped, started = sample("breaker.tripped").standing, sample("breaker.recovery_started").standing
    assert standing(2) == [("s2", "VIOLATED", tripped.trust), ("s1", "VIOLATED", tripped.trust)]
    assert standing(3) == [("s1", "RECOVERY", started.trust), ("s2", "VIOLATED", tripped.trust)]
    assert standing(0) == [("s1", "RECOVERY", started.trust)]
    assert looked(path).breakers_open == 1


def test_of_very_many_open_breakers_all_are_counted_and_only_the_latest_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack leaves a session open each time; to build a row of each took a look four times as long."""
    built: list[object] = []
    build = overview._breaker_row
    monkeypatch.setattr(overview, "_breaker_row", lambda row: built.append(row) or build(row))
    path = ledger(tmp_path, stored(1, INPUT), stored(2, sample("breaker.tripped"), session="s2", at_ms=2))
    sessions = 100_000
    with closing(sqlite3.connect(path)) as file, file:
        (figures,) = file.execute("SELECT figures FROM changes").fetchone()
        file.executemany(
            "INSERT INTO changes VALUES (?, 'breaker', '', 'ann', ?, ?, ?, '')",
            ((-n, f"t{n * 7919 % sessions}", "NORMAL" if n % 4 == 0 else "VIOLATED", figures) for n in range(sessions)),
        )
    seen = looked(path)
    assert len(built) == SHOWN
    assert seen.breakers_open == 1 + sessions - sessions // 4
    assert [each.seq for each in seen.breakers] == [2, *(-n for n in range(66) if n % 4)][:SHOWN]
    assert [each.session for each in seen.breakers[:2]] == ["s2", "t7919"]


def test_the_latest_changes_are_told_with_their_numbers_and_without_words(tmp_path: Path) -> None:
    names = ("regulator.adjusted", "regulator.reverted", "self_review.triggered", "regulator.confirmed")
    path = ledger(tmp_path, *(stored(seq, sample(name), exchange="") for seq, name in enumerate(names, 1)))
    seen = looked(path)
    assert [each.topic for each in seen.adjustments] == [
        f"forged_id.{name}" for name in ("regulator.confirmed", "regulator.reverted", "regulator.adjusted")
    ]
    assert seen.adjustments[2].figures["parameter"] == sample("regulator.adjusted").parameter
    (review,) = seen.reviews
    assert review.figures["reasons"] == list(sample("self_review.triggered").reasons)
    assert looked(path, 1).reviews == ()
    assert seen.time == "2023-11-14T22:13:20.000Z", START_NS


def test_where_there_is_no_ledger_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="no ledger is here"):
        looked(tmp_path / "none.db")
