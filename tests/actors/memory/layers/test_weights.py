"""What reviews make of memories: their weights, how recall heeds them, and how they go."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.memory.agent_memory import AgentMemory, Weight
from actors.memory.settings import MemorySettings
from actors.memory.weights import weight_of, weighted_energy, with_weight
from schemas.persistent import Map
from schemas.vocabulary.self_review import SeatAdded
from tests.actors.memory.builders import ask, forget, ids, mind, partition, talk
from tests.actors.scenario import Address, Partition
from tests.each import each

EAST, BETWEEN = (1, 0), (3, 4)
LATER = "later"


def seat(memory: Partition, entity: str, value: float, *, agent: str = "agent") -> None:
    event = SeatAdded(citizen=agent, tick=1, entity=entity, seat_type="metacog_quality", value=value)
    assert memory.when(event, Address(agent, "", "")) == []


def told(settings: MemorySettings | None = None) -> Partition:
    """Return a memory of two exchanges, equally near to the east, in a session of the past."""
    memory = partition(settings)
    talk(memory, "The bridge is closed", "e1", vector=EAST)
    talk(memory, "The tunnel is closed", "e2", vector=EAST)
    return memory


def test_a_seat_moves_how_soon_a_memory_comes_to_mind():
    memory = told()
    assert ids(ask(memory, "And?", "q1", vector=EAST, session=LATER)) == ["episode:2", "episode:1"]
    seat(memory, "episode:1", 0.05)
    found = ask(memory, "And?", "q2", vector=EAST, session=LATER).recollections
    assert [each.id for each in found] == ["episode:1", "episode:2"]
    assert found[0].energy == pytest.approx(found[1].energy * math.exp(0.05), abs=2e-6)


def test_the_weight_counts_before_the_strongest_are_taken():
    memory = told(MemorySettings(recollections=1))
    seat(memory, "episode:2", -0.1)
    assert ids(ask(memory, "And?", vector=EAST, session=LATER)) == ["episode:1"]


def test_no_seat_silences_a_memory_or_brings_up_what_does_not_bear_on_the_cue():
    memory = told(MemorySettings(floor=0.9))
    for _ in range(9):
        seat(memory, "episode:1", -1.0)
        seat(memory, "episode:2", 1.0)
    found = {each.id: each.energy for each in ask(memory, "And?", "q1", vector=EAST, session=LATER).recollections}
    assert found["episode:2"] == 1.0
    assert found["episode:1"] < 0.4
    assert ids(ask(memory, "And?", "q2", vector=(5, 12), session=LATER)) == []


def test_seats_are_averaged_and_the_average_moves_the_weight_within_bounds():
    memory = told()
    seat(memory, "episode:1", 0.2)
    assert mind(memory).weights["exchange:1"] == Weight(0.2, 0.2, 1, 2)
    seat(memory, "episode:1", -0.1)
    assert mind(memory).weights["exchange:1"] == Weight(0.05, 0.25, 2, 2)
    for _ in range(5):
        seat(memory, "episode:1", 1.0)
    assert mind(memory).weights["exchange:1"].log == 1.0


def test_a_weight_fades_evenly_over_exchanges_and_a_memory_comes_back():
    memory = told(MemorySettings(weight_fade_exchanges=4))
    seat(memory, "episode:2", -1.0)
    left = []
    for number in range(5):
        left.append(weight_of(mind(memory), "episode:2", memory.state.settings))
        talk(memory, "Nothing of that", f"meanwhile-{number}", vector=BETWEEN, session="elsewhere")
    assert left == [-1.0, -0.75, -0.5, -0.25, 0.0]
    assert ids(ask(memory, "And?", vector=EAST, session=LATER))[:2] == ["episode:2", "episode:1"]


def test_a_later_seat_moves_what_is_left_of_a_weight():
    memory = told(MemorySettings(weight_fade_exchanges=4))
    seat(memory, "episode:1", -0.4)
    for number in range(2):
        talk(memory, "Nothing of that", f"meanwhile-{number}", vector=BETWEEN)
    seat(memory, "episode:1", 0.2)
    # Half of both numbers is left: an average of -.2, moved half of the way to .2, and a log of -.2.
    assert mind(memory).weights["exchange:1"] == Weight(0.0, -0.2, 2, 4)


@given(seats=st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 40)), min_size=1, max_size=12))
def test_whatever_reviews_said_a_weight_is_gone_after_as_many_exchanges_as_it_takes(seats: list[tuple[float, int]]):
    settings, known = MemorySettings(weight_fade_exchanges=30), mind(told())
    for value, exchanges in seats:
        known = with_weight(known, "episode:1", value, settings)
        now = weight_of(known, "episode:1", settings)
        assert now is not None
        assert abs(now) <= 1.0
        later = msgspec.structs.replace(known, exchanges=known.exchanges + exchanges)
        faded = weight_of(later, "episode:1", settings)
        assert faded is not None
        assert abs(faded) <= abs(now)
        assert exchanges < 30 or faded == 0.0
        known = later


def test_a_turn_a_gist_and_an_episode_of_an_exchange_are_one_memory():
    memory = told()
    for entity in ("turn:1", "gist:1", "episode:1"):
        seat(memory, entity, 0.1)
    assert list(mind(memory).weights) == ["exchange:1"]
    assert ids(ask(memory, "And?", vector=BETWEEN)) == ["turn:1", "turn:2"]


def test_facts_and_concepts_have_weights_too():
    memory = partition()
    talk(memory, "My name is Ada", "e1")
    before = {each.id: each.energy for each in ask(memory, "Say my name on the phone", "q1").recollections}
    seat(memory, "fact:1", -0.5)
    after = {each.id: each.energy for each in ask(memory, "Say my name on the phone", "q2").recollections}
    assert after["fact:1"] == pytest.approx(before["fact:1"] * math.exp(-0.5), abs=1e-6)


@each("entity", ["architect", "fact:9", "episode:", "episode:99", "episode:²", "", ":1", "fact:-1"])
def test_a_seat_on_what_is_no_memory_changes_nothing(entity: str):
    memory = told()
    before = memory.state_hash()
    seat(memory, entity, 1.0)
    assert memory.state_hash() == before


def test_another_agent_s_seat_is_none_of_this_one_s():
    memory = told()
    seat(memory, "episode:1", 1.0, agent="bob")
    assert not mind(memory).weights
    assert "bob" not in memory.state.minds


def test_a_forgotten_memory_takes_its_weight_along():
    memory = told()
    talk(memory, "The harbour is open", "e3", vector=EAST, session="kept")
    for entity in ("episode:1", "episode:3"):
        seat(memory, entity, 0.5)
    forget(memory, session="session")
    assert list(mind(memory).weights) == ["exchange:3"]
    forget(memory, session="kept")
    assert not mind(memory).weights


def test_those_without_a_seat_for_longest_lose_their_weight():
    memory = told(MemorySettings(weights=1))
    seat(memory, "episode:1", 0.5)
    seat(memory, "episode:2", 0.5)
    assert list(mind(memory).weights) == ["exchange:2"]


@given(st.floats(-1, 1, allow_nan=False), st.floats(0, 1, allow_nan=False))
def test_an_energy_is_multiplied_by_the_exponential_of_the_weight(log: float, energy: float):
    known = AgentMemory(weights=Map({"fact:1": Weight(0.0, log, 1)}))
    assert weighted_energy(energy, known, "fact", 1, MemorySettings()) == pytest.approx(
        min(1.0, energy * math.exp(log)), abs=1e-6
    )
    assert weighted_energy(energy, known, "fact", 2, MemorySettings()) == energy
