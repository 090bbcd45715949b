"""Three outcomes, and what fails closed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors.arbiter.ruling import Ruling, rule
from actors.arbiter.settings import ArbiterSettings
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterImmediate
from schemas.vocabulary.intuition import Similar
from tests.actors.arbiter.builders import similar
from tests.each import each

NINE = "At nine."


def ruling(*precedents: Similar, situation: str | None = "general", risk: bool = False, **changed: Any) -> Ruling:
    return rule(precedents, situation, risk, ArbiterSettings(**changed))


def test_r5_2_an_approved_precedent_answers_immediately():
    ruled = ruling(similar(0.95, answer=NINE))
    assert ruled == ArbiterImmediate(precedent="p-1", similarity=0.95, answer=NINE)


def test_r5_2_without_a_precedent_the_input_is_escalated():
    ruled = ruling()
    assert isinstance(ruled, ArbiterEscalated)
    assert (ruled.reason, ruled.nearest, ruled.similarity) == ("no_precedent", "", 0.0)


def test_a_confirmed_constitutional_risk_is_denied_whatever_is_approved():
    ruled = ruling(similar(1.0, answer=NINE), risk=True)
    assert ruled == ArbiterDenied(reason="constitutional_risk", precedent="", similarity=0.0)


def test_r5_2_a_harmful_precedent_that_is_close_is_denied():
    ruled = ruling(similar(0.75, outcome="harmful"))
    assert ruled == ArbiterDenied(reason="harmful_precedent", precedent="p-1", similarity=0.75)


def test_a_harmful_precedent_decides_against_a_nearer_approved_one():
    ruled = ruling(similar(0.95, answer=NINE), similar(0.8, name="p-2", outcome="harmful"))
    assert isinstance(ruled, ArbiterDenied)
    assert ruled.precedent == "p-2"


def test_a_harmful_precedent_that_is_not_close_denies_nothing():
    ruled = ruling(similar(0.749, outcome="harmful"))
    assert isinstance(ruled, ArbiterEscalated)
    assert (ruled.reason, ruled.nearest) == ("precedent_not_close", "p-1")


@each(("similarity", "kind"), [(0.9, ArbiterImmediate), (0.899999, ArbiterEscalated)])
def test_r5_2_a_precedent_answers_from_a_similarity_of_0_9_on(similarity: float, kind: type):
    assert isinstance(ruling(similar(similarity, answer=NINE)), kind)


def test_a_precedent_of_another_situation_type_does_not_answer():
    ruled = ruling(similar(1.0, answer=NINE, situation="by phone"))
    assert isinstance(ruled, ArbiterEscalated)
    assert ruled.reason == "precedent_not_close"


def test_a_precedent_without_a_recorded_answer_is_escalated_as_such():
    ruled = ruling(similar(0.99))
    assert isinstance(ruled, ArbiterEscalated)
    assert (ruled.reason, ruled.nearest, ruled.similarity) == ("precedent_without_answer", "p-1", 0.99)


def test_the_words_of_a_deed_do_not_stand_for_the_deed():
    assert isinstance(ruling(similar(0.99, action="act", answer="Your order is cancelled.")), ArbiterEscalated)


def test_a_recorded_refusal_is_an_answer():
    assert isinstance(ruling(similar(0.99, action="withhold", answer="We do not say.")), ArbiterImmediate)


def test_the_most_similar_answer_is_given_and_of_equals_the_first_by_name():
    near = [similar(0.95, name=name, answer=name) for name in ("b", "a")]
    assert ruling(similar(0.94, name="0", answer="0"), *near) == ArbiterImmediate(
        precedent="a", similarity=0.95, answer="a"
    )


@each(("precedents", "situation"), [(None, "general"), ((), None), (None, None)])
def test_r5_2_what_is_not_known_fails_closed(precedents: Any, situation: str | None):
    ruled = rule(precedents, situation, False, ArbiterSettings())
    assert ruled == ArbiterDenied(reason="unknown_outcome", precedent="", similarity=0.0)


def test_r7_deliberation_gets_5000_ms_and_the_arbiter_itself_100():
    assert ruling().deadline_after_ms == 5_000  # type: ignore[union-attr]
    assert ruling(deliberative_timeout_ms=60_000).deadline_after_ms == 60_000  # type: ignore[union-attr]
    assert ArbiterSettings().latency_budget_ms == 100.0


names = st.sampled_from(["a", "b", "c"])
precedents = st.builds(
    Similar,
    precedent=names,
    similarity=st.sampled_from([0.3, 0.749999, 0.75, 0.899999, 0.9, 1.0]),
    situation=st.sampled_from(["general", "by phone"]),
    action=st.sampled_from(["answer", "act", "withhold"]),
    outcome=st.sampled_from(["benign", "harmful"]),
    harm_level=st.just(0.5),
    answer=st.sampled_from(["", NINE]),
)


@given(st.lists(precedents, max_size=5), st.booleans())
def test_nothing_is_answered_at_once_beside_a_risk_or_a_close_harmful_precedent(near: list[Similar], risk: bool):
    harmful = any(each.outcome == "harmful" and each.similarity >= 0.75 for each in near)
    ruled = ruling(*near, risk=risk)
    assert isinstance(ruled, ArbiterDenied) is (risk or harmful)
    if isinstance(ruled, ArbiterImmediate):
        assert ruled.answer == NINE
        assert ruled.similarity >= 0.9


@given(st.permutations([similar(0.9, name=name, answer=name) for name in "abc"] + [similar(0.5, name="d")]))
def test_the_order_in_which_precedents_are_listed_changes_nothing(near: list[Similar]):
    assert ruling(*near) == ArbiterImmediate(precedent="a", similarity=0.9, answer="a")
