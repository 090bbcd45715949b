"""The score of a prompt and the best swap: the source's five components, exactly, for any input."""

import math
from fractions import Fraction
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.self_review.counterfactual import Swap, best_swap
from actors.self_review.score import Grade, geometric_mean, grade_of, tick_numbers_of
from actors.self_review.similarity import MICRO, cosines, embedding_vectors, term_vectors
from actors.self_review.tick import Tick, tick_of
from schemas.vocabulary.loops import ObservedEntity, TickObserved
from tests.actors.self_review.builders import GOOD, tick
from tests.each import each

START = 0.7


def graded(event: TickObserved, **priors: float) -> Grade:
    return grade_of(tick_numbers_of(tick_of(event, 0.0), priors, START))


def swapped(event: TickObserved, **priors: float) -> Swap | None:
    seen = tick_of(event, 0.0)
    numbers = tick_numbers_of(seen, priors, START)
    return best_swap(numbers, grade_of(numbers), seen.budget)


def part(
    name: str, *terms: str, energy: float = 0.5, tokens: int = 100, centroid: tuple[float, ...] = ()
) -> ObservedEntity:
    return ObservedEntity(id=name, energy=energy, tokens=tokens, terms=terms, centroid=centroid)


# --- the five components (S, "Self-Review Score")


def test_relevance_is_half_the_cosine_and_half_the_jaccard_similarity_of_terms():
    event = tick(
        stimulus_embedding=(1.0, 0.0),
        context_embedding=(0.6, 0.8),
        stimulus_terms=("a", "b", "c"),
        context_terms=("b", "c", "d"),
        chosen=(part("one"),),
    )
    assert graded(event).relevance == 0.5 * 600_000 + 0.5 * 500_000


def test_a_cosine_below_nothing_counts_as_nothing():
    event = tick(
        stimulus_embedding=(1.0,), context_embedding=(-1.0,), stimulus_terms=("a",), chosen=(part("one", "a"),)
    )
    assert graded(event).relevance == 500_000


def test_without_a_given_context_its_embedding_is_the_mean_of_its_entities():
    chosen = (part("one", centroid=(2.0, 0.0)), part("two", centroid=(0.0, 5.0)))
    event = tick(stimulus_embedding=(1.0, 0.0), stimulus_terms=("a",), chosen=chosen)
    assert graded(event).relevance == round(0.5 * math.sqrt(0.5) * MICRO)


def test_without_embeddings_the_terms_stand_in():
    assert graded(GOOD).relevance > 950_000
    assert graded(tick(stimulus_terms=("quarry",))).relevance < 150_000


def test_energy_consistency_is_one_less_the_mean_difference_of_the_shares():
    chosen = (
        part("one", energy=0.6, tokens=30),
        part("two", energy=0.2, tokens=10),
        part("three", energy=0.2, tokens=60),
    )
    assert graded(tick(chosen=chosen)).energy_consistency == round((1 - (0.3 + 0.1 + 0.4) / 3) * MICRO)


@each("missing", ["energy", "tokens"])
def test_of_nothing_all_entities_have_the_same_share(missing: str):
    chosen = tuple(msgspec.structs.replace(each, **{missing: 0}) for each in (part("one"), part("two")))
    assert graded(tick(chosen=chosen)).energy_consistency == MICRO


def test_redundancy_is_the_share_of_lines_that_identity_and_thought_have_in_common():
    found = graded(tick(identity_lines=("I test.", "I doubt."), thought_lines=("i  test.", "Is it so?")))
    assert found.redundancy == round(MICRO / 3)
    assert graded(GOOD).redundancy == 0, "where there are no lines, none was copied"


def test_diversity_is_one_less_the_mean_similarity_of_two_entities():
    chosen = (part("one", centroid=(1.0, 0.0)), part("two", centroid=(0.6, 0.8)), part("three", centroid=(0.0, 1.0)))
    assert graded(tick(chosen=chosen)).diversity == MICRO - round((0.6 + 0.8) / 3 * MICRO)
    assert graded(tick(chosen=chosen[:1])).diversity == MICRO, "one alone repeats nobody"


def test_outcome_prior_is_the_mean_of_what_the_entities_were_worth():
    assert graded(GOOD, validator=0.9, docs_sync=0.4).outcome_prior == 650_000
    assert graded(GOOD, validator=0.9).outcome_prior == 800_000, "an unknown entity is worth what a good prompt is"


def test_the_score_of_the_source_s_sample_is_the_geometric_mean_of_its_five_dimensions():
    assert geometric_mean((830_000, 920_000, 880_000, 710_000, 640_000)) == 788_783


def test_no_part_makes_up_for_another():
    assert geometric_mean((MICRO, MICRO, 0, MICRO, MICRO)) == 0
    assert geometric_mean((MICRO,) * 5) == MICRO


millionths = st.integers(0, MICRO)


@given(st.tuples(millionths, millionths, millionths, millionths, millionths))
def test_the_geometric_mean_is_rounded_exactly(parts: tuple[int, ...]):
    found, product = geometric_mean(parts), math.prod(parts)
    assert min(parts) <= found <= max(parts)
    assert (found - Fraction(1, 2)) ** 5 <= product < (found + Fraction(1, 2)) ** 5 or found == 0


# --- the counterfactual (S, "Counterfactual Evaluation")


words = st.lists(st.sampled_from(["tests", "docs", "layers", "tasks", "roof", "canoe"]), max_size=4).map(tuple)
floats = st.floats(-2, 2, allow_nan=False, width=32)
embeddings = st.just(()) | st.tuples(floats, floats, floats)
parts = st.builds(
    ObservedEntity,
    id=st.sampled_from("abcdefghij"),
    energy=st.floats(0, 1, allow_nan=False),
    tokens=st.integers(0, 300) | st.just(2**62),
    centroid=embeddings,
    terms=words,
)
ticks = st.builds(
    TickObserved,
    identity_lines=words,
    thought_lines=words,
    stimulus_embedding=embeddings,
    context_embedding=embeddings,
    stimulus_terms=words,
    context_terms=words,
    chosen=st.lists(parts, min_size=1, max_size=5).map(tuple),
    candidates=st.lists(parts, max_size=5).map(tuple),
    token_budget=st.sampled_from([0, 0, 100, 500]),
)
many = settings(max_examples=150, deadline=None)


def regrade(seen: Tick, out: int, into: int, priors: dict[str, float]) -> int:
    """Return the score of a prompt that has one entity in the place of another from the beginning."""
    chosen, candidates = list(seen.chosen), list(seen.candidates)
    chosen[out], candidates[into] = candidates[into], chosen[out]
    other = msgspec.structs.replace(seen, chosen=tuple(chosen), candidates=tuple(candidates))
    return grade_of(tick_numbers_of(other, priors, START)).score


@given(ticks, st.dictionaries(st.sampled_from("abcdefghij"), st.floats(0, 1, allow_nan=False)))
@many
def test_the_best_swap_is_that_of_trying_every_one(event: TickObserved, priors: dict[str, float]):
    seen = msgspec.structs.replace(tick_of(event, 0.0), context_embedding=(), context_terms=frozenset())
    numbers = tick_numbers_of(seen, priors, START)
    before, found = grade_of(numbers), best_swap(numbers, grade_of(numbers), seen.budget)
    tried = {}
    for out, gone in enumerate(seen.chosen):
        for into, come in enumerate(seen.candidates):
            tokens = sum(each.tokens for each in seen.chosen) - gone.tokens + come.tokens
            if not seen.budget or tokens <= seen.budget:
                tried[gone.id, come.id] = regrade(seen, out, into, priors)
    best = max(tried.values(), default=0)
    if found is None:
        assert best <= before.score
    else:
        assert best == before.score + found.gain == tried[found.out, found.into]


@given(ticks)
@many
def test_every_part_and_the_gain_lie_between_0_and_1_whatever_comes_in(event: TickObserved):
    found, swap = graded(event), swapped(event)
    assert all(0 <= value <= MICRO for value in msgspec.structs.astuple(found))
    assert swap is None or 0 < swap.gain <= MICRO - found.score


def test_a_swap_stays_within_the_token_budget():
    better = part("better", "tests", tokens=150)
    event = tick(chosen=(part("worse", "roof"), part("docs", "docs")), candidates=(better,))
    assert swapped(event) is not None
    assert swapped(msgspec.structs.replace(event, token_budget=249)) is None
    assert swapped(msgspec.structs.replace(event, token_budget=250)) is not None


def test_a_given_context_is_shifted_by_the_two_entities_of_a_swap():
    chosen = (part("one", centroid=(1.0, 0.0)),)
    event = tick(
        stimulus_embedding=(0.0, 1.0),
        context_embedding=(1.0, 0.0),
        stimulus_terms=("a",),
        context_terms=("a",),
        chosen=chosen,
        candidates=(part("two", centroid=(0.0, 1.0)),),
    )
    swap = swapped(event)
    assert swap is not None
    assert swap.gain == geometric_mean((MICRO, MICRO, MICRO, MICRO, 700_000)) - graded(event).score


def test_no_swap_where_none_is_better():
    assert swapped(tick(candidates=(part("worse", "roof"),))) is None


def test_the_largest_tick_there_may_be_is_graded_whole():
    chosen = tuple(part(f"c{number}", f"word{number}") for number in range(64))
    candidates = tuple(part(f"k{number}", f"word{number % 64}") for number in range(256))
    event = tick(stimulus_terms=("word7", "better"), chosen=chosen, candidates=(*candidates[:255], part("x", "better")))
    swap = swapped(event)
    assert swap is not None
    assert swap.into == "x"


# --- likeness


def test_cosines_are_exact_for_rows_however_they_are_scaled():
    one, two = cosines(embedding_vectors([(3.0, 4.0), (0.3, 0.4)])).tolist()
    assert one == two == [MICRO, MICRO]


def test_an_embedding_of_another_width_or_of_nothing_is_like_no_other():
    found = cosines(embedding_vectors([(1.0, 0.0), (1.0,), (), (0.0, 0.0)])).tolist()
    assert found[0] == [MICRO, 0, 0, 0]
    assert not any(map(any, found[1:]))


def test_words_of_one_stem_are_somewhat_alike_and_the_same_words_wholly():
    same, near, far = cosines(term_vectors([("testing",), ("testing",), ("tester",), ("canoe",)]))[0][1:]
    assert same == MICRO > near > 300_000 > far


extreme: Any = st.sampled_from([0.0, 5e-324, -5e-324, 1e308, -1e308, 1.0])


@given(st.lists(st.lists(extreme, max_size=4).map(tuple), max_size=5))
def test_cosines_of_any_numbers_stay_within_bounds(rows: list[tuple[float, ...]]):
    assert all(-MICRO <= cosine <= MICRO for row in cosines(embedding_vectors(rows)) for cosine in row)
