"""A running set with a model over real HTTP, and nobody talking: a second opinion on its choices, and a thought."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.actors.llm.scripted import Endpoint, in_background, says
from tests.deploy.waiting import until
from tests.e2e.live import Live

AGENT = ("--agent", "felix", "--session", "morning")
RATIONALE = "Little was known."
OPINION = {
    "number": 1,
    "mode": "CLARIFY",
    "dimension": "memory_availability",
    "confidence": 0.9,
    "rationale": RATIONALE,
}
THOUGHT = "I wonder how the tram of Lima came to be."


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    """An endpoint that has an opinion on whatever it is asked."""
    with in_background(says(json.dumps({"opinions": [OPINION]}))) as served:
        yield served


@pytest.fixture(scope="module")
def idle(endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A set that asks it only while nobody talks: soon after that began, and of most choices."""
    own = ("responder.backend=composer", "router.tiebreak=score", "act.planner=offline")
    most = ("reflection.high_above=0.3",)
    soon = ("reflection.idle_after_ms=200", "drift.interval_ms=400", "drift.cooldown_ms=1", "drift.fatigue_budget=1000")
    flags = [part for assignment in (*own, *most, *soon) for part in ("--set", assignment)]
    running = Live(tmp_path_factory.mktemp("idle"), "--llm", endpoint.base_url, *flags)
    yield running
    running.stop()


def told(idle: Live, topic: str) -> list[dict[str, Any]]:
    """Return the events of a subject, oldest first."""
    return idle.events(topic, "--text")


def of_maria(events: list[dict[str, Any]]) -> bool:
    """Whether any of the events is about the agent maria."""
    return any(each["agent"] == "maria" for each in events)


def test_past_choices_are_looked_at_again_once_the_agent_is_idle(idle: Live, endpoint: Endpoint) -> None:
    for text in ("Tell me about the tram of Lima", "What did we say about the tram?", "Hello there!"):
        idle.ask(text, *AGENT)
    until(lambda: bool(told(idle, "forged_id.reflection.concluded")), "a look back")
    concluded = told(idle, "forged_id.reflection.concluded")[0]["data"]
    [insight] = concluded["insights"]
    assert (insight["dimension"], insight["suggested_mode"], insight["rationale"]) == (
        "memory_availability",
        "CLARIFY",
        RATIONALE,
    )
    assert concluded["pressure"] is False, "one opinion is no pattern"
    prompts = (asked.document["messages"][-1]["content"] for asked in endpoint.asked)
    looked_back = next(prompt for prompt in prompts if prompt.startswith("Decision 1"))
    assert "tram" not in looked_back, "it sees numbers, and nobody's words"
    assert json.loads(idle.run("reflection", "show", "felix", "--json").stdout)["agent"] == "felix"


def test_a_thought_is_the_model_s_words_and_the_composer_s_where_it_says_something_else(
    idle: Live, endpoint: Endpoint
) -> None:
    def thoughts(by: str) -> list[dict[str, Any]]:
        found = (each["data"] for each in told(idle, "forged_id.drift.thought"))
        return [each for each in found if each["by"] == by]

    idle.ask("The tram of Lima is green", *AGENT)
    until(lambda: bool(thoughts("composer")), "a thought in the composer's words")
    assert {each["reason"] for each in thoughts("composer")} == {"answer_invalid"}
    endpoint.replies = [says(json.dumps({"kind": "question", "text": THOUGHT}))]
    # The same is not thought twice: there must be something new to think about.
    idle.ask("The harbour of Quito is wide", *AGENT)
    until(lambda: bool(thoughts("llm")), "a thought in the model's words")
    assert {(each["kind"], each["text"]) for each in thoughts("llm")} == {("question", THOUGHT)}


def test_what_the_model_said_is_on_record_and_everything_is_decided_again_to_the_byte(idle: Live) -> None:
    for text in ("The bridge of Cusco is long", "How long is the bridge?", "Hello there!"):
        idle.ask(text, "--agent", "maria")
    until(lambda: of_maria(told(idle, "forged_id.reflection.concluded")), "a look back")
    until(lambda: of_maria(told(idle, "forged_id.drift.thought")), "a thought")
    (replayed,) = idle.rows("replay", "--verify", "--json")
    assert replayed["clean"] is True
    for actor in ("drift", "reflection"):
        assert replayed["coverage"][actor]["identical"] > 1
        assert replayed["coverage"][actor]["different"] == 0
