"""What a text tells and takes back is said when memory is asked, and is what memory keeps in the end."""

from schemas.vocabulary.memory import FactsRetired, MemoryRecalled, MemoryRemembered
from schemas.vocabulary.operator import ForgetOrdered
from tests.actors.memory.builders import ask, begin, known, partition, recalled, response, talk
from tests.actors.scenario import Address
from tests.each import each

CASES = (
    ("My name is Ada", {}),
    ("No, it is Sarah", {"name": "Ada"}),
    ("forget my name", {"name": "Ada"}),
    ("I moved from Prague to Brno, and I don't like tea any more", {"home": "Prague", "opinion of tea": "likes it"}),
    ("What is the capital of Peru?", {"name": "Ada"}),
    ("Translate: my name is Juan", {}),
)
"""Texts, and what was told before them."""

TELLING = {
    "name": "My name is Ada",
    "home": "I live in Prague",
    "opinion of tea": "I like tea",
}
HERE = Address(exchange="now")


@each(("text", "before"), CASES, named=[text for text, _ in CASES])
def test_what_is_said_at_once_is_what_is_kept(text: str, before: dict[str, str]) -> None:
    memory = partition()
    for number, key in enumerate(before):
        talk(memory, TELLING[key], f"before-{number}")
    assert known(memory) == before
    begin(memory, text, HERE)
    said = recalled(memory, HERE)
    remembered, *retired = memory.when(response(), HERE)
    assert isinstance(remembered, MemoryRemembered)
    assert remembered.facts == said.told
    kept = tuple(one for each in retired if isinstance(each, FactsRetired) for one in each.retired)
    assert kept == said.retired


def test_what_another_session_tells_meanwhile_does_not_change_what_was_said() -> None:
    memory = partition()
    talk(memory, "My name is Ada", "first")
    begin(memory, "No, it is Sarah", HERE)
    said = recalled(memory, HERE)
    talk(memory, "Hi, I'm Tom", "meanwhile", session="elsewhere")
    remembered, retired = memory.when(response(), HERE)
    assert isinstance(remembered, MemoryRemembered)
    assert isinstance(retired, FactsRetired)
    assert remembered.facts == said.told
    assert [each.value for each in said.retired] == ["Ada"]
    assert [each.value for each in retired.retired] == ["Tom"], "what is retired is what holds by then"
    assert known(memory) == {"name": "Sarah"}


def test_of_an_exchange_that_is_forgotten_meanwhile_nothing_is_kept() -> None:
    memory = partition()
    said = ask(memory, "My name is Ada", "now")
    assert [fact.value for fact in said.told] == ["Ada"]
    memory.when(ForgetOrdered(what="session", by="ann", why="asked to"), HERE)
    assert memory.when(response(), HERE) == []
    assert known(memory) == {}


def test_an_exchange_that_a_precedent_answers_is_read_at_its_end() -> None:
    memory = partition()
    begin(memory, "My name is Ada", HERE)
    remembered, *_ = memory.when(response(), HERE)
    assert isinstance(remembered, MemoryRemembered)
    assert [fact.value for fact in remembered.facts] == ["Ada"]


def test_a_question_tells_nothing() -> None:
    said = ask(partition(), "What is the capital of Peru?")
    assert isinstance(said, MemoryRecalled)
    assert (said.told, said.retired) == ((), ())
