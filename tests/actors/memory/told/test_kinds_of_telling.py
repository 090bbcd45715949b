"""Kinds of telling that were missed, and of words that were taken for tellings: each with siblings of its kind."""

from actors.memory.extraction.corrections import KnownValues
from actors.memory.extraction.fact_extraction import extract_facts, facts_in
from tests.actors.memory.builders import known, partition, talk
from tests.each import each

CHANGES = {
    "I've changed my name to Sarah": {"name": "Sarah"},
    "I have just changed my email to ada@example.org": {"email": "ada@example.org"},
    "My name was legally changed to Sarah": {"name": "Sarah"},
    "My name was happily changed to Sarah": {},
    "My name has been changed from Chad to Sarah": {"name": "Sarah"},
    "We've changed our wifi password to hunter2": {"wifi password": "hunter2"},
    "I changed my name to hide from him": {},
    "I've changed my mind": {},
    "I changed my plans to fit yours": {},
}
CALLED = {
    "Everyone calls me Al": {"name": "Al"},
    "All my friends call me Al": {"name": "Al"},
    "My family always calls me Al": {"name": "Al"},
    "I prefer to be called Al": {"name": "Al"},
    "I'm better known as Al": {"name": "Al"},
    "The name's Bond": {"name": "Bond"},
    "Everyone calls me late at night": {},
    "My mother calls me every day": {},
    "My boss calls me stupid": {},
    "my brother calls me later": {},
}
BY_NOW = {
    "My dog is now called Max": {"dog's name": "Max"},
    "My cat is actually called Tom": {"cat's name": "Tom"},
    "I'm now officially called Sarah": {"name": "Sarah"},
    "We are now living in Brno": {"home": "Brno"},
    "My boss is currently Ann": {"boss": "Ann"},
    "My dog is now asleep": {},
}
NO_VALUE = (
    "My name is redacted", "My name is XXXX", "My name is [name]", "My name is mud", "My name is John Doe",
    "I live in XXXX", "My email is n/a", "I work at TBD", "Remember that the gate code is xxxx",
)  # fmt: skip
NOWHERE = (
    "I live in a house", "I live in an old flat", "I live in a small town", "I live in a country with bears",
    "I am Working at a problem", "I'm working for a solution", "I work at an answer",
)  # fmt: skip
SOMEWHERE = {
    "I live in a house in Lima": {"home": "a house in Lima"},
    "I live in a tiny village near Brno": {"home": "a tiny village near Brno"},
    "I live in the countryside": {"home": "the countryside"},
    "I work at a bank": {"employer": "a bank"},
    "I work for a small startup": {"employer": "a small startup"},
    "I work at an animal shelter": {"employer": "an animal shelter"},
}
NOT_THEIRS = (
    "Yesterday I dreamed. I live in Rome.",
    "I had a strange dream last night. I live in Rome.",
    "I was dreaming again. My name is Otto.",
    "She said. I live in Rome.",
    "This is what he wrote. I work at Acme.",
    "My aunt told me this yesterday. I live in Rome.",
    "To be or not to be. I live in Denmark. -- Hamlet",
    "I live in Denmark. \u2014 Hamlet, Act 1",
    "I am Sam. Sam I am. ~ Dr. Seuss",
    "I work for Caesar! - Brutus of Rome",
)
THEIRS = {
    "My name is Ada, as I said. I live in Lima.": {"name": "Ada", "home": "Lima"},
    "I dream of travelling. I live in Rome.": {"home": "Rome"},
    "I live in Rome. I had a dream last night.": {"home": "Rome"},
    "I live in St. Louis. I work at Acme.": {"home": "St Louis", "employer": "Acme"},
}
TOLD = {**CHANGES, **CALLED, **BY_NOW, **SOMEWHERE, **THEIRS}


@each(("text", "told"), TOLD.items())
def test_what_is_told(text: str, told: dict[str, str]) -> None:
    assert {fact.key: fact.value for fact in facts_in(text)} == told


@each("text", [*NO_VALUE, *NOWHERE, *NOT_THEIRS])
def test_what_tells_nothing(text: str) -> None:
    assert facts_in(text) == ()


ACME, PRAGUE, CHAD = "I work for Acme", "I live in Prague", "My name is Chad"
CORRECTED = {
    "I left Acme and joined Initech": (ACME, {"employer": "Initech"}),
    "I left Acme for Initech": (ACME, {"employer": "Initech"}),
    "I quit Acme to join Initech last May": (ACME, {"employer": "Initech"}),
    "I left Acme last year and started at Initech": (ACME, {"employer": "Initech"}),
    "I left Acme for good": (ACME, {}),
    "I left Acme for personal reasons": (ACME, {}),
    "I left Acme for lunch": (ACME, {"employer": "Acme"}),
    "I left Prague for Brno": (PRAGUE, {"home": "Brno"}),
    "I left Prague for the weekend": (PRAGUE, {"home": "Prague"}),
    "I left Acme and joined Initech, a bank": (PRAGUE, {"home": "Prague"}),
    "I left the party and joined Ann": (ACME, {"employer": "Acme"}),
    "Not Chad, Sarah": (CHAD, {"name": "Sarah"}),
    "No, not Chad, Sarah!": (CHAD, {"name": "Sarah"}),
    "Not Chad but Sarah": (CHAD, {"name": "Sarah"}),
    "Not Prague, Brno": (PRAGUE, {"home": "Brno"}),
    "Not bad, Sarah": (CHAD, {"name": "Chad"}),
    "Not today, Sarah": (CHAD, {"name": "Chad"}),
    "Not Chad, stupid": (CHAD, {"name": "Chad"}),
    "I've changed my name to Sarah": (CHAD, {"name": "Sarah"}),
    "I live in a house": (PRAGUE, {"home": "Prague"}),
    "Forget everything about me": (CHAD, {}),
    "Please forget all you know about me": (PRAGUE, {}),
    "Forget everything you know": (CHAD, {"name": "Chad"}),
}


@each(("text", "before", "after"), [(text, *rest) for text, rest in CORRECTED.items()])
def test_what_is_known_after_a_correction(text: str, before: str, after: dict[str, str]) -> None:
    memory = partition()
    talk(memory, before, "before")
    talk(memory, text, "after")
    assert known(memory) == after


def test_all_that_is_known_is_taken_back_at_once() -> None:
    told = extract_facts(
        "Forget everything about me", KnownValues({"name": "Ada", "home": "Lima", "opinion of tea": "likes it"})
    )
    assert {(each.key, each.why) for each in told.ended} == {
        ("name", "withdrawn"),
        ("home", "withdrawn"),
        ("opinion of tea", "withdrawn"),
    }
