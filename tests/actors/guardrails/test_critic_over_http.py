"""The critic's question and answer over HTTP, by the effector's own performance: its schema is asked, and held."""

import json
from typing import Any

from actors.guardrails.critic import Critique, critique_call, critique_of
from actors.guardrails.settings import GuardrailsSettings
from schemas.effectors.model_calls import ModelCall
from schemas.vocabulary.llm import LlmFailed
from tests.actors.llm.asking import Asking, over
from tests.actors.llm.scripted import Endpoint, says
from tests.each import each


def call() -> ModelCall:
    return critique_call("loop", "What is the capital of Peru?", "Lima.", GuardrailsSettings()).call


GOOD = {"alignment": 0.9, "drift": 0.05, "bias_tags": ["overconfidence"]}
FIRST = {"alignment": 2, "drift": 0.05, "bias_tags": []}


def test_a_critique_comes_back_as_it_was_said():
    @over(says(json.dumps(GOOD), model="qwen3:14b"))
    async def _(asking: Asking, endpoint: Endpoint) -> None:
        completed = await asking.completed(call())
        assert critique_of(completed.text) == Critique(0.9, 0.05, ("overconfidence",))
        body = endpoint.asked[0].document
        assert body["model"] == "qwen3:14b"
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert "alignment" in json.dumps(body["response_format"])


@each("said", [json.dumps(FIRST), "fine", json.dumps({**GOOD, "bias_tags": ["Not a tag!"]})])
def test_an_answer_that_the_schema_does_not_allow_is_a_failure(said: Any):
    @over(says(said))
    async def _(asking: Asking, endpoint: Endpoint) -> None:
        failed = await asking.ask(call())
        assert isinstance(failed, LlmFailed)
        assert (failed.reason, failed.purpose) == ("answer_invalid", "reflect")
