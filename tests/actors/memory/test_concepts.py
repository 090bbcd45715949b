"""The graph of concepts: strength, confidence, links, spreading, and what is dropped."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.memory.concepts import MICRO, STRONGEST, Graph, met, pruned, spread, without
from actors.memory.settings import MemorySettings
from schemas.persistent import Map

HALF_LIFE_NS = 1_000_000 * 1000
SETTINGS = MemorySettings(half_life_ms=1000)


def graph_of(*exchanges: str, settings: MemorySettings = SETTINGS) -> Graph:
    """Return the graph after exchanges, each given by its terms, at the same time."""
    graph: Graph = Map()
    named = 0
    for episode, terms in enumerate(exchanges, 1):
        graph, named = met(graph, tuple(terms.split()), episode, named, 0, settings)
    return graph


def test_a_meeting_adds_one_to_what_is_left_of_the_strength():
    graph, _ = met(Map(), ("peru",), 1, 0, 0, SETTINGS)
    graph, _ = met(graph, ("peru",), 2, 1, HALF_LIFE_NS, SETTINGS)
    assert graph["peru"].strength == MICRO * 3 // 2
    assert graph["peru"].strength_at(2 * HALF_LIFE_NS, SETTINGS) == MICRO * 3 // 4


def test_strength_has_a_ceiling():
    assert graph_of(*["peru"] * 30)["peru"].strength == STRONGEST


@pytest.mark.parametrize(("meetings", "confidence"), [(1, 0.333333), (2, 0.5), (4, 0.666667), (8, 0.8)])
def test_confidence_grows_with_meetings(meetings: int, confidence: float):
    assert graph_of(*["peru"] * meetings)["peru"].confidence == confidence


def test_concepts_met_together_are_linked_by_the_share_of_their_meetings():
    graph = graph_of("peru lima", "peru lima", "peru llama", "peru")
    assert {link.term: graph["peru"].share_of(link) for link in graph["peru"].links} == {"lima": 0.5, "llama": 0.25}
    assert {link.term: graph["lima"].share_of(link) for link in graph["lima"].links} == {"peru": 1.0}


def test_numbers_are_given_in_the_order_of_meeting():
    graph, named = met(Map(), ("peru", "lima"), 1, 5, 0, SETTINGS)
    assert (graph["peru"].number, graph["lima"].number, named) == (6, 7, 7)


def test_activation_spreads_over_two_hops():
    graph = graph_of("peru lima", "lima river", "river fish")
    # lima: 0.7 x 1; river: 0.7 x 0.7 x 1/2; fish would be a third hop.
    assert spread(graph, ["peru"], SETTINGS) == {"lima": 0.7, "river": 0.245}


def test_the_stronger_of_two_ways_counts():
    graph = graph_of("peru lima river", "peru lima")
    assert spread(graph, ["peru"], SETTINGS) == {"lima": 0.7, "river": 0.35}


def test_seeds_are_left_out_and_unknown_ones_do_nothing():
    graph = graph_of("peru lima")
    assert spread(graph, ["peru", "lima", "quito"], SETTINGS) == {}


def test_depth_and_spread_are_settings():
    graph = graph_of("peru lima", "lima river", "river fish")
    further = msgspec.structs.replace(SETTINGS, depth=3, spread=1.0)
    assert spread(graph, ["peru"], further) == {"lima": 1.0, "river": 0.5, "fish": 0.25}


def test_the_weakest_go_when_there_are_too_many():
    few = msgspec.structs.replace(SETTINGS, concepts=2)
    graph, named = met(Map(), ("old",), 1, 0, 0, few)
    graph, named = met(graph, ("peru", "lima"), 2, named, 10 * HALF_LIFE_NS, few)
    assert set(graph) == {"peru", "lima"}


def test_the_weakest_links_go_on_both_sides():
    one = msgspec.structs.replace(SETTINGS, links=1)
    graph = graph_of("peru lima", "peru lima", "peru llama", settings=one)
    assert {term: [link.term for link in graph[term].links] for term in graph} == {
        "peru": ["lima"], "lima": ["peru"], "llama": []
    }  # fmt: skip


def test_a_concept_goes_with_its_last_episode_and_its_links_too():
    graph = graph_of("peru lima", "peru")
    left = pruned(graph, list(graph), {1})
    assert set(left) == {"peru"}
    assert left["peru"].links == ()
    assert set(pruned(graph, list(graph), {1, 2})) == set()


def test_dropping_a_concept_drops_the_links_to_it():
    assert without(graph_of("peru lima"), ["peru"])["lima"].links == ()


TERMS = [f"t{number}" for number in range(9)]
exchanges = st.lists(
    st.tuples(st.lists(st.sampled_from(TERMS), unique=True, max_size=5), st.integers(0, 5 * HALF_LIFE_NS)), max_size=25
)


@given(exchanges, st.integers(1, 6), st.integers(1, 4), st.sets(st.integers(1, 25)))
def test_bounds_hold_and_links_are_mutual_whatever_is_met_and_dropped(
    talk: list[tuple[list[str], int]], concepts: int, links: int, gone: set[int]
):
    settings = msgspec.structs.replace(SETTINGS, concepts=concepts, links=links)
    graph: Graph = Map()
    now_ns = named = 0
    for episode, (terms, waited_ns) in enumerate(talk, 1):
        now_ns += waited_ns
        graph, named = met(graph, tuple(terms), episode, named, now_ns, settings)
        sound(graph, settings)
    left = pruned(graph, list(graph), gone)
    sound(left, settings)
    assert all(gone.isdisjoint(concept.episodes) for concept in left.values())


def sound(graph: Graph, settings: MemorySettings) -> None:
    assert len(graph) <= settings.concepts
    assert len({concept.number for concept in graph.values()}) == len(graph)
    for term, concept in graph.items():
        assert len(concept.links) <= settings.links
        assert concept.episodes
        assert [link.term for link in concept.links] == sorted({link.term for link in concept.links})
        for link in concept.links:
            (back,) = (each for each in graph[link.term].links if each.term == term)
            assert (back.together, back.episodes) == (link.together, link.episodes)
            assert 0 < concept.share_of(link) <= 1.0
