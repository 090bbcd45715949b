"""Source M, "Single Authority for Weight Mutation", and its known trap: weights that never reach the routers."""

from collections.abc import Iterator

import msgspec
import pytest

from actors.registry import ACTORS
from actors.router.settings import RouterSettings, effective_weights
from schemas.catalogue import CATALOGUE, entry_of
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.regulator import Adjusted, RegulatorScheduled, Reverted
from schemas.vocabulary.router import ModeSelected
from tests.actors.pipeline import Pipeline
from tests.actors.regulator.builders import DAY_MS
from tests.actors.router.builders import partition as router_partition
from tests.actors.router.builders import recalled
from tests.actors.scenario import Address, Partition
from tests.each import each

STATEMENTS = [f"The boiler in cellar {number} makes a noise again" for number in range(12)]


def weights_of_the_next_decision(router: Partition) -> dict[str, float]:
    here = Address(exchange="the next one")
    router.hear(InputReceived(text="What is the capital of Peru?"), here)
    [selected] = router.when(recalled(), here)
    assert isinstance(selected, ModeSelected)
    return selected.weights


def chat(pipeline: Pipeline, prefix: str, agent: str = "agent") -> None:
    for number, text in enumerate(STATEMENTS):
        pipeline.ask(text, Address(agent, f"{agent}'s {prefix}", f"{prefix}-{agent}-{number}"))


def weights_by_agent(pipeline: Pipeline) -> Iterator[tuple[str, Event]]:
    for message in pipeline.stream:
        if isinstance(message.event, ModeSelected | Adjusted | Reverted):
            yield message.agent, message.event


def test_only_the_regulator_writes_events_that_name_a_weight_to_move():
    """mode-router: Routing Stability Regulator, single authority for weight mutation."""
    naming = [entry for entry in CATALOGUE.values() if "parameter" in entry.event.__struct_fields__]
    assert {entry.owner for entry in naming} == {"regulator"}
    assert {entry_of(kind).owner for kind in (Adjusted, Reverted)} == {"regulator"}


@each("kind", ACTORS["router"].consumes, named=lambda kind: kind.__name__)
def test_of_all_that_routers_hear_the_regulator_alone_moves_their_weights(kind: type[Event]):
    router = router_partition()
    router.hear(entry_of(kind).sample)
    moved = weights_of_the_next_decision(router) != weights_of_the_next_decision(router_partition())
    assert moved is (kind in (Adjusted, Reverted, RegulatorScheduled))


def test_an_agent_that_the_regulator_knows_no_more_goes_on_from_the_weight_in_force():
    known, dropped = router_partition(), router_partition()
    first = entry_of(Adjusted).sample
    for router in (known, dropped):
        router.hear(first)
    # The regulator's sum begins anew; what it changes is counted from what the router's decisions have shown it.
    dropped.hear(msgspec.structs.replace(first, offset=first.delta))
    before, after = (weights_of_the_next_decision(router)[first.parameter] for router in (known, dropped))
    assert after == pytest.approx(before + first.delta)


def test_a_reverted_weight_is_what_it_was():
    router = router_partition()
    router.hear(entry_of(Adjusted).sample)
    router.hear(entry_of(Reverted).sample)
    assert weights_of_the_next_decision(router) == weights_of_the_next_decision(router_partition())


def test_the_very_next_decision_uses_an_adjusted_weight():
    """mode-router: Routing Stability Regulator, 6 persists: events in place of a file nobody reads again."""
    pipeline = Pipeline(ACTORS)
    chat(pipeline, "first")
    pipeline.advance(DAY_MS)
    [adjusted] = [message.event for message in pipeline.stream if isinstance(message.event, Adjusted)]
    pipeline.ask("And one thing more", Address(exchange="next"))
    [selected] = [message.event for message in pipeline.stream if message.exchange == "next"
                  and isinstance(message.event, ModeSelected)]  # fmt: skip
    assert adjusted.before == effective_weights(RouterSettings())[adjusted.parameter]
    assert selected.weights[adjusted.parameter] == adjusted.after != adjusted.before


def test_the_weights_of_another_agent_are_not_touched():
    pipeline = Pipeline(ACTORS)
    chat(pipeline, "first", "ann")
    pipeline.advance(DAY_MS)
    chat(pipeline, "second", "bob")
    assert "ann" in pipeline.partitions["router"].state.overlays
    selected = [event for agent, event in weights_by_agent(pipeline) if agent == "bob"]
    assert all(isinstance(event, ModeSelected) for event in selected)
    assert {event.weights["ACT.base"] for event in selected if isinstance(event, ModeSelected)} == {0.25}


def test_in_a_log_no_weight_changes_but_by_the_regulators_word():
    pipeline = Pipeline(ACTORS)
    for day in range(8):
        for agent in ("ann", "bob"):
            chat(pipeline, f"day {day}", agent)
        pipeline.advance(DAY_MS)
    expected: dict[str, dict[str, float]] = {}
    moves = 0
    for agent, event in weights_by_agent(pipeline):
        in_force = expected.setdefault(agent, effective_weights(RouterSettings()))
        if isinstance(event, ModeSelected):
            assert event.weights == in_force
        elif isinstance(event, Adjusted | Reverted):
            assert in_force[event.parameter] == event.before
            in_force[event.parameter] = event.after
            moves += 1
    assert moves > 4


def test_an_operators_later_setting_keeps_its_offset():
    router = router_partition()
    router.hear(entry_of(Adjusted).sample)
    router.configure(RouterSettings(weights={"RESPOND.base": 0.5}))
    assert weights_of_the_next_decision(router)["RESPOND.base"] == 0.48


@each(("weight", "offset", "in_force"), [(0.31, -0.02, 0.3), (0.9, 0.02, 0.9), (0.9, -0.02, 0.88), (0.2, -0.02, 0.2)])
def test_no_event_leads_a_router_out_of_bounds(weight: float, offset: float, in_force: float):
    router = router_partition(RouterSettings(weights={"RESPOND.base": weight}))
    router.hear(_adjusted("RESPOND.base", offset))
    assert weights_of_the_next_decision(router)["RESPOND.base"] == in_force


def test_no_event_leads_the_base_margin_below_the_minimum_one():
    router = router_partition(RouterSettings(weights={"tiebreaker_min_margin": 0.19}))
    router.hear(_adjusted("tiebreaker_base_margin", -0.02))
    assert weights_of_the_next_decision(router)["tiebreaker_base_margin"] == 0.19


def test_an_event_about_a_weight_that_is_not_regulated_is_ignored():
    router = router_partition()
    router.hear(_adjusted("IGNORE.base", 0.02))
    assert len(router.state.overlays) == 0


def _adjusted(parameter: str, offset: float) -> Adjusted:
    return Adjusted(
        parameter=parameter,
        before=0.0,
        after=0.0,
        delta=offset,
        requested=offset,
        offset=offset,
        pressure="tie_breaker",
        metric_before=0.5,
    )
