"""The audit trail of a talk through all actors: each column that the source names, as a tool reads it in the ledger."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.registry import ACTORS
from actors.router.settings import RouterSettings
from events.log import Stored
from schemas.actor import Message
from schemas.vocabulary.act import ActFinished, ActIterated
from schemas.vocabulary.router import FeedbackObserved, ModeSelected, TiebreakRequested
from tests.actors.pipeline import Pipeline
from tests.actors.router.builders import told
from tests.actors.scenario import Address
from tests.each import each
from tests.events.ledger.messages import query, stored, write

TALK = (
    "Thanks!",
    "How should I plan the move to the new office?",
    "My new office is in Lisbon and the move is in May.",
    "What did we discuss about the office move?",
    "Great, thanks!",
)
TIED, ACTED = "e0", "e3"
"""Of those, the exchange that a model decides on, and the one that is looked up first."""


@pytest.fixture(scope="module")
def talked() -> Pipeline:
    """The talk; a model breaks its ties, and says ACT where it may."""
    pipeline = Pipeline(ACTORS)
    pipeline.partitions["router"].configure(RouterSettings(profile="calibrated", tiebreak="llm"))
    for number, text in enumerate(TALK):
        pipeline.ask(text, Address(exchange=f"e{number}"))
        asked = pipeline.stream[-1]
        if isinstance(asked.event, TiebreakRequested):
            mode = "ACT" if "ACT" in asked.event.candidates else asked.event.candidates[1]
            pipeline.send(told(asked.id, json.dumps({"mode": mode})), Address(exchange=f"e{number}"))
    return pipeline


@pytest.fixture(scope="module")
def ledger(talked: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The talk's ledger."""
    path = tmp_path_factory.mktemp("trail") / "ledger.db"
    write(path, [as_stored(message) for message in talked.stream])
    return path


def as_stored(message: Message) -> Stored:
    keys = {"exchange": message.exchange, "agent": message.agent, "session": message.session}
    return stored(message.seq, message.event, at_ms=message.seq, **keys)


def messages(pipeline: Pipeline, kind: type, exchange: str) -> list[Message]:
    return [each for each in pipeline.stream if isinstance(each.event, kind) and each.exchange == exchange]


def plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


Reading = Callable[[ModeSelected], Any]
DECISION: dict[str, Reading] = {
    "topic": lambda selected: selected.conversation_topic,
    "exchange_id": lambda _: TIED,
    "selected_mode": lambda _: "CLARIFY",
    "router_confidence": lambda selected: selected.router_confidence,
    "scores": lambda selected: selected.scores,
    "tiebreaker_used": lambda _: 1,
    "tiebreaker_candidates": lambda selected: list(selected.tiebreaker_candidates),
    "margin": lambda selected: selected.margin,
    "effective_margin": lambda selected: selected.effective_margin,
    "signal_snapshot": lambda selected: plain(selected.signals),
    "weight_snapshot": lambda selected: selected.weights,
    "routing_time_ms": lambda _: 2.3,
    "reflection": lambda _: None,
    "previous_mode": lambda _: None,
}
"""Column -> what it holds of the decision that a model settled; ``reflection`` is filled by another subsystem."""

JSON = {"scores", "tiebreaker_candidates", "signal_snapshot", "weight_snapshot", "feedback", "actions_executed"}


def column(path: Path, view: str, name: str, where: str) -> list[Any]:
    values = [value for (value,) in query(path, f"SELECT {name} FROM {view} WHERE {where} ORDER BY seq")]
    return [json.loads(value) if name in JSON and value is not None else value for value in values]


def row(name: str) -> str:
    return f"mode-router: Routing Decision Audit Trail, {name}"


@each("name", DECISION, named=row)
def test_a_routing_decision_has_the_source_s_column(talked: Pipeline, ledger: Path, name: str):
    (message,) = messages(talked, ModeSelected, TIED)
    assert isinstance(message.event, ModeSelected)
    assert column(ledger, "routing_decisions", name, f"exchange_id = '{TIED}'") == [DECISION[name](message.event)]


def test_a_decision_s_id_is_its_event_s(talked: Pipeline, ledger: Path):
    """mode-router: Routing Decision Audit Trail, id."""
    ids = [value for (value,) in query(ledger, "SELECT id FROM routing_decisions")]
    assert len(ids) == len(set(ids)) == sum(isinstance(each.event, ModeSelected) for each in talked.stream)


def test_feedback_is_filled_by_the_next_exchange(talked: Pipeline, ledger: Path):
    """mode-router: Routing Decision Audit Trail, feedback filled post-exchange."""
    (observed,) = messages(talked, FeedbackObserved, "e4")
    assert observed.event.of_exchange == ACTED  # type: ignore[attr-defined]
    first, terminal = column(ledger, "routing_decisions", "feedback", f"exchange_id = '{ACTED}'")
    assert first is None
    assert terminal["feedback"] == "correct_route"


def test_the_previous_mode_is_that_of_the_answer_before(ledger: Path):
    """mode-router: Routing Decision Audit Trail, previous_mode."""
    assert column(ledger, "routing_decisions", "previous_mode", "exchange_id = 'e1'") == ["CLARIFY"]


def test_a_decision_is_dated(ledger: Path):
    """mode-router: Routing Decision Audit Trail, created_at."""
    dates = column(ledger, "routing_decisions", "created_at", "1")
    assert dates == sorted(dates)
    assert all(date.startswith("2023-11-14T22:13:20.") for date in dates)


ITERATION: dict[str, Callable[[list[ActIterated], ActFinished], list[Any]]] = {
    "loop_id": lambda steps, _: [ACTED for _ in steps],
    "exchange_id": lambda steps, _: [ACTED for _ in steps],
    "session_id": lambda steps, _: ["session" for _ in steps],
    "iteration_number": lambda steps, _: [0, 1],
    "chosen_mode": lambda steps, _: ["ACT", "ACT"],
    "execution_time_ms": lambda steps, _: [0, 0],
    "actions_executed": lambda steps, _: [plain(step.performed) for step in steps],
    "action_count": lambda steps, _: [len(step.performed) for step in steps],
    "action_success_count": lambda steps, _: [sum(each.ok for each in step.performed) for step in steps],
    "termination_reason": lambda _, finished: [None, finished.termination],
    "total_cost": lambda steps, _: [0.0, 0.0],
    "net_value": lambda steps, _: [0.0, 0.0],
    "decision_override": lambda steps, _: [0, 0],
}
"""Column -> what it holds of the talk's two iterations; the last three are the source's zero-value placeholders."""


@each("name", ITERATION, named=lambda name: f"mode-router: ACT Loop Iteration Logging, {name}")
def test_an_iteration_has_the_source_s_column(talked: Pipeline, ledger: Path, name: str):
    steps: list[Any] = [each.event for each in messages(talked, ActIterated, ACTED)]
    (finished,) = [each.event for each in messages(talked, ActFinished, ACTED)]
    assert isinstance(finished, ActFinished)
    assert column(ledger, "cortex_iterations", name, f"exchange_id = '{ACTED}'") == ITERATION[name](steps, finished)
