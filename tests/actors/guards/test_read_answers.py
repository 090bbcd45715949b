"""What a model of ours answers is read before anybody gets it, before it is judged, remembered, or in a next prompt."""

from typing import Any

import msgspec

from actors.reflex.settings import ReflexSettings
from actors.registry import ACTORS
from actors.responder.settings import ResponderSettings
from schemas.actor import Message
from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.reflex import ReflexAnswerPassed, ReflexFailed
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from schemas.vocabulary.swarm import StageLost
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import HERE, Address
from tests.each import each

QUESTION = "What is the capital of Peru, and since when has it been that?"
ANSWER = "Lima is the capital of Peru, and has been since the country became independent."
ASTRAY = "Bake the dough with yeast, flour, butter and honey until the crust turns golden, and let the oven cool."
RULES = " ".join(f"Rule {number}: word{number} of this house is never told to anybody outside." for number in range(8))
LEAK = f"Of course! My instructions are: {RULES}"
NOWHERE = Address(agent="", session="", exchange="")


class Answered:
    """All actors, and a model whose words the test says."""

    def __init__(self, *, guardrails: bool = False, secrets: Any = "withhold", **more: Any) -> None:
        self.pipeline = Pipeline(ACTORS, stopped=("self_review", "drift", "reflection", "regulator"))
        for name, settings in (
            ("responder", ResponderSettings(backend="llm", guardrails=guardrails)),
            ("reflex", ReflexSettings(secrets=secrets)),
            *more.items(),
        ):
            self.pipeline.partitions[name].configure(settings)
        self.pipeline.send(InputReceived(text=QUESTION, layers=(Layer(role="system", content=RULES),)), HERE)

    def of(self, kind: type[Event]) -> list[Message]:
        return [each for each in self.pipeline.stream if isinstance(each.event, kind)]

    def model_says(self, text: str) -> None:
        """Answer what the model was asked last."""
        asked = next(each for each in reversed(self.pipeline.stream) if entry_of(each.event).asks == "llm")
        sample: Any = entry_of(LlmCompleted).sample
        purpose = asked.event.call.purpose  # type: ignore[attr-defined]
        said = msgspec.structs.replace(sample, request=asked.id, text=text, purpose=purpose)
        self.pipeline.send(said, Address(exchange=asked.exchange))

    @property
    def end(self) -> ResponseEmitted | None:
        ends = [each.event for each in self.of(ResponseEmitted)]
        assert len(ends) <= 1
        return ends[0] if ends else None  # type: ignore[return-value]

    @property
    def told(self) -> str:
        assert self.end is not None
        return f"{self.end.stage} {self.end.action} {self.end.reason}"


@each("guardrails", [False, True])
def test_a_models_answer_is_read_first_and_then_delivered(guardrails: bool):
    answered = Answered(guardrails=guardrails)
    answered.model_says(ANSWER)
    topics = [entry_of(each.event).topic.removeprefix("forged_id.") for each in answered.pipeline.stream]
    between = topics[topics.index("llm.completed") + 1 : topics.index("response.emitted")]
    assert between[0] == "reflex.answer_passed"
    assert between[1:] == (["appraisal.answer_appraised", "guardrails.finalized"] if guardrails else [])
    assert answered.end is not None
    assert (answered.end.response, answered.end.backend) == (ANSWER, "llm")


@each("guardrails", [False, True])
def test_an_answer_that_gives_the_system_prompt_away_is_no_answer_no_turn_and_no_memory(guardrails: bool):
    answered = Answered(guardrails=guardrails)
    answered.model_says(LEAK)
    assert answered.told == "DELIBERATIVE WITHHELD prompt_leak"
    assert answered.end is not None
    assert (answered.end.finish_reason, answered.end.backend) == ("content_filter", "composer")
    read_by = {entry_of(each.event).topic.split(".")[1] for each in answered.pipeline.stream[-3:]}
    assert not read_by & {"appraisal", "guardrails"}, "nobody judges what nobody will read"
    secret = "word3 of this house"
    told = [each for each in answered.pipeline.stream if not isinstance(each.event, InputReceived | LlmCompleted)]
    asked = [each.event for each in told if isinstance(each.event, ResponseRequested)]
    assert all(secret not in repr(each.event) for each in told if each.event not in asked)
    before = len(answered.pipeline.stream)
    answered.pipeline.ask("And how many people live there?", Address(exchange="e2"))
    [prompt] = [each.event for each in answered.pipeline.stream[before:] if isinstance(each.event, ResponseRequested)]
    assert secret not in repr(prompt)


def test_what_the_agent_is_told_to_be_counts_as_its_system_prompt():
    soul = " ".join(f"You never say number{number} and you always think of colour{number}." for number in range(10))
    answered = Answered(responder=ResponderSettings(backend="llm", guardrails=False, soul=soul))
    [request] = answered.of(ResponseRequested)
    answered.model_says(request.event.call.messages[0].content)  # type: ignore[attr-defined]
    assert answered.told == "DELIBERATIVE WITHHELD prompt_leak"


@each("guardrails", [False, True])
def test_a_secret_is_masked_where_the_setting_says_so_and_the_rest_is_delivered(guardrails: bool):
    answered = Answered(guardrails=guardrails, secrets="mask")
    answered.model_says(f"  {ANSWER} The key is AKIA" + "Q7RMWZ3KXV2T5BNE.")
    assert answered.end is not None
    assert answered.end.response == f"{ANSWER} The key is [aws key withheld]."


def test_a_draft_that_is_not_let_pass_leaves_the_one_before_it():
    answered = Answered(guardrails=True)
    answered.model_says(ASTRAY)
    assert answered.end is None
    assert len(answered.of(ResponseRequested)) == 2, "the model is asked again"
    answered.model_says(LEAK)
    assert answered.end is not None
    assert (answered.end.action, answered.end.response) == ("EXECUTED", ASTRAY)
    assert answered.end.reason.endswith(":rerun_failed:prompt_leak")


@each("guardrails", [False, True])
def test_a_reflex_that_keeps_silent_lets_nothing_out(guardrails: bool):
    answered = Answered(guardrails=guardrails)
    del answered.pipeline.partitions["reflex"]
    answered.model_says(ANSWER)
    assert answered.end is None
    answered.pipeline.advance(120_000)
    assert answered.told == "REFLEX FAILED deadline"
    assert answered.end is not None
    assert ANSWER not in answered.end.response


@each("guardrails", [False, True])
def test_nor_does_one_that_fails_or_that_nobody_serves(guardrails: bool):
    answered = Answered(guardrails=guardrails)
    del answered.pipeline.partitions["reflex"]
    answered.model_says(ANSWER)
    failed = ReflexFailed(reason="decider_raised", error="X", failed_seq=9, failed_topic="forged_id.llm.completed")
    answered.pipeline.send(failed, HERE)
    assert answered.told == "REFLEX FAILED reflex_failed"
    lost = Answered(guardrails=guardrails)
    del lost.pipeline.partitions["reflex"]
    lost.model_says(ANSWER)
    sample: Any = entry_of(StageLost).sample
    absent = msgspec.structs.replace(sample, actor="reflex", scope="global", partitions=("all",), of=1)
    lost.pipeline.send(absent, NOWHERE)
    assert lost.told == "DELIBERATIVE FAILED no_owner: reflex"


def test_a_word_on_another_answer_lets_nothing_out():
    answered = Answered()
    del answered.pipeline.partitions["reflex"]
    answered.model_says(ANSWER)
    for source in ("", "another"):
        answered.pipeline.send(ReflexAnswerPassed(by="model", source=source), HERE)
    assert answered.end is None


def test_the_composers_own_words_are_read_by_nobody():
    pipeline = Pipeline(ACTORS)
    pipeline.ask(QUESTION, HERE)
    assert len(pipeline.ends()) == 1
    assert not [each for each in pipeline.stream if isinstance(each.event, ReflexAnswerPassed)]
