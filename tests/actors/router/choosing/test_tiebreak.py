"""Two modes too close to tell apart: who is asked, what is recorded, and what settles it when nobody answers."""

from actors.router.settings import RouterSettings
from actors.router.tiebreak import outcome_of
from schemas.vocabulary.router import ModeSelected
from tests.actors.router.builders import (
    ASKING,
    answered,
    ask,
    finished,
    ground,
    hear,
    partition,
    questioned,
    recalled,
    told,
    untold,
)
from tests.actors.scenario import Address, Partition
from tests.each import each

E1 = Address(exchange="e1")
AMBIGUOUS = "Thanks!"
"""At first contact: ACKNOWLEDGE .65 and CLARIFY .55, .153846 apart, where .2 would be clear."""

MODERATE = ground(turns=4, gists=1, facts=1)
REFERENCE = "What did we discuss about the lease?"
"""Over that ground: ACT .70 and RESPOND .663."""


def settled(router: Partition, answer: object) -> ModeSelected:
    (selected,) = router.when(answer, E1)  # type: ignore[arg-type]
    assert isinstance(selected, ModeSelected)
    return selected


def test_an_ambiguous_decision_asks_about_its_two_candidates():
    """mode-router: Tie-Breaker, top 2 within the effective margin invoke a small LLM."""
    _, asked = questioned(partition(ASKING), AMBIGUOUS, "e1")
    assert asked.candidates == ("ACKNOWLEDGE", "CLARIFY")
    assert asked.scores == {"ACKNOWLEDGE": 0.65, "CLARIFY": 0.55}
    assert (asked.margin, asked.effective_margin) == (0.153846, 0.2)


def test_the_question_offers_only_the_two_and_shows_the_message():
    """mode-router: Tie-Breaker, the prompt presents only the top 2 with context."""
    _, asked = questioned(partition(ASKING), AMBIGUOUS, "e1", ground(is_new_topic=True))
    call = asked.call
    assert call.purpose == "tiebreak"
    assert call.answer_schema["properties"]["mode"]["enum"] == ["ACKNOWLEDGE", "CLARIFY"]
    system, user = call.messages
    assert (system.role, user.role) == ("system", "user")
    assert "RESPOND" not in system.content
    assert user.content.endswith(AMBIGUOUS)
    assert call.timeout_ms == 3_000


def test_a_long_message_is_shown_in_part():
    router = partition(RouterSettings(profile="calibrated", tiebreak="llm", weights={"tiebreaker_base_margin": 2.0}))
    _, asked = questioned(router, "so be it then " * 400, "e1")
    assert len(asked.call.messages[1].content) < 800


def test_the_models_choice_is_taken_and_recorded():
    router = partition(ASKING)
    request, _ = questioned(router, AMBIGUOUS, "e1")
    selected = settled(router, told(request, '{"mode": "CLARIFY"}'))
    assert (selected.selected_mode, selected.terminal_mode, selected.reason) == ("CLARIFY", "CLARIFY", "tiebreak")
    assert (selected.tiebreaker_used, selected.tiebreaker_outcome) == (True, "CLARIFY")
    assert selected.tiebreaker_candidates == ("ACKNOWLEDGE", "CLARIFY")
    assert selected.router_confidence == selected.margin == 0.153846


@each(
    ("answer", "outcome"),
    [
        (lambda request: untold(request), "failed:endpoint_unreachable"),
        (lambda request: untold(request, "endpoint_overdue"), "failed:endpoint_overdue"),
        (lambda _: untold("", "undecodable"), "failed:undecodable"),
        (lambda request: told(request, '{"mode": "RESPOND"}'), "invalid"),
        (lambda request: told(request, '{"mode": '), "invalid"),
        (lambda request: told(request, ""), "invalid"),
    ],
)
def test_failure_and_any_other_answer_fall_to_the_higher_score(answer, outcome: str):  # type: ignore[no-untyped-def]
    """mode-router: Tie-Breaker, falls back to the higher-scoring mode on failure."""
    router = partition(ASKING)
    request, _ = questioned(router, AMBIGUOUS, "e1")
    selected = settled(router, answer(request))
    assert (selected.selected_mode, selected.terminal_mode) == ("ACKNOWLEDGE", "ACKNOWLEDGE")
    assert (selected.tiebreaker_used, selected.tiebreaker_outcome) == (True, outcome)
    assert selected.reason == "highest_score"


@each(
    "answer",
    [
        told("another request", '{"mode": "CLARIFY"}'),
        untold("another request"),
        untold("", topic="response.requested"),
    ],
)
def test_a_models_word_on_something_else_is_passed_over(answer: object):
    router = partition(ASKING)
    questioned(router, AMBIGUOUS, "e1")
    assert router.when(answer, E1) == []  # type: ignore[arg-type]


def test_a_word_of_another_purpose_is_passed_over():
    router = partition(ASKING)
    request, _ = questioned(router, AMBIGUOUS, "e1")
    assert router.when(told(request, '{"mode": "CLARIFY"}', purpose="act"), E1) == []


def test_a_second_answer_changes_nothing():
    router = partition(ASKING)
    request, _ = questioned(router, AMBIGUOUS, "e1")
    settled(router, told(request, '{"mode": "CLARIFY"}'))
    assert router.when(told(request, '{"mode": "ACKNOWLEDGE"}'), E1) == []


def test_an_answer_after_the_end_changes_nothing():
    router = partition(ASKING)
    request, _ = questioned(router, AMBIGUOUS, "e1")
    router.hear(answered(None, "FAILED"), E1)
    assert router.when(told(request, '{"mode": "CLARIFY"}'), E1) == []


def test_while_a_model_is_asked_nothing_else_decides():
    router = partition(ASKING)
    questioned(router, AMBIGUOUS, "e1")
    assert router.when(recalled(), E1) == []
    assert router.when(finished(productive=True), E1) == []


def test_what_the_session_does_meanwhile_does_not_change_the_decision_that_was_asked_about():
    router = partition(ASKING)
    request, _ = questioned(router, AMBIGUOUS, "e1")
    hear(router, "x", "other")
    router.hear(answered("CLARIFY"), Address(exchange="other"))
    assert settled(router, untold(request)).previous_mode is None


def test_a_clear_lead_asks_nobody():
    """mode-router: Tie-Breaker, not invoked outside the margin."""
    assert ask(partition(ASKING), "Hey", "e1").tiebreaker_used is False


def test_a_lead_of_exactly_the_margin_asks_nobody():
    # .50 to .40 is .2, and so is the margin.
    level = {"respond.cold_penalty": 0.0, "clarify.cold_boost": 0.0}
    router = partition(
        RouterSettings(
            profile="calibrated", tiebreak="llm", base_scores={"RESPOND": 0.5, "CLARIFY": 0.4}, weights=level
        )
    )
    selected = ask(router, "so be it then", "e1")
    assert (selected.margin, selected.effective_margin, selected.tiebreaker_candidates) == (0.2, 0.2, ())


def test_ignoring_is_never_put_to_a_model():
    assert ask(partition(ASKING), " ", "e1").selected_mode == "IGNORE"


def test_by_default_the_higher_score_settles_it_at_once():
    selected = ask(partition(), AMBIGUOUS, "e1")
    assert (selected.selected_mode, selected.tiebreaker_used) == ("ACKNOWLEDGE", False)
    assert (selected.tiebreaker_candidates, selected.tiebreaker_outcome) == (
        ("ACKNOWLEDGE", "CLARIFY"),
        "higher_score",
    )


def test_act_chosen_by_a_model_runs():
    router = partition(ASKING)
    request, asked = questioned(router, REFERENCE, "e1", MODERATE)
    assert asked.candidates == ("ACT", "RESPOND")
    selected = settled(router, told(request, '{"mode": "ACT"}'))
    assert (selected.selected_mode, selected.terminal_mode) == ("ACT", None)


def test_act_turned_down_by_a_model_does_not():
    router = partition(ASKING)
    request, _ = questioned(router, REFERENCE, "e1", MODERATE)
    assert settled(router, told(request, '{"mode": "RESPOND"}')).terminal_mode == "RESPOND"


def test_after_act_no_model_is_asked_however_close_the_others_are():
    router = partition(RouterSettings(profile="calibrated", tiebreak="llm", base_scores={"ACT": 2.0, "CLARIFY": 0.66}))
    selected = ask(router, REFERENCE, "e1", familiarity=MODERATE)
    assert selected.terminal_mode is None
    (again,) = router.when(finished(productive=True), E1)
    assert isinstance(again, ModeSelected)
    assert again.margin < again.effective_margin
    assert (again.rerouted, again.tiebreaker_used, again.tiebreaker_candidates) == (True, False, ())


def test_where_act_is_off_a_model_is_not_asked_to_choose_it():
    # Either way the other candidate would answer.
    selected = ask(
        partition(RouterSettings(profile="calibrated", tiebreak="llm", act=False)),
        REFERENCE,
        "e1",
        familiarity=MODERATE,
    )
    assert (selected.selected_mode, selected.terminal_mode, selected.tiebreaker_used) == ("ACT", "RESPOND", False)


@each(
    ("answer", "outcome"),
    [
        ('{"mode": "CLARIFY"}', "CLARIFY"),
        ('{"mode": "clarify"}', "CLARIFY"),
        ('"CLARIFY"', "CLARIFY"),
        ("CLARIFY", "CLARIFY"),
        (" clarify.\n", "CLARIFY"),
        ('```json\n{"mode": "RESPOND"}\n```', "RESPOND"),
        ('{"mode": "ACT"}', "invalid"),
        ('{"mode": ["CLARIFY"]}', "invalid"),
        ('{"choice": "CLARIFY"}', "invalid"),
        ("I would say CLARIFY or RESPOND", "invalid"),
        ("[" * 50_000, "invalid"),
        ("\ud800", "invalid"),
        ("null", "invalid"),
    ],
)
def test_only_one_of_the_two_names_is_an_answer(answer: str, outcome: str):
    assert outcome_of(answer, ("RESPOND", "CLARIFY")) == outcome
