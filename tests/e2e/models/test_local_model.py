"""A talk of ten turns with the small model in the worker: the whole path, from the command line to the model and back.

What a model of 135 million parameters says is not judged. What it was asked is: a fact told in the first turn is in the
prompt of the tenth, long after the turn itself has left the working memory.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from actors.llm.local import missing_parts
from actors.llm.settings import LlmSettings
from events.ledger import LedgerReader
from tests.deploy.waiting import until
from tests.e2e.live import Live

LACKING = missing_parts(LlmSettings(backend="local"))
pytestmark = pytest.mark.skipif(bool(LACKING), reason=LACKING)

FACT = "Brunhilde"
TURNS = (
    f"My goat is called {FACT}.",
    "Hello!",
    "What should I cook tonight?",
    "Something with rice and beans.",
    "How long do beans need?",
    "Thanks!",
    "Which spices go well with rice?",
    "I have pepper and salt.",
    "How many people does a pound of rice feed?",
    "What is my goat called?",
)
SHORT = (
    *("--set", "responder.answer_tokens=8"),
    *("--set", "responder.turn_tokens=96"),
    *("--set", "responder.memory_tokens=160"),
    *("--set", "act.max_iterations=1"),
)
"""Few tokens to read and to write: the machine that runs the tests has no graphics processor."""


class Talk(NamedTuple):
    """What ``chat`` printed of each turn, and each turn's events in the ledger."""

    ends: list[dict[str, Any]]
    events: list[list[dict[str, Any]]]

    def last(self, topic: str) -> dict[str, Any]:
        """Return the one event of a topic in the tenth turn."""
        (event,) = [event for event in self.events[-1] if event["topic"] == f"forged_id.{topic}"]
        return event


def converse(folder: Path) -> Talk:
    """Have the ten turns, and read them back."""
    running = Live(folder, "--llm", "local", *SHORT)
    try:
        ends = running.rows("chat", "--json", "--session", "ten-turns", stdin="\n".join(TURNS))

        def events() -> list[list[dict[str, Any]]]:
            with LedgerReader(running.ledger) as reader:
                return [[json.loads(each.data) for each in reader.exchange(end["exchange"])] for end in ends]

        def is_whole() -> bool:
            return any(event["topic"] == "forged_id.response.emitted" for event in events()[-1])

        until(is_whole, "the ledger holds the tenth end")
        return Talk(ends, events())
    finally:
        running.stop()


# One test, for the talk is dear and would be had again by each process that runs a part of it.
def test_ten_turns_end_once_each_and_the_model_is_told_in_the_tenth_what_the_first_one_said(tmp_path: Path) -> None:
    talk = converse(tmp_path)
    assert len({end["exchange"] for end in talk.ends}) == len(talk.ends) == len(TURNS)
    assert [(end["action"], bool(end["response"].strip())) for end in talk.ends] == [("EXECUTED", True)] * len(TURNS)
    ended = [[event["topic"] for event in turn].count("forged_id.response.emitted") for turn in talk.events]
    assert ended == [1] * len(TURNS)

    recalled = talk.last("memory.recalled")["recollections"]
    assert ("fact", f"goat's name: {FACT}") in {(each["layer"], each["text"]) for each in recalled}
    *earlier, asked = talk.last("response.requested")["call"]["messages"]
    assert f"goat's name: {FACT}" in asked["content"]
    assert asked["content"].endswith(TURNS[-1])
    assert TURNS[0] not in {message["content"] for message in earlier}

    answers = [event for turn in talk.events for event in turn if event["topic"] == "forged_id.llm.completed"]
    assert {(each["backend"], each["model"]) for each in answers} == {("local", "SmolLM2-135M-Instruct.Q4_1")}
    emitted = talk.last("response.emitted")
    assert emitted["backend"] == "llm"
    assert "fact" in {each["layer"] for each in emitted["entities"]}
