"""What holds of a loop however models, memory, specialists and time behave."""

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.act.settings import ActSettings
from schemas.vocabulary.act import ActDelegationRequested, ActFinished, ActPlanRequested
from schemas.vocabulary.router import ModeSelected
from tests.actors.act.builders import Acting, found, plan, recollection

RECALL = {"skill": "recall", "query": "lease"}
SUM = {"skill": "delegate", "specialist": "calculator", "query": "What is 7 times 6?"}
MOVES = (
    "plan_recall", "plan_both", "plan_delegate", "plan_nothing", "garbage", "plan_fails", "found", "nothing_found",
    "says", "wait", "wait_long",
)  # fmt: skip

courses = st.lists(st.sampled_from(MOVES), max_size=25)
all_settings = st.builds(
    ActSettings,
    planner=st.sampled_from(("llm", "offline")),
    max_iterations=st.integers(1, 6),
    timeout_ms=st.sampled_from((400, 5_000, 60_000)),
    most_findings=st.integers(1, 4),
)


def move(acting: Acting, name: str, number: int) -> None:
    """Make one thing happen, where there is anyone to do it."""
    plans = {"plan_recall": (RECALL,), "plan_both": (RECALL, SUM), "plan_delegate": (SUM,), "plan_nothing": ()}
    asked = bool(acting.messages(ActPlanRequested))
    if name in plans and asked:
        acting.plan(plan(*plans[name]))
    elif name == "garbage" and asked:
        acting.plan("I had rather not")
    elif name == "plan_fails" and asked:
        acting.plan_fails()
    elif name in ("found", "nothing_found") and acting.requested:
        acting.remember(found(0, *([recollection(f"gist:{number}", 0.5)] if name == "found" else [])), after_ms=1)
    elif name == "says" and acting.messages(ActDelegationRequested):
        acting.specialist_says("42")
    elif name in ("wait", "wait_long"):
        acting.pipeline.advance(90 if name == "wait" else 3_000)


def ran(course: list[str], chosen: ActSettings) -> Acting:
    acting = Acting(chosen)
    acting.ask()
    for number, name in enumerate(course):
        move(acting, name, number)
    return acting


@settings(deadline=None)
@given(courses, all_settings)
def test_every_loop_ends_once_by_itself_and_its_exchange_is_routed_again(course: list[str], chosen: ActSettings):
    acting = ran(course, chosen)
    acting.pipeline.advance(200_000)
    assert acting.finish.iterations <= chosen.max_iterations
    assert [each.rerouted for each in acting.said(ModeSelected)] == [False, True]
    assert (len(acting.state.pending), len(acting.state.acting)) == (0, 0)
    iterations_are_numbered_without_a_gap_and_time_runs_forward(acting)
    a_loop_is_productive_exactly_when_an_iteration_was(acting)
    assert len(acting.finish.findings) <= chosen.most_findings


def iterations_are_numbered_without_a_gap_and_time_runs_forward(acting: Acting) -> None:
    assert [each.iteration for each in acting.iterations] == list(range(acting.finish.iterations))
    elapsed = [*(each.elapsed_ms for each in acting.iterations), acting.finish.elapsed_ms]
    assert elapsed == sorted(elapsed)


def a_loop_is_productive_exactly_when_an_iteration_was(acting: Acting) -> None:
    assert acting.finish.productive == any(each.productive for each in acting.iterations)
    assert acting.finish.productive == bool(acting.finish.findings)


@settings(deadline=None)
@given(courses, all_settings)
def test_the_end_of_the_exchange_leaves_nothing_at_any_moment(course: list[str], chosen: ActSettings):
    acting = ran(course, chosen)
    before = len(acting.said(ActFinished))
    acting.end()
    acting.pipeline.advance(200_000)
    assert (len(acting.state.pending), len(acting.state.acting)) == (0, 0)
    assert len(acting.said(ActFinished)) == before
