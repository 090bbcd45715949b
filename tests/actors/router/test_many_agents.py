"""However many agents are corrected, a router keeps what is added for so many, and one that it dropped finds back."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.registry import ACTORS
from actors.router.settings import RouterSettings, effective_weights
from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.regulator import Adjusted, CycleCompleted, RegulatorScheduled, Reverted
from schemas.vocabulary.router import ModeSelected
from tests.actors.pipeline import Pipeline
from tests.actors.regulator.builders import DAY_MS
from tests.actors.router.builders import partition, recalled
from tests.actors.scenario import Address, Partition
from tests.each import each

KEPT = 8

words = st.sampled_from([entry_of(kind).sample for kind in (Adjusted, Reverted, RegulatorScheduled, CycleCompleted)])


def adjusted(delta: float = -0.02) -> Adjusted:
    """Return a correction of ``RESPOND.base``."""
    return msgspec.structs.replace(entry_of(Adjusted).sample, delta=delta, offset=delta)


def undone(delta: float = 0.02) -> Reverted:
    """Return the undoing of a correction of ``RESPOND.base``."""
    return msgspec.structs.replace(entry_of(Reverted).sample, delta=delta, offset=0.0)


def keeping(agents: int) -> Partition:
    """Return a router that keeps what is added for so many agents."""
    return partition(RouterSettings(profile="calibrated", agents=agents))


def tell(router: Partition, agent: str, *events: Event) -> None:
    """Let a router hear the regulator's word on an agent, a moment after what it heard before."""
    for event in events:
        router.hear(event, Address(agent=agent, session="", exchange=""), after_ms=1)


def respond_base(router: Partition, agent: str) -> float:
    """Return what the agent's next decision weighs an answer with."""
    here = Address(agent=agent, exchange=f"{agent} after {router.seq}")
    router.hear(InputReceived(text="What is the capital of Peru?"), here)
    [selected] = router.when(recalled(), here)
    assert isinstance(selected, ModeSelected)
    return selected.weights["RESPOND.base"]


@given(told=st.lists(st.tuples(st.integers(0, 40), words), max_size=80))
@settings(max_examples=30, deadline=None)
def test_the_state_stays_bounded_under_any_agents(told: list[tuple[int, Event]]):
    router = keeping(KEPT)
    for number, word in told:
        tell(router, f"agent {number}", word)
        assert len(router.state.overlays) <= KEPT
        if not isinstance(word, CycleCompleted):
            assert f"agent {number}" in router.state.overlays


def test_of_an_agent_that_was_never_corrected_nothing_is_kept():
    router = keeping(KEPT)
    tell(router, "ann", entry_of(CycleCompleted).sample, RegulatorScheduled(wake_after_ms=DAY_MS))
    assert len(router.state.overlays) == 0


def test_the_agent_that_the_regulator_has_not_spoken_of_for_longest_makes_room():
    router = keeping(2)
    tell(router, "ann", adjusted())
    tell(router, "bob", adjusted())
    tell(router, "ann", entry_of(CycleCompleted).sample)
    tell(router, "cleo", adjusted())
    assert {*router.state.overlays} == {"ann", "cleo"}


def test_one_to_which_nothing_is_added_any_more_makes_room_first():
    router = keeping(2)
    tell(router, "ann", adjusted())
    tell(router, "bob", adjusted(), undone())
    tell(router, "cleo", adjusted())
    assert {*router.state.overlays} == {"ann", "cleo"}


def test_whichever_sessions_a_partition_routes_it_keeps_the_same_agents():
    first, second = keeping(2), keeping(2)
    for router, talkative in ((first, "ann"), (second, "bob")):
        tell(router, "ann", adjusted())
        tell(router, "bob", adjusted())
        respond_base(router, talkative)
        tell(router, "cleo", adjusted())
    assert {*first.state.overlays} == {*second.state.overlays}


def test_a_dropped_agent_begins_from_the_settings_and_moves_by_steps():
    router = keeping(1)
    tell(router, "ann", adjusted(), adjusted(), adjusted())
    tell(router, "bob", adjusted())
    assert respond_base(router, "ann") == 0.4
    tell(router, "ann", msgspec.structs.replace(adjusted(), offset=-0.08))
    assert respond_base(router, "ann") == 0.38


def test_a_dropped_agent_that_is_back_is_what_it_was_and_moves_from_there():
    router = keeping(1)
    tell(router, "ann", adjusted(), adjusted(), adjusted())
    tell(router, "bob", adjusted())
    tell(router, "ann", RegulatorScheduled(wake_after_ms=DAY_MS, offsets={"RESPOND.base": -0.06}))
    assert respond_base(router, "ann") == 0.34
    tell(router, "ann", undone())
    assert respond_base(router, "ann") == 0.36


def test_what_a_router_knows_it_does_not_take_from_a_regulator_that_has_begun_anew():
    router = keeping(KEPT)
    tell(router, "ann", adjusted(), adjusted(), RegulatorScheduled(wake_after_ms=DAY_MS, offsets={}))
    assert respond_base(router, "ann") == 0.36


def test_nor_one_whose_sum_still_counts_what_a_setting_had_put_beyond_the_bound():
    router = keeping(KEPT)
    tell(router, "ann", adjusted())
    router.configure(RouterSettings(profile="calibrated", weights={"RESPOND.base": 0.3}))
    tell(router, "ann", undone())
    known = respond_base(router, "ann")
    tell(router, "ann", RegulatorScheduled(wake_after_ms=DAY_MS, offsets={"RESPOND.base": -0.02}))
    assert respond_base(router, "ann") == known == 0.32


def test_a_weight_that_is_not_regulated_is_not_taken_back_up():
    router = keeping(KEPT)
    tell(router, "ann", RegulatorScheduled(wake_after_ms=DAY_MS, offsets={"IGNORE.base": 0.5, "RESPOND.base": -0.5}))
    assert respond_base(router, "ann") == 0.3
    assert "IGNORE.base" not in router.state.overlays["ann"].offsets


@each("silent_days", [3, 30])
def test_after_a_silence_in_which_a_router_dropped_it_an_agent_is_weighed_as_before_from_its_second_decision_on(
    silent_days: int,
):
    pipeline = Pipeline(ACTORS)
    pipeline.partitions["router"].configure(RouterSettings(profile="calibrated", agents=1))
    before = weights_after_a_day(pipeline, "ann")
    pipeline.advance(silent_days * DAY_MS)
    weights_after_a_day(pipeline, "bob")
    assert {*pipeline.partitions["router"].state.overlays} == {"bob"}
    [first, second] = [weights_of(pipeline, "ann", f"back {number}") for number in range(2)]
    assert first == effective_weights(RouterSettings(profile="calibrated")) != before
    assert second == before


def weights_after_a_day(pipeline: Pipeline, agent: str) -> dict[str, float]:
    """Let an agent hear statements alone for a day, and be corrected for it; return the weights from then on."""
    for number in range(12):
        weights_of(pipeline, agent, f"day {number}")
    pipeline.advance(DAY_MS)
    return weights_of(pipeline, agent, "evening")


def weights_of(pipeline: Pipeline, agent: str, exchange: str) -> dict[str, float]:
    """Let an agent be told something; return the weights that it decided with."""
    pipeline.ask(
        "The boiler in the cellar makes a noise again", Address(agent, f"{agent} {exchange}", f"{agent} {exchange}")
    )
    *_, latest = (message.event for message in pipeline.stream
                  if isinstance(message.event, ModeSelected) and message.agent == agent)  # fmt: skip
    return latest.weights
