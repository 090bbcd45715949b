"""The read models follow from the events, live and rebuilt alike."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import LedgerDamaged
from events.ledger import exchange_result, rebuild, verify
from events.ledger.read_models import FOLDS, fingerprint
from events.ledger.rows import EXCHANGE
from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.event import Event
from schemas.vocabulary.act import ActFinished, Action, ActIterated, Performed
from schemas.vocabulary.reflection import ReflectionConcluded
from schemas.vocabulary.router import FeedbackObserved, ModeSelected, Signals
from tests.events.ledger.messages import (
    FEEDBACK,
    FINISHED,
    INPUT,
    ITERATED,
    MODE,
    PASSED,
    READ_MODELS,
    RESPONSE,
    exchanges,
    of_later_release,
    query,
    stored,
    tables,
    wild_messages,
    write,
)
from tests.events.releases import LaterRelease, later

__all__ = ["later"]

CONCLUDED = CATALOGUE["forged_id.reflection.concluded"].sample

EVENTS = (PASSED, *(CATALOGUE[str(topic)].sample for topic in FOLDS))
"""One event that changes no read model, and one of each kind that does."""


def test_an_exchange_has_its_end_and_its_latency(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [stored(1, INPUT, at_ms=0), stored(2, PASSED, at_ms=1), stored(3, RESPONSE, at_ms=12)])
    columns = "exchange, agent, session, started_seq, ended_seq, stage, action, reason, mode, latency_ms"
    assert query(path, f"SELECT {columns} FROM exchanges") == [
        ("x1", "ada", "s1", 1, 3, "DELIBERATIVE", "EXECUTED", "RESPOND", "RESPOND", 12.0)
    ]


def test_an_open_exchange_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [stored(1, INPUT)])
    assert query(path, "SELECT started_seq, ended_seq, stage, latency_ms FROM exchanges") == [(1, None, None, None)]


def test_a_repeated_end_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    late = msgspec.structs.replace(RESPONSE, action="FAILED")
    write(path, [stored(1, INPUT), stored(2, RESPONSE), stored(3, late), stored(4, INPUT, at_ms=9)], size=1)
    assert query(path, "SELECT started_seq, ended_seq, action FROM exchanges") == [(1, 2, "EXECUTED")]


def test_a_routing_decision_has_the_columns_of_its_source(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert isinstance(MODE, ModeSelected)
    write(path, [stored(1, MODE, at_ms=1)])
    columns = "topic, exchange_id, selected_mode, router_confidence, tiebreaker_used, margin, effective_margin"
    assert query(path, f"SELECT {columns} FROM routing_decisions") == [
        ("unclassified", "x1", "RESPOND", 0.3, 0, 0.3, 0.164)
    ]
    ((scores, candidates, signals, weights),) = query(
        path, "SELECT scores, tiebreaker_candidates, signal_snapshot, weight_snapshot FROM routing_decisions"
    )
    assert msgspec.json.decode(scores) == MODE.scores
    assert msgspec.json.decode(candidates) == []
    assert msgspec.json.decode(signals, type=Signals) == MODE.signals
    assert msgspec.json.decode(weights) == MODE.weights
    assert query(path, "SELECT routing_time_ms, previous_mode, feedback, created_at FROM routing_decisions") == [
        (2.3, None, None, "2023-11-14T22:13:20.001000+00:00")
    ]


def test_it_has_every_column_that_its_source_names(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [stored(1, MODE)])
    columns = {name for _, name, *_ in query(path, "PRAGMA table_info(routing_decisions)")}
    assert columns >= {
        "id", "topic", "exchange_id", "selected_mode", "router_confidence", "scores", "tiebreaker_used",
        "tiebreaker_candidates", "margin", "effective_margin", "signal_snapshot", "weight_snapshot", "routing_time_ms",
        "feedback", "reflection", "previous_mode", "created_at",
    }  # fmt: skip


def test_a_tie_break_is_on_record_with_its_candidates_and_its_outcome(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    asked = msgspec.structs.replace(
        MODE, tiebreaker_used=True, tiebreaker_candidates=("RESPOND", "CLARIFY"), tiebreaker_outcome="failed:no_model"
    )
    write(path, [stored(1, asked)])
    assert query(path, "SELECT tiebreaker_used, tiebreaker_candidates, tiebreaker_outcome FROM routing_decisions") == [
        (1, '["RESPOND","CLARIFY"]', "failed:no_model")
    ]


def feedback(of_exchange: str, **changes: str) -> Event:
    assert isinstance(FEEDBACK, FeedbackObserved)
    return msgspec.structs.replace(FEEDBACK, of_exchange=of_exchange, **changes)


def test_feedback_of_the_next_exchange_fills_the_decision_it_judges(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [stored(1, MODE), stored(2, MODE, exchange="x2"), stored(3, feedback("x1"), exchange="x2")], size=1)
    (judged,), (open_,) = query(path, "SELECT feedback FROM routing_decisions ORDER BY seq")
    assert msgspec.json.decode(judged) == {
        "feedback": "missed_clarify",
        "signal": "repeated",
        "mode": "RESPOND",
        "observed_in": "x2",
    }
    assert open_ is None


def test_of_an_exchange_that_acted_the_mode_of_the_answer_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    acting = msgspec.structs.replace(MODE, selected_mode="ACT", terminal_mode=None)
    again = msgspec.structs.replace(MODE, rerouted=True)
    write(path, [stored(1, acting), stored(2, again), stored(3, feedback("x1"), exchange="x2")])
    columns = "selected_mode, terminal_mode, rerouted, feedback IS NOT NULL"
    assert query(path, f"SELECT {columns} FROM routing_decisions ORDER BY seq") == [
        ("ACT", None, 0, 0),
        ("RESPOND", "RESPOND", 1, 1),
    ]


def test_the_first_feedback_on_an_exchange_stands(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    later = feedback("x1", feedback="correct_route", signal="positive")
    write(path, [stored(1, MODE), stored(2, feedback("x1"), exchange="x2"), stored(3, later, exchange="x3")])
    assert query(path, "SELECT json_extract(feedback, '$.feedback') FROM routing_decisions") == [("missed_clarify",)]


def concluded(*exchanges: str) -> Event:
    assert isinstance(CONCLUDED, ReflectionConcluded)
    insights = tuple(msgspec.structs.replace(CONCLUDED.insights[0], exchange=exchange) for exchange in exchanges)
    return msgspec.structs.replace(CONCLUDED, insights=insights)


def test_a_look_back_fills_every_decision_it_looked_at_whenever_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    back = stored(3, concluded("x1", "x2"), exchange="", session="")
    write(path, [stored(1, MODE), back, stored(4, MODE, exchange="x2"), stored(5, MODE, exchange="x3")], size=1)
    fields = ("dimension", "suggested_mode", "counts")
    columns = ", ".join(f"json_extract(reflection, '$.{field}')" for field in fields)
    told = ("memory_availability", "CLARIFY", 1)
    assert query(path, f"SELECT {columns} FROM routing_decisions ORDER BY seq") == [told, told, (None, None, None)]


def test_the_choice_before_an_act_loop_has_no_look_back(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    acting = msgspec.structs.replace(MODE, selected_mode="ACT", terminal_mode=None)
    write(path, [stored(1, acting), stored(2, MODE), stored(3, concluded("x1"), exchange="", session="")])
    assert query(path, "SELECT reflection IS NOT NULL FROM routing_decisions ORDER BY seq") == [(0,), (1,)]


def iterated(number: int, elapsed_ms: int, *oks: bool) -> Event:
    assert isinstance(ITERATED, ActIterated)
    action = Action(index=0, skill="recall", query="who am I?")
    performed = tuple(Performed(action=action, ok=ok) for ok in oks)
    return msgspec.structs.replace(ITERATED, iteration=number, elapsed_ms=elapsed_ms, performed=performed)


def test_every_iteration_of_an_act_loop_has_a_row(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [stored(1, iterated(0, 12, True, False)), stored(2, iterated(1, 30, True), at_ms=1)], size=1)
    columns = "exchange_id, session_id, iteration_number, chosen_mode, action_count, action_success_count, planner"
    assert query(path, f"SELECT {columns} FROM cortex_iterations ORDER BY seq") == [
        ("x1", "s1", 0, "ACT", 2, 1, "offline"),
        ("x1", "s1", 1, "ACT", 1, 1, "offline"),
    ]
    times = "execution_time_ms, elapsed_ms, completed_at"
    assert query(path, f"SELECT {times} FROM cortex_iterations ORDER BY seq") == [
        (12, 12, "2023-11-14T22:13:20.000000+00:00"),
        (18, 30, "2023-11-14T22:13:20.001000+00:00"),
    ]
    assert query(
        path, "SELECT json_extract(actions_executed, '$[1].ok') FROM cortex_iterations WHERE iteration_number = 0"
    ) == [(0,)]


def test_the_gate_that_the_source_dropped_weighs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [stored(1, iterated(0, 12, True))])
    assert query(path, "SELECT total_cost, net_value, decision_override FROM cortex_iterations") == [(0.0, 0.0, 0)]


def test_the_last_iteration_says_why_the_loop_ended(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert isinstance(FINISHED, ActFinished)
    finished = msgspec.structs.replace(FINISHED, iterations=2, termination="max_iterations")
    write(path, [stored(1, iterated(0, 12, True)), stored(2, iterated(1, 30, True)), stored(3, finished)])
    assert query(path, "SELECT iteration_number, termination_reason FROM cortex_iterations ORDER BY seq") == [
        (0, None),
        (1, "max_iterations"),
    ]


def test_other_tools_can_look_into_the_json_columns(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [stored(1, MODE)])
    assert query(path, "SELECT json_extract(scores, '$.ACT') FROM routing_decisions") == [(0.2,)]


@given(
    picks=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 5), st.integers(0, 99)), min_size=1, max_size=40),
    size=st.integers(1, 40),
)
@settings(max_examples=40, deadline=None)
def test_a_rebuild_equals_what_was_folded_live(
    picks: list[tuple[Event, int, int]], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("rebuild") / "ledger.db"
    messages = [
        stored(seq, event, exchange=f"x{number}" if number else "", agent=f"a{number % 2}", at_ms=at_ms)
        for seq, (event, number, at_ms) in enumerate(picks, 1)
    ]
    write(path, messages, size=size)
    folded = tables(path)
    rebuild(path)
    assert tables(path) == folded
    assert verify(path).ok


def test_events_fill_every_read_model(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    messages = [stored(seq, event) for seq, event in enumerate(EVENTS, 1)]
    write(path, [*messages, of_later_release(stored(len(messages) + 1, MODE))])
    assert all(tables(path).values())


@given(wild_messages())
@settings(max_examples=40, deadline=None)
def test_unreadable_messages_do_not_stop_the_folding(messages: list[Stored]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        write(path, [*messages, stored(2**62 + 1, INPUT)])
        folded = tables(path)
        assert len(folded["exchanges"]) >= 1
        rebuild(path)
        assert tables(path) == folded


def test_numbers_that_no_column_or_calendar_holds_do_not_stop_the_folding(tmp_path: Path) -> None:
    """Such an event is readable: an integer of JSON has no limit."""
    path, wild = tmp_path / "ledger.db", []
    for event in EVENTS:
        for name in event.__struct_fields__:
            if type(getattr(event, name)) is int:
                wild += [msgspec.structs.replace(event, **{name: value}) for value in (2**63, -(2**63) - 1, 10**30)]
    assert len(wild) > len(EVENTS)
    write(path, [stored(seq, event) for seq, event in enumerate([*wild, INPUT], 1)])
    folded = tables(path)
    assert len(folded["exchanges"]) == 1
    rebuild(path)
    assert tables(path) == folded
    assert verify(path).ok


def test_a_rebuild_over_a_row_of_another_topic_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, exchanges(2))
    query(path, "UPDATE events SET topic = 'forged_id.response.emitted' WHERE seq = 2")
    folded = tables(path)
    with pytest.raises(LedgerDamaged, match="row 2 is found under another topic"):
        rebuild(path)
    assert tables(path) == folded


def test_an_empty_ledger_has_empty_read_models(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [stored(1, PASSED)])
    assert tables(path) == {name: [] for name in READ_MODELS}


def test_read_models_of_another_release_are_rebuilt_when_the_ledger_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, exchanges(3))
    folded = tables(path)
    query(path, "DROP VIEW routing_decisions")
    query(path, "CREATE TABLE routing_decisions (seq INTEGER PRIMARY KEY)")
    query(path, "DROP TABLE mode_selections")
    query(path, "DELETE FROM exchanges WHERE exchange = 'x1'")
    query(path, "UPDATE meta SET value = 'of old' WHERE key = 'models'")
    write(path, [])
    write(path, exchanges(3))
    assert tables(path) == folded
    assert verify(path).ok


@pytest.fixture
def unknown_fingerprint() -> Iterator[Callable[[], None]]:
    """Forgets this release's fingerprint, now and when it is called: a release is one in a process otherwise."""
    fingerprint.cache_clear()
    yield fingerprint.cache_clear
    fingerprint.cache_clear()


def test_a_field_that_is_added_deep_in_an_event_is_no_damage_to_tables_of_before(
    tmp_path: Path, later: LaterRelease, unknown_fingerprint: Callable[[], None]
) -> None:
    path = tmp_path / "ledger.db"
    write(path, exchanges(3))
    assert verify(path).models_compared
    sharper = msgspec.defstruct("Signals", [("wit", float, 0.5)], bases=(Signals,), frozen=True, kw_only=True)
    later.event(ModeSelected, [("signals", sharper)], lambda body: body)
    unknown_fingerprint()
    found = verify(path)
    assert (found.findings, found.models_compared) == ((), False)
    write(path, [])
    found = verify(path)
    assert (found.findings, found.models_compared) == ((), True)
    (snapshot,) = {row[0] for row in query(path, "SELECT json_extract(signal_snapshot, '$.wit') FROM mode_selections")}
    assert snapshot == 0.5


def test_a_fold_that_says_something_else_of_an_event_is_no_damage_to_tables_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unknown_fingerprint: Callable[[], None]
) -> None:
    path = tmp_path / "ledger.db"
    write(path, exchanges(3))
    fold = FOLDS["forged_id.input.received"]
    shouted = msgspec.structs.replace(
        fold, values=lambda row, headers: (row[EXCHANGE], "A", *fold.values(row, headers)[2:])
    )
    monkeypatch.setitem(FOLDS, "forged_id.input.received", shouted)  # type: ignore[arg-type]
    unknown_fingerprint()
    assert (verify(path).findings, verify(path).models_compared) == ((), False)


def test_words_about_an_event_make_no_other_tables(
    monkeypatch: pytest.MonkeyPatch, unknown_fingerprint: Callable[[], None]
) -> None:
    before = fingerprint()
    monkeypatch.setattr(ModeSelected, "__doc__", "Put in other words.")
    unknown_fingerprint()
    assert fingerprint() == before


def test_the_result_of_an_exchange_is_looked_up_by_its_id(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, [*exchanges(2), stored(9, INPUT, exchange="open")])
    done = asyncio.run(exchange_result(path, "x1"))
    assert done is not None
    assert (done.agent, done.session, done.started_seq, done.ended_seq, done.latency_ms) == ("ada", "s1", 5, 8, 30.0)
    assert done.ended == RESPONSE
    still_open = asyncio.run(exchange_result(path, "open"))
    assert still_open is not None
    assert still_open.ended is None
    assert asyncio.run(exchange_result(path, "never")) is None
    assert asyncio.run(exchange_result(path, "")) is None
