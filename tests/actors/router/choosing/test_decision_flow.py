"""Decision Flow: the source's four steps, from an input to its answer, through every actor there is."""

from typing import TypeVar

from actors.registry import ACTORS
from actors.responder.settings import ResponderSettings
from schemas.event import Event, topic_of
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.memory import MemoryRecalled
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from schemas.vocabulary.router import ModeSelected
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import Address

T = TypeVar("T", bound=Event)

TALK = (
    "How should I plan the move to the new office?",
    "My new office is in Lisbon and the move is in May.",
    "What did we discuss about the office move?",
    "Thanks!",
    "",
)
ACTED, IGNORED = 2, 4
"""Of those, the turn that is looked up first, and the blank one."""


def converse(backend: str = "composer") -> Pipeline:
    pipeline = Pipeline(ACTORS)
    pipeline.partitions["responder"].configure(ResponderSettings(backend=backend))  # type: ignore[arg-type]
    for number, text in enumerate(TALK):
        pipeline.ask(text, Address(exchange=f"e{number}"))
    return pipeline


def of(pipeline: Pipeline, turn: int, kind: type[T]) -> list[T]:
    return [each.event for each in pipeline.stream if each.exchange == f"e{turn}" and isinstance(each.event, kind)]


def topics(pipeline: Pipeline, turn: int) -> list[str]:
    return [topic_of(each.event).removeprefix("forged_id.") for each in pipeline.stream if each.exchange == f"e{turn}"]


def test_step_1_every_input_gets_a_topic_with_its_confidence_and_the_nearest_known_one():
    """mode-router: Decision Flow, Step 1 Classification -> topic, confidence, similar_topic."""
    pipeline = converse()
    first, second = (of(pipeline, turn, AppraisalCompleted)[0] for turn in (0, 1))
    assert (first.is_new_topic, first.similar_topic) == (True, "")
    assert (second.is_new_topic, second.similar_topic) == (False, first.conversation_topic)
    assert 0 < second.topic_confidence <= 1
    assert second.conversation_topic == first.conversation_topic


def test_step_2_the_context_is_assembled_of_what_memory_holds_before_anything_is_chosen():
    """mode-router: Decision Flow, Step 2 Context Assembly -> gists, facts, turns, world state, episodes, warmth."""
    pipeline = converse()
    (recalled,) = of(pipeline, ACTED, MemoryRecalled)
    known = recalled.familiarity
    assert (known.working_memory_turns, known.gist_count, known.world_state_present) == (2, 2, False)
    assert known.fact_count == len(known.fact_keys) > 0
    assert 0.3 < known.context_warmth < 0.7
    assert {each.layer for each in recalled.recollections} >= {"turn", "fact"}
    told = topics(pipeline, ACTED)
    assert told.index("memory.recalled") < told.index("router.mode_selected")


def test_step_3_the_router_tells_mode_confidence_scores_and_whether_a_tie_was_broken():
    """mode-router: Decision Flow, Step 3 -> selected_mode, confidence, scores, tiebreaker_used."""
    pipeline = converse()
    selected = of(pipeline, ACTED, ModeSelected)[0]
    assert selected.selected_mode == max(selected.scores, key=lambda mode: selected.scores[mode]) == "ACT"
    assert selected.router_confidence == selected.margin > 0
    assert selected.tiebreaker_used is False


def test_step_4_an_ignored_input_is_answered_with_nothing_and_no_model_is_asked():
    """mode-router: Decision Flow, Step 4 IGNORE -> return empty, no LLM call."""
    pipeline = converse(backend="llm")
    (end,) = of(pipeline, IGNORED, ResponseEmitted)
    assert (end.mode, end.response, end.model) == ("IGNORE", "", "")
    assert not [topic for topic in topics(pipeline, IGNORED) if "requested" in topic]


def test_step_4_act_runs_its_loop_and_is_routed_again_before_it_is_answered():
    """mode-router: Decision Flow, Step 4 ACT -> loop, re-route, terminal mode."""
    pipeline = converse()
    assert len(of(pipeline, ACTED, ActFinished)) == 1
    assert [(each.selected_mode, each.rerouted) for each in of(pipeline, ACTED, ModeSelected)] == [
        ("ACT", False),
        ("RESPOND", True),
    ]
    assert [each.mode for each in of(pipeline, ACTED, ResponseEmitted)] == ["RESPOND"]


def test_step_4_otherwise_the_mode_s_own_prompt_and_the_context_go_to_a_model():
    """mode-router: Decision Flow, Step 4 otherwise -> mode-specific prompt + context -> LLM -> response."""
    pipeline = converse(backend="llm")
    (request,) = of(pipeline, 0, ResponseRequested)
    (selected,) = of(pipeline, 0, ModeSelected)
    assert selected.terminal_mode == request.mode == "RESPOND"
    assert request.call.purpose == "respond"
    assert request.call.messages[-1].content.endswith(TALK[0])
