"""The formula: R 4.1 with the design's settled weights, by the numbers they give."""

from hypothesis import given
from hypothesis import strategies as st

from actors.coherence.entropy import KnownPrecedent, Thought, contradicts, judge
from actors.coherence.settings import CoherenceSettings
from schemas.unread import Unread
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from tests.actors.coherence.builders import similar, thought, verdict
from tests.each import each

ACTIONS = ("answer", "act", "withhold")


@each("risk", [{"harm": True}, {"layer_0": True}])
def test_r4_1_any_hint_of_a_constitutional_violation_is_entropy_of_exactly_one(risk: dict[str, bool]):
    decided = verdict(thought(**risk), [similar("answer")], sci=1.0)
    assert isinstance(decided, CoherenceRejected)
    assert (decided.entropy, decided.constitutional, decided.violations) == (1.0, 1, tuple(risk))


def test_r4_1_a_flag_of_reflex_hints_at_a_violation_and_is_named():
    decided = verdict(thought(harm=True), flags=["constitutional", "weapons", "constitutional"])
    assert isinstance(decided, CoherenceRejected)
    assert decided.entropy == 1.0
    assert decided.violations == ("harm", "flag:constitutional", "flag:weapons")


@each(("least", "violations"), [(None, ()), (0.61, ()), (0.6, ("flag:weapons",))])
def test_only_flags_of_the_confidence_that_is_set_hint_at_anything(least: float | None, violations: tuple[str, ...]):
    decided = verdict(thought(), flags=["weapons"], settings=CoherenceSettings(flags_violate_from=least))
    assert decided.violations == violations
    assert isinstance(decided, CoherenceRejected) is bool(violations)


def test_r4_1_unknown_territory_in_a_coherent_swarm_is_two_sevenths():
    decided = verdict(thought(), sci=1.0)
    assert isinstance(decided, CoherencePassed)
    assert decided.entropy == 0.285714
    assert (decided.knowledge, decided.swarm, decided.similar) == (0.5, 0.0, 0)


def test_r4_1_where_all_similar_precedents_contradict_entropy_is_above_a_half():
    decided = verdict(thought("answer"), [similar("withhold"), similar("withhold")], sci=0.95)
    assert decided.entropy == 0.592857
    assert (decided.knowledge, decided.swarm, decided.similar, decided.sci) == (1.0, 0.05, 2, 0.95)


def test_r4_1_knowledge_is_the_share_of_precedents_that_contradict():
    decided = verdict(thought("answer"), [similar("answer"), similar("act"), similar("withhold"), similar("answer")])
    assert (decided.knowledge, decided.entropy) == (0.25, 0.142857)


def test_r4_1_a_stressed_swarm_raises_entropy():
    assert verdict(thought(), [similar("answer")], sci=0.3).entropy == 0.3


def test_r4_1_a_thought_that_would_affect_the_swarm_disturbs_it_by_a_fifth():
    decided = verdict(thought(affects_swarm=True), [similar("answer")], sci=0.9)
    assert (decided.swarm, decided.entropy) == (0.3, 0.128571)


def test_r4_1_the_swarm_part_is_one_at_most():
    assert verdict(thought(affects_swarm=True), sci=0.1).swarm == 1.0


def test_r4_1_without_a_measurement_the_swarm_is_coherent():
    decided = verdict(thought(), sci=None)
    assert (decided.sci, decided.swarm) == (1.0, 0.0)


def test_r4_1_contradiction_and_a_stressed_swarm_together_are_dissonant_without_a_violation():
    decided = verdict(thought(), [similar("withhold")], sci=0.4)
    assert isinstance(decided, CoherenceRejected)
    assert (decided.entropy, decided.constitutional) == (0.828571, 0)


def test_r4_1_the_threshold_is_0_8_and_entropy_of_this_very_value_passes():
    assert CoherenceSettings().entropy_threshold == 0.8
    at_the_limit = CoherenceSettings(entropy_threshold=0.285714)
    assert isinstance(verdict(thought(), settings=at_the_limit), CoherencePassed)
    below = CoherenceSettings(entropy_threshold=0.285713)
    assert isinstance(verdict(thought(), settings=below), CoherenceRejected)


def test_r7_the_latency_budget_of_30_ms_is_a_setting():
    assert CoherenceSettings().latency_budget_ms == 30.0


@each(
    ("action", "outcome", "proposed", "contradicting"),
    [
        ("answer", "benign", "answer", False),
        ("answer", "benign", "act", False),
        ("act", "benign", "answer", False),
        ("withhold", "benign", "withhold", False),
        ("withhold", "benign", "answer", True),
        ("withhold", "benign", "act", True),
        ("answer", "benign", "withhold", True),
        ("answer", "harmful", "answer", True),
        ("act", "harmful", "answer", True),
        ("withhold", "harmful", "withhold", True),
        ("answer", "harmful", "withhold", True),
    ],
)
def test_r4_1_a_precedent_supports_a_thought_only_where_the_same_was_done_and_ended_well(
    action: str, outcome: str, proposed: str, contradicting: bool
):
    assert contradicts(KnownPrecedent(action, outcome), proposed) is contradicting  # type: ignore[arg-type]


def test_what_is_known_to_do_harm_weighs_more_than_knowing_nothing():
    known, unknown = verdict(thought(), [similar("answer", "harmful")]), verdict(thought())
    assert known.entropy > unknown.entropy


thoughts = st.builds(
    Thought, st.sampled_from(ACTIONS), st.booleans(), st.lists(st.sampled_from(["harm", "layer_0"])).map(tuple)
)
known = st.lists(
    st.builds(KnownPrecedent, st.sampled_from(ACTIONS), st.sampled_from(["benign", "harmful"])), max_size=8
)
shares = st.floats(0.0, 1.0)


@given(thoughts, known, st.lists(st.sampled_from(["a", "b"]), max_size=2), shares)
def test_r4_1_every_number_is_a_share_and_the_parts_give_the_entropy(
    about: Thought, precedents: list[KnownPrecedent], flags: list[str], sci: float
):
    decided = judge(about, precedents, flags, sci, CoherenceSettings())
    assert all(0.0 <= each <= 1.0 for each in (decided.entropy, decided.knowledge, decided.swarm))
    violated = bool(about.violations or flags)
    expected = 1.0 if violated else round((0.4 * decided.knowledge + 0.3 * decided.swarm) / 0.7, 6)
    assert decided.entropy == expected
    assert decided.constitutional == int(violated)
    assert isinstance(decided, CoherenceRejected) is (decided.entropy > 0.8)


@given(thoughts, known, shares, shares)
def test_r4_1_a_less_coherent_swarm_never_lowers_entropy(
    about: Thought, precedents: list[KnownPrecedent], one: float, other: float
):
    worse, better = sorted((one, other))
    settings = CoherenceSettings()
    assert (
        judge(about, precedents, (), worse, settings).entropy >= judge(about, precedents, (), better, settings).entropy
    )


def test_what_was_not_looked_at_raises_entropy_by_its_share_of_what_is_missing():
    decided = verdict(thought(), unread=0.3)
    assert isinstance(decided, CoherencePassed)
    assert decided.entropy == round(0.285714 + 0.3 * (1 - 0.285714), 6)
    assert (decided.unread, decided.violations, decided.constitutional) == (0.3, (), 0)
    assert decided.unread_of is not None
    assert (decided.unread_of.what, decided.unread_of.layer) == ("base64", "document[1]")


@each(("unread", "entropy"), [(0.75, 0.821429), (0.9, 1.0), (1.0, 1.0)])
def test_an_input_too_much_of_which_was_not_looked_at_is_rejected_for_that(unread: float, entropy: float):
    decided = verdict(thought(), unread=unread)
    assert isinstance(decided, CoherenceRejected)
    assert (decided.entropy, decided.violations, decided.constitutional) == (entropy, ("unread",), 0)


@each("who", ["reflex", "intuition"])
def test_of_several_bounds_the_heaviest_counts_whoever_met_it(who: str):
    decided = verdict(thought(), unread=0.95, unread_by=who)
    assert isinstance(decided, CoherenceRejected)
    assert decided.unread_of == Unread(layer="document[1]", what="base64", amount=9, why="decoding", share=0.95)


@given(st.floats(0, 1), st.floats(0, 1))
def test_nothing_left_unread_ever_lowers_entropy(one: float, other: float):
    low, high = sorted((round(one, 6), round(other, 6)))
    assert verdict(thought(), unread=low).entropy <= verdict(thought(), unread=high).entropy
