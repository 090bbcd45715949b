"""Guardrails on the whole path: every actor there is, a model by the test's own hand, and what an exchange costs."""

from collections.abc import Mapping
from typing import Any

from actors.guardrails.settings import GuardrailsSettings
from actors.registry import ACTORS
from actors.responder.settings import ResponderSettings
from schemas.actor import Message
from schemas.event import topic_of
from schemas.vocabulary.guardrails import CritiqueRequested, GuardrailsFailed
from schemas.vocabulary.llm import LlmFailed
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from tests.actors.guardrails.builders import said
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import Address
from tests.each import each

QUESTION = "Tell me about the ferry to the island: its first departure in the morning, and the length of the crossing."
ASTRAY = "Bananas are rich in potassium and ripen faster beside apples in a paper bag."
RIGHT = "The first ferry to the island leaves at seven in the morning, and the crossing takes forty minutes."
MODE = "RESPOND"
"""What the router selects for it at the beginning of a session."""

HERE = Address(exchange="e0")
ASKING = (ResponseRequested, CritiqueRequested)


class Talk:
    """An exchange whose model answers by the test's hand."""

    def __init__(self, *, backend: Any = "llm", guardrails: bool = True, **settings: Any) -> None:
        self.pipeline = Pipeline(ACTORS)
        self.pipeline.partitions["responder"].configure(ResponderSettings(backend=backend, guardrails=guardrails))
        self.pipeline.partitions["guardrails"].configure(GuardrailsSettings(**settings))
        self.pipeline.ask(QUESTION, HERE)

    def request(self) -> Message:
        """Return the last request to a model."""
        return [each for each in self.pipeline.stream if isinstance(each.event, ASKING)][-1]

    def says(self, text: str) -> "Talk":
        """Answer the last request."""
        asked = self.request()
        purpose = asked.event.call.purpose  # type: ignore[attr-defined]
        self.pipeline.send(said(text, request=asked.id, purpose=purpose), HERE)
        return self

    def fails(self) -> "Talk":
        """Let the last request fail."""
        asked = self.request()
        failed = LlmFailed(
            reason="endpoint_unreachable",
            error="",
            failed_seq=1,
            failed_topic=topic_of(asked.event),
            request=asked.id,
            purpose=asked.event.call.purpose,  # type: ignore[attr-defined]
        )
        self.pipeline.send(failed, HERE)
        return self

    @property
    def end(self) -> ResponseEmitted:
        """The exchange's one end."""
        [message] = self.pipeline.ends()
        assert isinstance(message.event, ResponseEmitted)
        return message.event

    @property
    def topics(self) -> list[str]:
        """The exchange's events, in order, without their root."""
        return self.pipeline.told()

    def pending(self) -> Mapping[str, int]:
        """Return how many exchanges each actor still keeps."""
        states = {name: each.state for name, each in self.pipeline.partitions.items()}
        return {name: len(state.pending) for name, state in states.items() if getattr(state, "pending", None)}


def test_the_composers_exchange_has_no_loop_and_no_event_more():
    talk = Talk(backend="composer")
    assert [topic for topic in talk.topics if "guardrails" in topic or "answer_appraised" in topic] == []
    assert len(talk.topics) == 11


def test_a_good_answer_costs_two_events_more_than_one_that_nobody_judges():
    judged, free = Talk().says(RIGHT), Talk(guardrails=False).says(RIGHT)
    assert (judged.end.response, judged.end.loop_id, judged.end.reason) == (RIGHT, "e0", MODE)
    assert (len(judged.topics), len(free.topics)) == (16, 14)
    extra = [topic for topic in judged.topics if topic not in free.topics]
    assert extra == ["appraisal.answer_appraised", "guardrails.finalized"]


def test_a_poor_answer_is_rerun_and_the_better_one_goes_out():
    talk = Talk().says(ASTRAY).says(RIGHT)
    assert (talk.end.response, talk.end.loop_id) == (RIGHT, "e0_r1")
    begins = talk.topics.index("response.requested")
    assert talk.topics[begins:-1] == [
        "response.requested", "llm.completed", "reflex.answer_passed", "appraisal.answer_appraised",
        "guardrails.rerun_ordered", "response.requested", "llm.completed", "reflex.answer_passed",
        "appraisal.answer_appraised", "guardrails.finalized", "response.emitted",
    ]  # fmt: skip
    assert (len(talk.topics), talk.pending()) == (21, {})


def test_answers_that_stay_poor_are_bounded_and_the_best_of_them_goes_out():
    talk = Talk()
    for _ in range(4):
        talk.says(ASTRAY)
    assert (talk.end.response, talk.end.reason) == (ASTRAY, f"{MODE}:max_reruns_reached")
    assert talk.topics.count("guardrails.rerun_ordered") == 3
    assert talk.end.loop_id == "e0", "an answer that is repeated is scored as before, though its prompt shows it"


def test_a_rerun_that_fails_leaves_the_answer_before_it():
    end = Talk().says(ASTRAY).fails().end
    assert (end.response, end.reason) == (ASTRAY, f"{MODE}:rerun_failed:endpoint_unreachable")


def test_a_model_may_be_the_critic_and_is_asked_once_an_answer():
    talk = Talk(critic="llm").says(RIGHT)
    assert isinstance(talk.request().event, CritiqueRequested)
    talk.says('{"alignment": 0.3, "drift": 0.6, "bias_tags": ["haste"]}')
    talk.says(RIGHT)
    talk.says('{"alignment": 0.9, "drift": 0.1, "bias_tags": []}')
    assert (talk.end.response, talk.end.loop_id) == (RIGHT, "e0_r1")
    assert (len(talk.topics), talk.pending()) == (25, {})


def test_where_the_critic_fails_appraisals_numbers_judge():
    talk = Talk(critic="llm").says(RIGHT).fails()
    assert (talk.end.response, talk.end.reason) == (RIGHT, MODE)


def test_guardrails_that_fail_let_the_answer_go_out_unjudged():
    talk = Talk()
    del talk.pipeline.partitions["guardrails"]
    talk.says(RIGHT)
    assert talk.pipeline.ends() == []
    failed = GuardrailsFailed(
        reason="decider_raised", error="E", failed_seq=1, failed_topic="forged_id.appraisal.answer_appraised"
    )
    # As an agent's own word it names no session.
    talk.pipeline.send(failed, Address(session="", exchange="e0"))
    assert (talk.end.response, talk.end.reason) == (RIGHT, f"{MODE}:guardrails_failed")
    assert talk.pipeline.ends()[0].session == HERE.session


@each("silent", ["guardrails", "appraisal"])
def test_where_nobody_judges_the_answer_goes_out_at_the_deadline(silent: str):
    talk = Talk()
    del talk.pipeline.partitions[silent]
    talk.says(RIGHT)
    talk.pipeline.advance(60_000)
    assert (talk.end.response, talk.end.reason) == (RIGHT, f"{MODE}:guardrails_silent")


def test_an_answer_after_the_end_is_not_judged():
    talk = Talk()
    talk.pipeline.advance(60_000)
    assert talk.end.action == "FAILED"
    talk.says(RIGHT)
    assert "appraisal.answer_appraised" not in talk.topics


def test_biases_of_an_agents_answers_add_up_over_its_sessions_and_end_its_reruns():
    pipeline = Pipeline(ACTORS)
    pipeline.partitions["responder"].configure(ResponderSettings(backend="llm"))
    for number in range(3):
        here = Address(session=f"session-{number}", exchange=f"e{number}")
        pipeline.ask(QUESTION, here)
        [request] = [
            each
            for each in pipeline.stream
            if isinstance(each.event, ResponseRequested) and each.exchange == here.exchange
        ]
        pipeline.send(said(f"What a great question! {RIGHT}", request=request.id), here)
    reasons = [each.event.reason for each in pipeline.ends() if isinstance(each.event, ResponseEmitted)]
    assert reasons == [MODE, MODE, f"{MODE}:bias_echo_detected"]
