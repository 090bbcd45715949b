"""Time: budgets of skills, silence of whoever was asked, and the whole loop's limit."""

from actors.act.loop import GRACE_MS
from actors.act.settings import ActSettings
from schemas.vocabulary.act import ActActionsRequested, ActFinished, ActIterated, ActPlanRequested, ActTimedOut
from schemas.vocabulary.clock import ClockFired
from tests.actors.act.builders import E1, Acting, found, plan, recollection
from tests.actors.scenario import Address
from tests.each import each

LEASE = recollection("gist:1")
E2 = Address(exchange="e2")
BUDGETS = [
    ({"skill": "recall", "query": "lease"}, 500),
    ({"skill": "memorize", "key": "lease", "value": "May"}, 50),
    ({"skill": "introspect"}, 100),
    ({"skill": "associate", "query": "lease"}, 500),
]
ROWS = [f"mode-router: Innate Skills, {action['skill']} <{budget_ms}ms" for action, budget_ms in BUDGETS]


def performing(*actions: dict[str, str], **settings: int) -> Acting:
    """Return a loop that waits for a model's plan of these actions."""
    acting = Acting(ActSettings(planner="llm", **settings))  # type: ignore[arg-type]
    acting.ask()
    acting.plan(plan(*actions))
    return acting


def reasons(acting: Acting) -> list[str]:
    return [each.reason for iteration in acting.iterations for each in iteration.performed]


@each(("action", "budget_ms"), BUDGETS, named=ROWS)
def test_an_action_answered_within_its_budget_counts(action: dict[str, str], budget_ms: int):
    acting = performing(action)
    acting.remember(found(0, skill=action["skill"]), after_ms=budget_ms - 1)
    assert reasons(acting) == [""]


@each(("action", "budget_ms"), BUDGETS, named=ROWS)
def test_an_action_over_its_budget_fails_and_the_loop_goes_on(action: dict[str, str], budget_ms: int):
    acting = performing(action)
    acting.pipeline.advance(budget_ms + 1)
    assert reasons(acting) == ["timed_out"]
    assert len(acting.said(ActPlanRequested)) == 2
    assert acting.said(ActFinished) == []


def test_of_actions_answered_together_only_the_late_one_fails():
    acting = performing(BUDGETS[2][0], BUDGETS[0][0])
    acting.remember(found(0, skill="introspect"), found(1, LEASE), after_ms=110)
    assert reasons(acting) == ["timed_out", ""]
    assert acting.iterations[0].productive


def test_what_was_memorized_late_is_memorized():
    acting = performing(BUDGETS[1][0], BUDGETS[0][0])
    acting.remember(found(0, skill="memorize"), found(1), after_ms=60)
    assert reasons(acting) == ["", ""]
    assert acting.iterations[0].productive


def test_what_comes_after_it_was_given_up_is_passed_over():
    acting = performing(BUDGETS[0][0])
    acting.pipeline.advance(600)
    acting.remember(found(0, LEASE), after_ms=0)
    assert [each.productive for each in acting.iterations] == [False]


def test_silence_is_recorded_as_such():
    acting = Acting()
    acting.ask()
    acting.pipeline.advance(600)
    assert [(each.iteration, each.what) for each in acting.said(ActTimedOut)] == [(0, "iteration")]
    assert acting.iterations[0].reason == "nothing_found"
    assert (acting.finish.termination, acting.finish.productive) == ("plan_empty", False)
    assert acting.modes[-1] == ("RESPOND", "RESPOND", True)


def test_a_model_that_keeps_silent_is_given_up_and_the_rule_takes_over():
    acting = Acting(ActSettings(planner="llm", plan_timeout_ms=2_000))
    acting.ask()
    acting.pipeline.advance(2_000 + GRACE_MS - 1)
    assert acting.iterations == []
    acting.pipeline.advance(2)
    assert [(each.planner, each.reason) for each in acting.iterations] == [("llm", "plan_failed")]
    assert acting.said(ActActionsRequested)[0].actions[0].skill == "recall"


def test_the_whole_loops_limit_cuts_an_iteration_short():
    """mode-router: Continuation Check, elapsed >= cumulative_timeout -> timeout."""
    acting = Acting(ActSettings(timeout_ms=300))
    acting.ask()
    acting.pipeline.advance(301)
    assert [each.what for each in acting.said(ActTimedOut)] == ["loop"]
    assert reasons(acting) == ["timed_out"]
    assert (acting.finish.termination, acting.finish.elapsed_ms) == ("timeout", 300)


def test_it_cuts_the_wait_for_a_plan_short_too():
    acting = Acting(ActSettings(planner="llm", timeout_ms=300))
    acting.ask()
    acting.pipeline.advance(301)
    assert [each.reason for each in acting.iterations] == ["plan_failed"]
    assert acting.finish.termination == "timeout"


def test_a_silent_loop_of_one_exchange_does_not_hold_up_another():
    acting = Acting(ActSettings(recall_ms=500))
    acting.ask()
    acting.pipeline.advance(200)
    acting.ask(E2)
    acting.pipeline.advance(301)
    assert (len(acting.said(ActFinished)), len(acting.said(ActFinished, E2))) == (1, 0)
    acting.pipeline.advance(200)
    assert len(acting.said(ActFinished, E2)) == 1


def test_a_loop_that_ends_leaves_the_others_timer_set():
    acting = Acting()
    acting.ask()
    acting.ask(E2)
    acting.remember(found(0))
    acting.pipeline.advance(600)
    assert len(acting.said(ActFinished, E2)) == 1


def test_loops_of_different_sessions_time_out_by_themselves():
    acting, other = Acting(), Address(session="other", exchange="e2")
    acting.ask()
    acting.ask(other)
    acting.pipeline.advance(600)
    assert [len(acting.said(ActTimedOut, each)) for each in (E1, other)] == [1, 1]


def test_a_timer_that_fires_early_or_for_somebody_else_changes_nothing():
    acting = Acting()
    acting.ask()
    for set_by in ("forged_id.act.actions_requested", "forged_id.breaker.tripped"):
        fired = ClockFired(set_by=set_by, due_ns=acting.pipeline.now_ns)
        acting.pipeline.send(fired, Address(exchange=""))
    assert acting.said(ActIterated) == acting.said(ActTimedOut) == []


def test_the_clock_may_be_ahead_of_the_server():
    acting = Acting()
    acting.ask()
    fired = ClockFired(set_by="forged_id.act.actions_requested", due_ns=acting.pipeline.now_ns + 500_000_000)
    acting.pipeline.send(fired, Address(exchange=""))
    assert len(acting.said(ActTimedOut)) == 1


def test_after_its_exchanges_end_a_loop_times_out_no_more():
    acting = Acting()
    acting.ask()
    acting.end()
    acting.pipeline.advance(1_000)
    assert acting.said(ActTimedOut) == acting.said(ActIterated) == []
