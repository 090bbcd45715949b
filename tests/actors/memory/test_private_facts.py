"""What memory keeps of private data, where it is to be no fact: nothing that tells a number, an address or a key."""

from actors.memory.extraction.private_facts import is_private
from actors.memory.settings import MemorySettings
from schemas.vocabulary.act import Action
from tests.actors.memory.builders import act, ask, known, partition, talk
from tests.actors.scenario import Address

TOLD = ("My email is ada@example.org.", "My phone number is +49 30 901820.", "My name is Ada.")


def test_private_data_is_no_fact_for_agents_that_the_setting_names() -> None:
    for private, agent, kept in (
        (("*",), "agent", 1),
        (("agent",), "agent", 1),
        (("another",), "agent", 3),
        ((), "agent", 3),
    ):
        memory = partition(MemorySettings(private=private))
        for number, text in enumerate(TOLD):
            talk(memory, text, f"e{number}", agent=agent)
        assert len(known(memory)) == kept, private


def test_nor_is_it_what_was_told_at_once_or_what_a_plan_has_memorized() -> None:
    memory = partition(MemorySettings(private=("*",)))
    assert ask(memory, TOLD[0]).told == ()
    action = Action(index=0, skill="memorize", key="card", value="4111 1111 1111 1111")
    answered = act(memory, action, here=Address(exchange="question"))
    assert (answered.stored, answered.results[0].ok) == ((), False)


def test_what_is_private_is_told_from_what_is_not() -> None:
    for text in (
        "4111 1111 1111 1111",
        "DE89370400440532013000",
        "030/901820",
        "ada@example.org",
        "AKIA" + "Q7RMWZ3KXV2T5BNE",
    ):
        assert is_private(text), text
    for text in ("Ada", "1984", "12 Quay Street", "2026-11-29"[:7], "blue and green"):
        assert not is_private(text), text
