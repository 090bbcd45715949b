"""Which concepts go first: those that a search through all of them would find, whatever order was kept from before."""

from hypothesis import given
from hypothesis import strategies as st

from actors.memory.layers.concepts import Concept, Graph, StalenessOrder, with_occurrence, without_episode
from actors.memory.settings import MemorySettings
from schemas.persistent import Map

TERMS = [f"t{number}" for number in range(12)]
talks = st.lists(st.lists(st.sampled_from(TERMS), unique=True, max_size=5), min_size=1, max_size=30)


def searched(graph: Graph, terms: list[str], episode: int, settings: MemorySettings) -> Graph:
    """Return the graph after a meeting, by looking through all of it."""
    whole = with_occurrence(Map(graph), terms, episode, MemorySettings(concepts=10_000, meetings=settings.meetings))
    ranked = sorted(whole, key=lambda term: (whole[term].episodes[-1], whole[term].number))
    return Map({term: whole[term] for term in ranked[max(0, len(whole) - settings.concepts) :]})


@given(
    talk=talks, concepts=st.integers(1, 8), forgotten=st.sets(st.integers(1, 30)), branches=st.sets(st.integers(1, 30))
)
def test_what_goes_is_what_a_search_finds(
    talk: list[list[str]], concepts: int, forgotten: set[int], branches: set[int]
) -> None:
    settings = MemorySettings(concepts=concepts, meetings=2)
    graph: Graph = Map()
    for number, terms in enumerate(talk, 1):
        if number in forgotten:
            graph = without_episode(graph, list(graph), number - 1)
        if number in branches:
            with_occurrence(graph, ["another", "course"], number, settings)
        expected = searched(graph, terms, number, settings)
        graph = with_occurrence(graph, terms, number, settings)
        assert graph == expected


def test_an_order_that_is_used_up_is_made_anew() -> None:
    graph = Map({"new": Concept(2, (5,)), "old": Concept(1, (4,))})
    order = StalenessOrder(graph)
    found = [order.next_of(graph) for _ in range(3)]
    assert found == ["old", "new", "old"]
