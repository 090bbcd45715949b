"""What ``why`` and ``feed`` say of a look back, and what ``neuraxis reflection show`` says of an agent."""

import msgspec
from rich.console import Console

from deploy.cli.rendering.why.details import LineContext, details
from deploy.cli.tuning.reflection import reflection_overview
from schemas.event import Event
from schemas.vocabulary.reflection import ReflectionConcluded
from tests.actors.reflection.builders import Reflecting, answer, opinion, selection
from tests.each import each


def told(event: Event) -> str:
    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        for line in details(event, LineContext()):
            console.print(line)
    return captured.get()


def concluded() -> ReflectionConcluded:
    agent = Reflecting()
    asked = agent.request(selection(), selection())
    return agent.says(asked, answer(opinion(1), opinion(2, confidence=0.5)))


def test_a_request_names_its_strata():
    event = Reflecting().request(selection(), selection(0.9)).event
    assert "second opinion on 2 decisions: 1 low confidence, 1 high confidence" in told(event)


def test_a_conclusion_names_every_opinion_and_why_one_does_not_count():
    lines = told(concluded())
    assert "disagreement 1 of 1 opinions that count, 1 of it over memory_availability: no pressure" in lines
    assert "no: low_confidence" in lines


@each("reason", ["circuit_open", "answer_invalid", "\x1b[31mred"])
def test_a_model_that_said_nothing_is_told_by_its_reason(reason: str):
    lines = told(msgspec.structs.replace(concluded(), insights=(), reason=reason))
    assert "no second opinion" in lines
    assert "\x1b" not in lines


def test_an_agent_is_shown_with_what_waits_and_what_its_opinions_come_to():
    agent = Reflecting()
    agent.look_back(*[(selection(), opinion(1))] * 2, (selection(), opinion(1, "RESPOND")))
    agent.exchange(selection(0.9))
    found = reflection_overview("agent", agent.partition.state)
    assert (found.counted, found.disagreement, found.pressure, found.open_exchanges) == (3, 0.666667, False, 0)
    assert [(each.stratum, each.waiting) for each in found.waiting] == [("high_confidence", 1)]
    assert [(each.dimension, each.counted, each.disagree) for each in found.opinions] == [("memory_availability", 3, 2)]
