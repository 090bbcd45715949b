"""ACT on the whole path: every actor there is, memory's own answers, no model."""

from actors.act.settings import ActSettings
from actors.registry import ACTORS
from schemas.event import topic_of
from schemas.vocabulary.act import ActFinished, ActIterated
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected
from tests.actors.act.builders import model_said, plan
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import Address

TOLD = "My new office is in Lisbon and the move is in May."
QUESTION = "What did we discuss about the office move?"
THIRD = Address(exchange="e2")


def talk(planner: str = "offline") -> Pipeline:
    """Return a talk whose third exchange is routed to ACT."""
    pipeline = Pipeline(ACTORS)
    pipeline.partitions["act"].configure(ActSettings(planner=planner))  # type: ignore[arg-type]
    for number, text in enumerate(("How should I plan the move to the new office?", TOLD, QUESTION)):
        pipeline.ask(text, Address(exchange=f"e{number}"))
    return pipeline


def path(pipeline: Pipeline) -> list[str]:
    """Return what router, act, memory and responder said in the third exchange, in order."""
    owners = {"router", "act", "memory", "response"}
    topics = [topic_of(each.event) for each in pipeline.stream if each.exchange == THIRD.exchange]
    return [topic.removeprefix("forged_id.") for topic in topics if topic.split(".")[1] in owners]


def test_recall_and_associate_gather_before_the_answer():
    """mode-router: ACT Loop, flow 1-7."""
    pipeline = talk()
    assert path(pipeline) == [
        "router.feedback_observed", "memory.recalled", "router.mode_selected", "act.actions_requested",
        "memory.actions_answered", "act.iterated", "act.actions_requested", "memory.actions_answered", "act.iterated",
        "act.finished", "router.mode_selected", "response.emitted", "memory.remembered",
    ]  # fmt: skip


def test_what_was_told_before_is_among_the_findings():
    (finished,) = [each.event for each in talk().stream if isinstance(each.event, ActFinished)]
    assert isinstance(finished, ActFinished)
    assert finished.productive
    assert any("Lisbon" in each.text for each in finished.findings)


def test_first_choice_and_mode_of_the_answer_are_both_recorded():
    """mode-router: ACT Loop, step 7 the terminal response."""
    pipeline = talk()
    end = pipeline.ends()[-1].event
    assert isinstance(end, ResponseEmitted)
    assert (end.first_mode, end.mode, end.action) == ("ACT", "RESPOND", "EXECUTED")
    pipeline.ask("And the boxes?", Address(exchange="e3"))
    later = [each.event for each in pipeline.stream if isinstance(each.event, ModeSelected) and each.exchange == "e3"]
    assert [each.previous_mode for each in later] == ["RESPOND"]


def test_a_models_plan_is_performed_by_memory():
    pipeline = talk(planner="llm")
    for answer in (plan({"skill": "memory_query", "query": "office"}, {"skill": "introspect"}), plan()):
        asked = [each for each in pipeline.stream if topic_of(each.event) == "forged_id.act.plan_requested"][-1]
        pipeline.send(model_said(asked.id, answer), THIRD)
    (iteration,) = [each.event for each in pipeline.stream if isinstance(each.event, ActIterated)]
    assert isinstance(iteration, ActIterated)
    assert [(each.action.skill, each.ok) for each in iteration.performed] == [("recall", True), ("introspect", True)]
    assert pipeline.ends()[-1].exchange == THIRD.exchange


def test_an_exchange_whose_act_loop_hears_nothing_is_answered_before_its_deadline():
    pipeline = talk(planner="llm")  # and no model is there to answer
    pipeline.advance(60_000)
    end = pipeline.ends()[-1].event
    assert isinstance(end, ResponseEmitted)
    assert (end.action, end.first_mode, end.mode) == ("EXECUTED", "ACT", "RESPOND")
    (finished,) = [each.event for each in pipeline.stream if isinstance(each.event, ActFinished)]
    assert finished.termination == "timeout"
    assert [len(pipeline.partitions[name].state.pending) for name in ("act", "router")] == [0, 0]
