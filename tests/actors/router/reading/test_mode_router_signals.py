"""Signal Collection: each row of the source's two tables, read through a router and found in its decision.

The source counts turns from 0 to 4 and facts from 0 to 50: memory keeps no more (``tests/actors/memory``).
"""

from typing import Any

import pytest

from schemas.vocabulary.memory import COLD, Familiarity
from schemas.vocabulary.router import Signals
from tests.actors.router.builders import ask, ground, partition


def row(signal: str, value: Any, *, text: str = "the blue one", known: Familiarity = COLD, of: str = "") -> Any:
    """Return a row of the tables: what is said over which ground, and what the signal then is."""
    shown = f" {of}" if of else ""
    return pytest.param(signal, value, text, known, id=f"mode-router: Signal Collection, {signal}{shown}")


CONTEXT = [
    row("context_warmth", 0.0, known=ground()),
    row("context_warmth", 0.44, known=ground(turns=4, gists=1, facts=1)),
    row("context_warmth", 1.0, known=ground(turns=4, gists=5, facts=5)),
    row("working_memory_turns", 4, known=ground(turns=4)),
    row("gist_count", 2, known=ground(gists=2)),
    row("fact_count", 50, known=ground(facts=50)),
    row("fact_keys", ("fact 0", "fact 1"), known=ground(facts=2)),
    row("world_state_present", True, known=ground(world_state_present=True)),
    row("topic_confidence", 0.71, known=ground(topic_confidence=0.71)),
    row("is_new_topic", True, known=ground(is_new_topic=True)),
    row("session_exchange_count", 9, known=ground(turns=4, session_exchange_count=9)),
]
TEXT = [
    row("prompt_token_count", 4, text="Could you fix it?"),
    row("prompt_token_count", 0, text=" \n"),
    row("has_question_mark", True, text="The blue one?"),
    row("has_question_mark", False, text="which one"),
    *(
        row("interrogative_words", True, text=text, of=text.split()[0])
        for text in (
            "what is it", "who is it", "when is it", "where is it", "why is it", "how is it done", "which is it",
            "can you do it", "is it done",
        )
    ),
    row("interrogative_words", False, text="it is the blue one"),
    *(row("greeting_pattern", True, text=text, of=text) for text in ("hey", "hi", "hello", "yo", "sup")),
    row("greeting_pattern", False, text="fix it"),
    row("explicit_feedback", "positive", text="Thanks, that helped", of="positive"),
    row("explicit_feedback", "negative", text="That's not helpful", of="negative"),
    row("explicit_feedback", None, of="None"),
    row("information_density", 0.5, text="no no yes yes", of="unique tokens / total tokens"),
    row("implicit_reference", True, text="Do you remember the lease?", of="you remember"),
    row("implicit_reference", True, text="As we discussed, buy it", of="we discussed"),
    row("implicit_reference", True, text="Do it like last time", of="last time"),
    row("implicit_reference", False, text="The last time it rained was in May"),
]  # fmt: skip


@pytest.mark.parametrize(("signal", "value", "text", "known"), [*CONTEXT, *TEXT])
def test_a_signal_is_observed_and_recorded(signal: str, value: object, text: str, known: Familiarity):
    selected = ask(partition(), text, "e1", familiarity=known)
    assert getattr(selected.signals, signal) == value


OURS = {"answerable", "underspecified", "social", "recall", "task", "bearing", "findings"}
"""Signals that the source does not have: see ``test_standard``."""


def test_the_tables_name_every_signal_of_the_source_and_no_other():
    assert {each.values[0] for each in (*CONTEXT, *TEXT)} == {*Signals.__struct_fields__} - OURS
