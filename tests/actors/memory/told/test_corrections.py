"""What a person corrects or takes back is known no more, and the log says why."""

from actors.memory.extraction.corrections import KnownValues
from actors.memory.extraction.fact_extraction import extract_facts
from schemas.vocabulary.act import Action
from schemas.vocabulary.memory import FactsRetired, Retired
from tests.actors.memory.builders import act, ask, begin, forget, known, partition, response, retired_by, talk, texts
from tests.actors.scenario import Address
from tests.each import each

TOLD_BEFORE = {
    "name": "Chad",
    "employer": "Acme",
    "home": "Prague",
    "job": "nurse",
    "opinion of tea": "likes it",
    "allergy to peanuts": "is allergic to it",
    "favourite colour": "teal",
}
ASKED_NAME = "What is my name?"
CORRECTED = [
    ("No, it is Sarah", {"name": "Sarah"}, {"name": "corrected"}),
    ("No, it's Sarah.", {"name": "Sarah"}, {"name": "corrected"}),
    ("Sorry, I meant Sarah", {"name": "Sarah"}, {"name": "corrected"}),
    ("actually it's spelled Sara", {"name": "Sara"}, {"name": "corrected"}),
    ("my name is Sarah, not Chad", {"name": "Sarah"}, {"name": "corrected"}),
    ("It's Sarah, not Chad", {"name": "Sarah"}, {"name": "corrected"}),
    ("Sarah, not Chad", {"name": "Sarah"}, {"name": "corrected"}),
    ("My name is not Chad but Sarah", {"name": "Sarah"}, {"name": "corrected"}),
    ("My name isn't Chad, it's Sarah", {"name": "Sarah"}, {"name": "corrected"}),
    ("I'm not Chad, I'm Sarah", {"name": "Sarah"}, {"name": "corrected"}),
    ("My name used to be Chad, now it's Sarah", {"name": "Sarah"}, {"name": "ended"}),
    ("no it's Sarah", {"name": "Sarah"}, {"name": "corrected"}),
    ("No, my name is Sarah", {"name": "Sarah"}, {"name": "corrected"}),
    ("That's not my name. It's Sarah.", {"name": "Sarah"}, {"name": "corrected"}),
    ("It's not Chad, it's Sarah", {"name": "Sarah"}, {"name": "corrected"}),
    ("it's spelled S-a-r-a-h", {"name": "Sarah"}, {"name": "corrected"}),
    ("I live in Brno now, not Prague", {"home": "Brno"}, {"home": "corrected"}),
    ("I no longer work for Acme", {}, {"employer": "ended"}),
    ("I don't work at Acme any more", {}, {"employer": "ended"}),
    ("I've stopped working at Acme", {}, {"employer": "ended"}),
    ("I used to work for Acme, now I work for Initech", {"employer": "Initech"}, {"employer": "ended"}),
    ("I quit my job at Acme", {}, {"employer": "ended"}),
    ("I left Acme last month", {}, {"employer": "ended"}),
    ("I quit my job", {}, {"employer": "ended", "job": "ended"}),
    ("I've retired", {}, {"employer": "ended", "job": "ended"}),
    ("I'm no longer a nurse", {}, {"job": "ended"}),
    ("I moved from Prague to Brno", {"home": "Brno"}, {"home": "ended"}),
    ("I don't live in Prague", {}, {"home": "corrected"}),
    ("I don't like tea any more", {"opinion of tea": "does not like it"}, {"opinion of tea": "ended"}),
    ("I no longer like tea", {"opinion of tea": "does not like it"}, {"opinion of tea": "ended"}),
    ("I used to like tea", {}, {"opinion of tea": "ended"}),
    ("I'm not allergic to peanuts", {}, {"allergy to peanuts": "corrected"}),
    ("My favourite colour is no longer teal, it's red", {"favourite colour": "red"}, {"favourite colour": "ended"}),
    ("forget that I like tea", {}, {"opinion of tea": "withdrawn"}),
    ("Please forget that I live in Prague.", {}, {"home": "withdrawn"}),
    ("Forget what I told you about my job", {}, {"job": "withdrawn"}),
    ("forget my name", {}, {"name": "withdrawn"}),
]
NOT_CORRECTED = [
    "I no longer work for Initech", "I quit my job at Initech", "I don't live in Rome", "I used to live in Rome",
    "My brother no longer works for Acme", "If I no longer worked for Acme, would I be free?",
    "Translate: I no longer work for Acme", "She said I no longer work for Acme", "Do I no longer work for Acme?",
    "It is Sarah", "No, that is wrong.", "No, it is raining.", "No, it is the capital of Peru",
    "Actually it's late, can I make that decaf?",
    "No, that's what I need help with. I want through the door, but it's Locked.",
    "I have worked a lot and used to do sport", "forget it", "I lost.", "I quit smoking", "I left the room",
    "Please ignore my email", "I live in a world of pain, not joy", "Forget everything and say hello",
]  # fmt: skip


@each(("text", "facts", "ended"), CORRECTED, named=[text for text, *_ in CORRECTED])
def test_a_correction_takes_back_what_it_names_and_tells_what_holds(text: str, facts: dict, ended: dict):  # type: ignore[type-arg]
    told = extract_facts(text, KnownValues(TOLD_BEFORE, ASKED_NAME))
    assert {fact.key: fact.value for fact in told.facts} == facts
    assert {each.key: each.why for each in told.ended} == ended


@each("text", NOT_CORRECTED)
def test_what_names_nothing_that_is_known_takes_back_nothing(text: str):
    told = extract_facts(text, KnownValues(TOLD_BEFORE, ASKED_NAME))
    assert (told.facts, told.ended) == ((), ())


@each(
    ("said", "text", "facts"),
    [
        ("I live in Prague", "No, it's Brno", {"home": "Brno"}),
        ("My favourite colour is teal", "Sorry, I meant red", {"favourite colour": "red"}),
        ("I work for Acme", "Wait, it's Initech", {"employer": "Initech"}),
        ("What is the capital of Peru?", "No, it's Lima", {}),
        ("My name is Chad and I live in Prague", "No, it is Sarah", {}),
        ("I like tea", "No, it is Sarah", {}),
        ("My daughter is called Eva", "No, it's Eve", {"daughter's name": "Eve"}),
        ("What is the name of the river?", "No, it is Rhine", {}),
        ("What is your name?", "No, it is Sarah", {}),
        ("Where do I live?", "No, it is Brno", {"home": "Brno"}),
        ("", "No, it is Sarah", {}),
    ],
)
def test_a_correction_without_a_referent_is_of_the_one_fact_that_the_last_turn_was_about(
    said: str, text: str, facts: dict[str, str]
):
    assert {fact.key: fact.value for fact in extract_facts(text, KnownValues(TOLD_BEFORE, said)).facts} == facts


def test_a_correction_may_be_of_what_the_same_text_told():
    told = extract_facts("My name is Chad. No wait, it's Sarah.", KnownValues())
    assert [(fact.key, fact.value) for fact in told.facts] == [("name", "Sarah")]


def test_a_replaced_value_is_retired_by_its_number_and_with_why():
    memory = partition()
    talk(memory, "My name is Chad", "e1")
    assert retired_by(memory, "No, it is Sarah") == [
        Retired(key="name", value="Chad", fact=1, why="corrected", replaced=True, exchanges=(1,))
    ]
    assert known(memory) == {"name": "Sarah"}
    assert texts(ask(memory, "What is my name?", session="other"))[0] == "name: Sarah"


def test_what_was_told_before_a_correction_comes_after_it_and_is_said_to_be_no_longer_so():
    memory = partition()
    talk(memory, "My name is Chad and the bridge is closed", "e1", vector=(100, 0))
    retired_by(memory, "No, it is Sarah")
    found = ask(
        memory, "What is my name, and is the bridge open?", "e3", vector=(100, 0), session="other"
    ).recollections
    assert found[0].text == "name: Sarah"
    (stale,) = [each for each in found if "Chad" in each.text]
    assert stale.echo
    assert stale.text.endswith("(no longer so)")


def test_a_value_that_is_told_again_retires_nothing():
    memory = partition()
    talk(memory, "My name is Ada", "e1")
    assert retired_by(memory, "my name is ada") == []


def test_a_value_that_ended_is_known_no_more_and_not_recalled():
    memory = partition()
    talk(memory, "I work for Acme", "e1", session="monday")
    (retired,) = retired_by(memory, "I no longer work for Acme", session="friday")
    assert (retired.why, retired.replaced) == ("ended", False)
    assert known(memory) == {}
    found = ask(memory, "Who do I work for?", session="other")
    assert [each for each in found.recollections if each.layer == "fact"] == []
    assert not found.familiarity.world_state_present
    assert retired_by(memory, "I no longer work for Acme", "again") == [], "once is enough"


def test_what_ended_may_be_told_anew():
    memory = partition()
    talk(memory, "I live in Prague", "e1")
    retired_by(memory, "I don't live in Prague any more")
    talk(memory, "I live in Brno", "e2")
    assert known(memory) == {"home": "Brno"}


def test_what_is_memorized_retires_what_it_replaces():
    memory = partition()
    talk(memory, "My name is Chad", "e1")
    here = Address(exchange="e2")
    begin(memory, "Save my name as Sarah", here)
    act(memory, Action(index=0, skill="memorize", key="name", value="Sarah"), here=here)
    assert known(memory) == {"name": "Sarah"}
    assert memory.when(response(), here)[1:] == []


def test_when_the_session_of_a_correction_is_forgotten_the_fact_is_known_again():
    memory = partition()
    talk(memory, "I work for Acme", "e1", session="monday")
    retired_by(memory, "I no longer work for Acme", session="friday")
    forget(memory, session="friday")
    assert known(memory) == {"employer": "Acme"}


def test_a_retired_fact_can_be_forgotten_with_the_exchanges_that_it_was_told_in():
    memory = partition()
    talk(memory, "I work for Acme", "e1")
    retired_by(memory, "I no longer work for Acme")
    assert forget(memory, key="employer").exchanges == (1, 2)


def test_a_correction_makes_two_events_of_one_decision():
    memory = partition()
    talk(memory, "I live in Prague", "e1")
    here = Address(exchange="e2")
    begin(memory, "I moved from Prague to Brno", here)
    remembered, retired = memory.when(response(), here)
    assert [fact.value for fact in remembered.facts] == ["Brno"]  # type: ignore[attr-defined]
    assert isinstance(retired, FactsRetired)
    assert [each.why for each in retired.retired] == ["ended"]
