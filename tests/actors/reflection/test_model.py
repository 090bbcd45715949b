"""The call and its answer through the real effector's performance, against an endpoint that speaks HTTP."""

import time

import msgspec

from schemas.actor import Message
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.reflection import ReflectionConcluded, ReflectionRequested
from schemas.vocabulary.router import SAMPLE_SIGNALS, Signals
from tests.actors.llm import scripted
from tests.actors.llm.asking import Asking, over
from tests.actors.llm.scripted import fails, says
from tests.actors.reflection.builders import AGENT, Reflecting, answer, opinion, selection

SECOND_OPINION = answer(opinion(1, rationale="Nothing was known."))


def performed(asked: Message) -> Message:
    """Return a request as one stored just now: the effector measures its age by the real clock."""
    assert isinstance(asked.event, ReflectionRequested)
    return msgspec.structs.replace(asked, time_ns=time.time_ns())


def test_a_model_over_http_gives_a_second_opinion_that_counts() -> None:
    @over(says(SECOND_OPINION))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        agent = Reflecting()
        [said] = await asking._answering.handle(performed(agent.request(selection())))
        assert isinstance(said, LlmCompleted)
        [concluded] = agent.partition.when(said, AGENT)
        assert isinstance(concluded, ReflectionConcluded)
        assert (concluded.counted, concluded.disagreement, concluded.reason) == (1, 1.0, "")
        [asked] = endpoint.asked
        assert asked.document["response_format"]["type"] == "json_schema"
        assert "Secret words" not in asked.body.decode()


def test_an_answer_against_the_schema_is_refused_by_the_effector_and_recorded() -> None:
    @over(says('{"opinions": "none"}'))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        agent = Reflecting()
        [said] = await asking._answering.handle(performed(agent.request(selection())))
        assert isinstance(said, LlmFailed)
        [concluded] = agent.partition.when(said, AGENT)
        assert isinstance(concluded, ReflectionConcluded)
        assert (concluded.reason, concluded.insights) == ("answer_invalid", ())


def test_an_endpoint_that_refuses_leaves_a_reason() -> None:
    @over(fails(401))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        agent = Reflecting()
        [said] = await asking._answering.handle(performed(agent.request(selection())))
        assert isinstance(said, LlmFailed)
        [concluded] = agent.partition.when(said, AGENT)
        assert isinstance(concluded, ReflectionConcluded)
        assert concluded.reason == "endpoint_refused"


def test_a_signal_that_a_later_release_adds_changes_no_old_request() -> None:
    class Later(Signals, kw_only=True, frozen=True):
        added: str = ""

    def request_about(signals: Signals) -> ReflectionRequested:
        asked = Reflecting().request(msgspec.structs.replace(selection(), signals=signals)).event
        assert isinstance(asked, ReflectionRequested)
        return asked

    now, later = request_about(SAMPLE_SIGNALS), request_about(Later(**msgspec.structs.asdict(SAMPLE_SIGNALS)))
    assert now.call == later.call
    assert all(f"{name}=" in str(now.call) for name in Signals.__struct_fields__ if name != "fact_keys")
