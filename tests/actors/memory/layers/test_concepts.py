"""The graph of concepts: strength, confidence, links, spreading, and what is dropped."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.memory.layers.concepts import (
    Graph,
    links_of,
    neighbours,
    rebuild_graph,
    recent_links,
    spread,
    strength_of,
    with_occurrence,
    without_episode,
)
from actors.memory.layers.episodes import Episode
from actors.memory.settings import MemorySettings
from schemas.persistent import Map
from tests.each import each

HALF_LIFE_NS = 1_000_000 * 1000
SETTINGS = MemorySettings(half_life_ms=1000)

Kept = dict[int, Episode]


def episode(terms: str, at_ns: int = 0) -> Episode:
    return Episode(
        session="s", topic="t", text=terms, salience=0.0, at_ns=at_ns, model="", embedding=b"",
        concepts=tuple(terms.split()),
    )  # fmt: skip


def graph_of(*exchanges: str, settings: MemorySettings = SETTINGS) -> tuple[Graph, Kept]:
    """Return the graph after exchanges, each given by its terms, one half-life apart, and the episodes."""
    kept = {number: episode(terms, number * HALF_LIFE_NS) for number, terms in enumerate(exchanges, 1)}
    graph: Graph = Map()
    for number, told in kept.items():
        graph = with_occurrence(graph, told.concepts, number, settings)
    return graph, kept


def test_a_meeting_gives_one_and_decays():
    graph, kept = graph_of("peru", "peru")
    assert strength_of(graph["peru"], kept, 2 * HALF_LIFE_NS, SETTINGS) == 1.5
    assert strength_of(graph["peru"], kept, 3 * HALF_LIFE_NS, SETTINGS) == 0.75


def test_only_the_latest_meetings_count():
    graph, kept = graph_of(*["peru"] * 30)
    assert graph["peru"].episodes == tuple(range(19, 31))
    assert strength_of(graph["peru"], kept, 0, SETTINGS) == 12.0


@each(("meetings", "confidence"), [(1, 0.333333), (2, 0.5), (4, 0.666667), (8, 0.8)])
def test_confidence_grows_with_meetings(meetings: int, confidence: float):
    assert graph_of(*["peru"] * meetings)[0]["peru"].confidence == confidence


def test_concepts_met_together_are_linked_by_the_share_of_their_meetings():
    graph, kept = graph_of("peru lima", "peru lima", "peru llama", "peru")
    assert links_of("peru", graph, kept) == {"lima": 0.5, "llama": 0.25}
    assert links_of("lima", graph, kept) == {"peru": 1.0}
    assert neighbours("peru", graph, kept, 1) == ("lima",)


def test_a_number_names_one_concept_and_stays_with_it():
    graph, _ = graph_of("peru lima", "lima llama", "peru")
    assert {term: concept.number for term, concept in graph.items()} == {"peru": 32, "lima": 33, "llama": 65}


def test_activation_spreads_over_two_hops():
    """mode-router: Innate Skills, associate spreading activation from seed concepts."""
    # lima: 0.7 x 1; river: 0.7 x 0.7 x 1/2; fish would be a third hop.
    graph, kept = graph_of("peru lima", "lima river", "river fish")
    assert spread(graph, kept, ["peru"], SETTINGS) == {"lima": 0.7, "river": 0.245}


def test_the_stronger_of_two_ways_counts():
    graph, kept = graph_of("peru lima river", "peru lima")
    assert spread(graph, kept, ["peru"], SETTINGS) == {"lima": 0.7, "river": 0.35}


def test_seeds_are_left_out_and_unknown_ones_do_nothing():
    graph, kept = graph_of("peru lima")
    assert spread(graph, kept, ["peru", "lima", "quito"], SETTINGS) == {}


def test_depth_and_spread_are_settings():
    graph, kept = graph_of("peru lima", "lima river", "river fish")
    further = msgspec.structs.replace(SETTINGS, depth=3, spread=1.0)
    assert spread(graph, kept, ["peru"], further) == {"lima": 1.0, "river": 0.5, "fish": 0.25}


def test_those_not_met_for_longest_go_when_there_are_too_many():
    few = msgspec.structs.replace(SETTINGS, concepts=2)
    graph, kept = graph_of("old", "peru", "lima", "peru river", settings=few)
    assert set(graph) == {"peru", "river"}
    assert links_of("peru", graph, kept) == {"river": 0.5}


def test_a_concept_goes_with_its_last_episode():
    graph, kept = graph_of("peru lima", "peru")
    left = without_episode(graph, kept[1].concepts, 1)
    assert {term: concept.episodes for term, concept in left.items()} == {"peru": (2,)}
    assert len(without_episode(left, kept[2].concepts, 2)) == 0


TERMS = [f"t{number}" for number in range(9)]
exchanges = st.lists(st.lists(st.sampled_from(TERMS), unique=True, max_size=5).map(" ".join), max_size=25)


@given(exchanges, st.integers(1, 9), st.integers(1, 4))
def test_bounds_hold_and_every_meeting_is_one_whatever_is_met(talk: list[str], concepts: int, meetings: int):
    settings = msgspec.structs.replace(SETTINGS, concepts=concepts, meetings=meetings)
    graph, kept = graph_of(*talk, settings=settings)
    assert len(graph) <= concepts
    assert len({concept.number for concept in graph.values()}) == len(graph)
    for term, concept in graph.items():
        assert 0 < len(concept.episodes) <= meetings
        assert list(concept.episodes) == sorted({*concept.episodes})
        assert all(term in kept[number].concepts for number in concept.episodes)
        assert all(0 < share <= 1.0 for share in links_of(term, graph, kept).values())


@given(exchanges, st.integers(1, 4))
def test_a_graph_made_anew_is_the_one_that_grew(talk: list[str], meetings: int):
    settings = msgspec.structs.replace(SETTINGS, meetings=meetings)
    graph, kept = graph_of(*talk, settings=settings)
    assert rebuild_graph(kept, settings) == graph


@given(exchanges, st.sampled_from(TERMS), st.lists(st.integers(0, 99 * HALF_LIFE_NS), min_size=2, max_size=2))
def test_strength_never_grows_without_a_meeting(talk: list[str], term: str, times: list[int]):
    graph, kept = graph_of(*talk)
    if term in graph:
        sooner, later = (strength_of(graph[term], kept, now_ns, SETTINGS) for now_ns in sorted(times))
        assert later <= sooner


def test_what_was_last_met_together_is_linked_however_often_it_was_met():
    graph, kept = graph_of("ada llama", *[f"ada other{number}" for number in range(10)], "ada snow")
    assert recent_links("ada", graph, kept)["snow"] == 0.6
    assert recent_links("ada", graph, kept)["llama"] < 0.001
    assert links_of("ada", graph, kept)["snow"] < 0.1


def test_links_by_the_latest_meetings_are_shares_of_one():
    graph, kept = graph_of("ada llama", "ada snow", "ada llama")
    assert recent_links("ada", graph, kept) == {"llama": 0.76, "snow": 0.24}
    assert recent_links("snow", graph, kept) == {"ada": 1.0}
