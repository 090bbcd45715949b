"""Plans of a language model: what it is asked, what counts as a plan, and what happens without one."""

import json

import msgspec

from actors.act.loop import new_loop
from actors.act.planning import ALIASES, ANSWER_SCHEMA, QUERY_CHARACTERS, SKILLS, offline_plan, plan_call, read_plan
from actors.act.settings import ActSettings
from schemas.catalogue import entry_of
from schemas.vocabulary.act import ActActionsRequested, ActFinished, ActIterated, ActPlanRequested
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.memory import ActionResult, Introspection
from schemas.vocabulary.reflex import ReflexAnswerBlocked
from tests.actors.act.builders import E1, QUESTION, Acting, found, model_said, plan, recollection
from tests.each import each

BY_MODEL = ActSettings(planner="llm")
LEASE = recollection("gist:1")
RECALL = {"skill": "recall", "query": "lease"}


def asked(settings: ActSettings = BY_MODEL) -> Acting:
    acting = Acting(settings)
    acting.ask()
    return acting


def test_a_model_is_asked_for_a_plan_with_the_message():
    """mode-router: ACT Loop, step 2 LLM generates actions."""
    (request,) = asked().said(ActPlanRequested)
    call = request.call
    assert (request.iteration, call.purpose, call.answer_schema) == (0, "act", ANSWER_SCHEMA)
    assert call.timeout_ms == BY_MODEL.plan_timeout_ms
    assert [each.role for each in call.messages] == ["system", "user"]
    assert QUESTION in call.messages[1].content


def test_the_prompt_tells_every_skill():
    (request,) = asked().said(ActPlanRequested)
    assert all(f"- {skill}:" in request.call.messages[0].content for skill in SKILLS)


def test_its_plan_is_performed():
    acting = asked()
    acting.plan(plan(RECALL, {"skill": "introspect"}))
    (requested,) = acting.said(ActActionsRequested)
    assert [(each.index, each.skill, each.query) for each in requested.actions] == [
        (0, "recall", "lease"),
        (1, "introspect", ""),
    ]


def test_it_plans_again_with_what_was_found_before_it():
    """mode-router: ACT Loop, step 5 LLM re-plans with action results in context."""
    acting = asked()
    acting.plan(plan(RECALL))
    acting.remember(found(0, LEASE))
    second = acting.said(ActPlanRequested)[1]
    assert second.iteration == 1
    shown = second.call.messages[1].content
    assert "recall 'lease': found 1" in shown
    assert LEASE.text in shown


def test_what_memory_knows_of_itself_is_shown_to_it():
    acting = asked()
    acting.plan(plan({"skill": "introspect"}))
    known = Introspection(
        context_warmth=0.44,
        feeling_of_knowing=0.2,
        recall_failure_rate=0.5,
        layers={"fact": 3},
        skills={},
        world_state_present=False,
    )
    acting.remember(ActionResult(index=0, skill="introspect", ok=True, introspection=known))
    assert '"recall_failure_rate":0.5' in acting.said(ActPlanRequested)[1].call.messages[1].content


def test_what_a_later_release_knows_besides_changes_no_old_plan():
    class Later(Introspection, kw_only=True, frozen=True):
        added: tuple[str, ...] = ()

    shown = []
    for kind in (Introspection, Later):
        known = kind(
            context_warmth=0.44, feeling_of_knowing=0.2, recall_failure_rate=0.5, layers={"fact": 3}, skills={},
            world_state_present=False,
        )  # fmt: skip
        acting = asked()
        acting.plan(plan({"skill": "introspect"}))
        acting.remember(ActionResult(index=0, skill="introspect", ok=True, introspection=known))
        shown.append(acting.said(ActPlanRequested)[1].call)
    assert shown[0] == shown[1]


def test_an_empty_plan_ends_the_loop():
    acting = asked()
    acting.plan(plan(RECALL))
    acting.remember(found(0, LEASE))
    acting.plan(plan())
    assert (acting.finish.termination, acting.finish.iterations, acting.finish.productive) == ("plan_empty", 1, True)


def test_a_model_that_never_stops_is_stopped():
    acting = asked()
    for _ in range(5):
        acting.plan(plan(RECALL))
        acting.remember(found(0, LEASE))
    assert (acting.finish.termination, acting.finish.iterations) == ("max_iterations", 5)
    assert [each.iteration for each in acting.iterations] == [0, 1, 2, 3, 4]


GARBAGE = [
    "I would look for the lease.",
    "",
    "{",
    "null",
    "[1, 2]",
    '{"actions": null}',
    '{"steps": []}',
    plan({"skill": "launch_rockets", "query": "now"}),
    plan({"skill": "recall"}),
    plan({"skill": "recall", "query": "  "}),
    plan({"skill": "associate"}),
    plan({"skill": "memorize", "key": "name"}),
    plan({"skill": "delegate", "query": "7 times 6"}),
    plan({"skill": "delegate", "specialist": "calculator"}),
    plan({"query": "lease"}),
    plan(RECALL, {"skill": "recall"}),
    '{"actions": [{"skill": "recall", "query": 7}]}',
    "[" * 15_000,
    '{"x": ' * 3_000,
    json.dumps({"actions": [], "padding": "x" * 20_000}),
    "\ud800",
]


@each("answer", GARBAGE, named=lambda answer: answer[:30].encode("ascii", "replace").decode())
def test_what_is_no_plan_is_an_iteration_that_gained_nothing(answer: str):
    acting = asked()
    acting.plan(answer)
    (iteration,) = acting.iterations
    assert (iteration.planner, iteration.performed) == ("llm", ())
    assert (iteration.productive, iteration.reason) == (False, "malformed_plan")


def test_after_a_malformed_plan_the_model_is_asked_again_and_told():
    acting = asked()
    acting.plan("nonsense")
    second = acting.said(ActPlanRequested)[1]
    assert second.iteration == 1
    assert "Iteration 0 (malformed_plan)" in second.call.messages[1].content


def test_an_answer_that_its_effector_finds_invalid_is_a_malformed_plan_too():
    acting = asked()
    acting.plan_fails("answer_invalid")
    assert [each.reason for each in acting.iterations] == ["malformed_plan"]
    assert len(acting.said(ActPlanRequested)) == 2


def test_nothing_but_malformed_plans_ends_at_the_most_iterations():
    acting = asked()
    for _ in range(5):
        acting.plan("nonsense")
    assert (acting.finish.termination, acting.finish.iterations, acting.finish.productive) == (
        "max_iterations",
        5,
        False,
    )


@each("request_id", [None, ""], named=["named", "unreadable"])
def test_where_the_model_fails_the_rule_takes_over(request_id: str | None):
    acting = asked()
    acting.plan_fails(request=request_id)
    (failed,) = acting.iterations
    assert (failed.planner, failed.reason, failed.performed) == ("llm", "plan_failed", ())
    (requested,) = acting.said(ActActionsRequested)
    assert (requested.iteration, requested.actions[0].skill, requested.actions[0].query) == (1, "recall", QUESTION)
    acting.remember(found(0, LEASE))
    acting.remember(found(0, skill="associate"))
    assert [each.planner for each in acting.iterations] == ["llm", "offline", "offline"]
    assert (acting.finish.termination, acting.finish.iterations, acting.finish.productive) == ("plan_empty", 3, True)


def test_where_the_model_fails_late_the_rule_starts_from_the_beginning():
    acting = asked()
    acting.plan(plan(RECALL))
    acting.remember(found(0))
    acting.plan_fails()
    assert acting.said(ActActionsRequested)[-1].actions[0].query == QUESTION


def test_a_word_on_another_request_is_passed_over():
    acting = asked()
    request = acting.messages(ActPlanRequested)[0].id
    acting.pipeline.send(model_said("another", plan(RECALL)), E1)
    acting.pipeline.send(model_said(request, plan(RECALL), purpose="respond"), E1)
    acting.plan_fails(request="another")
    assert acting.said(ActActionsRequested) == acting.said(ActIterated) == []


def test_a_plan_that_comes_twice_is_performed_once():
    acting = asked()
    acting.plan(plan(RECALL))
    acting.plan(plan(RECALL))
    assert len(acting.said(ActActionsRequested)) == 1


def test_a_plan_after_the_end_is_passed_over():
    acting = asked()
    acting.end()
    acting.plan(plan(RECALL))
    assert acting.said(ActActionsRequested) == acting.said(ActFinished) == []


@each(
    ("alias", "skill"),
    ALIASES.items(),
    named=[f"mode-router: Backward Compatibility Aliases, {alias} -> {skill}" for alias, skill in ALIASES.items()],
)
def test_older_names_of_skills_still_work(alias: str, skill: str):
    written = {"skill": alias, "query": "lease", "value": "ends in May"}
    actions = read_plan(plan(written), BY_MODEL)
    assert actions is not None
    assert [each.skill for each in actions] == [skill]


def test_the_aliases_are_the_sources():
    """mode-router: Backward Compatibility Aliases, no others."""
    assert dict(ALIASES) == {
        "memory_query": "recall",
        "memory_write": "memorize",
        "world_state_read": "introspect",
        "internal_reasoning": "recall",
        "semantic_query": "recall",
    }


@each(
    "answer",
    [f"```json\n{plan(RECALL)}\n```", json.dumps([RECALL]), plan({**RECALL, "why": "it may help"})],
    named=["fenced", "bare_list", "with_more_fields"],
)
def test_a_plan_in_another_dress_is_a_plan(answer: str):
    actions = read_plan(answer, BY_MODEL)
    assert actions is not None
    assert [(each.skill, each.query) for each in actions] == [("recall", "lease")]


def test_a_long_plan_is_cut():
    actions = read_plan(plan(*[RECALL] * 9), ActSettings(most_actions=3))
    assert actions is not None
    assert [each.index for each in actions] == [0, 1, 2]


def test_a_long_query_is_cut():
    actions = read_plan(plan({"skill": "recall", "query": "x" * 5_000}), BY_MODEL)
    assert actions is not None
    assert len(actions[0].query) == QUERY_CHARACTERS


def test_memorizing_is_productive_and_introspecting_alone_is_not():
    storing, looking = asked(), asked()
    storing.plan(plan({"skill": "memorize", "key": "lease", "value": "ends in May"}))
    storing.remember(found(0, skill="memorize"))
    looking.plan(plan({"skill": "introspect"}))
    looking.remember(found(0, skill="introspect"))
    assert (storing.iterations[0].productive, looking.iterations[0].productive) == (True, False)


LONG = "Here is my lease. " + "It says nothing at all. " * 1000 + "When does it end?"


def test_a_plan_is_made_for_a_message_of_which_both_ends_are_shown_and_the_rest_is_told():
    call = plan_call(LONG, new_loop(0, 60_000_000_000, BY_MODEL), BY_MODEL)
    assert "When does it end?" in call.messages[1].content
    assert [(cut.part, cut.characters) for cut in call.cuts] == [("text", len(LONG))]


def test_without_a_model_what_a_long_message_asks_is_looked_for_too():
    [action] = offline_plan(LONG, new_loop(0, 60_000_000_000, ActSettings()))
    assert action.query.startswith("Here is my lease.")
    assert action.query.endswith("When does it end?")
    assert len(action.query) <= QUERY_CHARACTERS


def test_findings_that_a_plan_is_not_shown_are_told():
    acting = asked()
    acting.plan(plan(RECALL))
    acting.remember(found(0, recollection("gist:1", text="the lease ends in May. " * 40)))
    assert [cut.part for cut in acting.said(ActPlanRequested)[1].call.cuts] == ["findings"]


def test_a_plan_that_reflex_does_not_let_pass_is_an_iteration_that_gained_nothing():
    acting = Acting(ActSettings(planner="llm"))
    acting.ask()
    request = acting.messages(ActPlanRequested)[-1].id
    acting.pipeline.send(model_said(request, plan(RECALL)), E1)
    assert not acting.requested, "nothing is done before reflex has read it"
    blocked = entry_of(ReflexAnswerBlocked).sample
    acting.pipeline.send(msgspec.structs.replace(blocked, source=acting.messages(LlmCompleted)[-1].id), E1)
    assert not acting.requested
    assert acting.iterations[0].reason == "plan_withheld"
