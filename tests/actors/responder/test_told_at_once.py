"""Without a model, who tells something or takes it back is told that it was heard, in the very answer to it."""

from typing import Any

import msgspec

from actors.registry import ACTORS
from actors.responder import ACTOR
from events.decoding import Recorded, decode
from schemas.vocabulary.breaker import Stance
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import Recollection, Retired
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.responder.builders import CLEARED, Requested, asked, chosen, ended, memory, recalled, with_model
from tests.actors.scenario import Address, Partition
from tests.each import each
from tests.events.recording import Recording

CHAD = Retired(key="name", value="Chad", fact=3, why="corrected", replaced=True, exchanges=(1,))


def cleared(stance: Stance) -> Any:
    sample: Any = CLEARED
    return msgspec.structs.replace(sample, standing=msgspec.structs.replace(sample.standing, stance=stance))


def answered(
    text: str,
    *memories: Recollection,
    mode: str = "RESPOND",
    told: dict[str, str] | None = None,
    retired: tuple[Retired, ...] = (),
    **seen: object,
) -> str:
    responder = Partition(ACTOR)
    responder.hear(asked(text))
    responder.hear(recalled(*memories, told=told, retired=retired))
    return ended(responder.when(chosen(mode, **seen))).response


def test_a_fact_that_is_told_is_said_to_have_been_heard():
    said = answered("My name is Ada", told={"name": "Ada"})
    assert said.startswith("You told me: “name: Ada”.")
    assert "no language model is attached" in said
    assert "no answer of my own to give" not in said


def test_a_correction_names_what_holds_no_longer():
    said = answered("No, it is Sarah", told={"name": "Sarah"}, retired=(CHAD,))
    assert said.startswith("You told me: “name: Sarah”, and no longer: “name: Chad”.")


@each("mode", ["RESPOND", "CLARIFY", "ACKNOWLEDGE"])
def test_what_is_taken_back_is_said_to_be_and_not_told_as_a_memory(mode: str):
    known = (
        memory("name: Chad", energy=0.9, id="fact:3"),
        memory("Said: I am Chad.", energy=0.8, layer="gist", id="gist:1"),
    )
    said = answered("forget my name", *known, mode=mode, retired=(CHAD,))
    assert "You took back: “name: Chad”." in said
    assert "remember this" not in said
    assert "This is what I remember" not in said
    assert "I am Chad" not in said


def test_of_much_that_is_taken_back_a_few_are_named_and_the_rest_counted():
    all_of_it = tuple(Retired(key=f"k{n}", value="v", fact=n, why="withdrawn", replaced=False) for n in range(30))
    said = answered("forget everything about me", retired=all_of_it)
    assert "“k7: v” and 22 more." in said
    assert "k8" not in said


def test_a_question_that_comes_with_it_is_answered_as_one():
    known = memory("allergy to milk: is allergic to it", energy=0.9, id="fact:1")
    said = answered("I'm Ada. What may I drink?", known, told={"name": "Ada"}, has_question_mark=True)
    assert said.startswith("You told me: “name: Ada”. This is what I remember that may bear on")
    assert "“allergy to milk: is allergic to it”" in said


def test_a_courtesy_keeps_its_place_before_what_was_told():
    said = answered("Hi, I'm Ada", mode="ACKNOWLEDGE", told={"name": "Ada"}, greeting_pattern=True)
    assert said == "Hello. You told me: “name: Ada”."


def test_nothing_told_is_nothing_said_of_it():
    assert "You t" not in answered("Peru is lovely.")


def test_it_is_said_where_a_model_was_asked_in_vain_too():
    responder = with_model()
    responder.hear(asked("My name is Ada"))
    responder.hear(recalled(told={"name": "Ada"}))
    request = Requested(responder, "RESPOND")
    end = ended(responder.when(request.failed()))
    assert end.response.startswith("You told me: “name: Ada”.")


def test_a_session_in_danger_of_being_ended_is_told_nothing_of_it():
    responder = Partition(ACTOR)
    responder.hear(asked("My name is Ada"))
    responder.hear(cleared("guarded"))
    responder.hear(recalled(told={"name": "Ada"}))
    end = ended(responder.when(chosen("RESPOND")))
    assert "You told me" not in end.response
    assert "with reserve" in end.response


def test_the_whole_chain_says_what_it_heard_and_what_it_then_knows():
    recording = Recording(ACTORS.values())
    recording.configure()
    said = ("My name is Ada", "No, it is Sarah", "forget my name")
    for number, text in enumerate((*said, "What is my name?")):
        recording.send(InputReceived(text=text), Address("ann", "noon", f"exchange-{number}"))
        recording.settle()
    answers = [
        found.message.event.response
        for found in map(decode, recording.log)
        if isinstance(found, Recorded) and isinstance(found.message.event, ResponseEmitted)
    ]
    assert answers[0].startswith("You told me: “name: Ada”.")
    assert answers[1].startswith("You told me: “name: Sarah”, and no longer: “name: Ada”.")
    assert answers[2].startswith("You took back: “name: Sarah”.")
    assert "Sarah" not in answers[3]
    assert "Ada" not in answers[3]
