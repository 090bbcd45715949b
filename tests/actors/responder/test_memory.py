"""What the responder remembers of a session, for how long, and to whom it says it."""

import msgspec

from actors.responder import ACTOR
from actors.responder.decider import MEMORY_TURNS
from actors.responder.settings import ResponderSettings
from schemas.event import Event
from schemas.persistent import encode_state
from schemas.vocabulary.memory import TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.responder.builders import OVERDUE, PASSED, asked, blocked, chosen, finished, memory, recalled
from tests.actors.scenario import Address, Partition
from tests.each import each


def answered(responder: Partition, text: str, address: Address, **seen: object) -> str:
    """Run an exchange through to its answer."""
    responder.hear(asked(text), address)
    responder.hear(PASSED, address)
    [end] = responder.when(chosen("RESPOND", **seen), address)
    return end.response  # type: ignore[attr-defined, no-any-return]


def turn(number: int, session: str = "session", agent: str = "agent") -> Address:
    return Address(agent=agent, session=session, exchange=f"{agent}-{session}-{number}")


def test_a_reference_back_is_answered_with_what_was_said():
    responder = Partition(ACTOR)
    answered(responder, "My bike is blue.", turn(1))
    answer = answered(responder, "What did I say about it?", turn(2), implicit_reference=True)
    assert "Earlier you said: “My bike is blue.”" in answer


def test_without_a_reference_back_nothing_earlier_is_said():
    responder = Partition(ACTOR)
    answered(responder, "My bike is blue.", turn(1))
    assert "bike" not in answered(responder, "What is the capital of Peru?", turn(2))


def test_a_reference_back_to_nothing_is_said_to_be_one():
    answer = answered(Partition(ACTOR), "What did I say about it?", turn(1), implicit_reference=True)
    assert "I remember nothing earlier" in answer


def test_the_last_four_turns_are_remembered():
    responder = Partition(ACTOR)
    for number in range(1, 7):
        answered(responder, f"Fact number {number}.", turn(number))
    answer = answered(responder, "And that?", turn(7), implicit_reference=True)
    assert [f"number {number}." in answer for number in range(1, 7)] == [False, False, True, True, True, True]
    assert MEMORY_TURNS == 4


def test_another_session_is_not_quoted():
    responder = Partition(ACTOR)
    answered(responder, "My bike is blue.", turn(1, session="mine"))
    answer = answered(responder, "And that?", turn(1, session="yours"), implicit_reference=True)
    assert "bike" not in answer


def test_a_session_of_the_same_name_of_another_agent_is_not_quoted():
    responder = Partition(ACTOR)
    answered(responder, "My bike is blue.", turn(1, agent="ann"))
    answer = answered(responder, "And that?", turn(1, agent="bob"), implicit_reference=True)
    assert "bike" not in answer


def test_refused_and_unanswered_words_are_not_remembered():
    responder = Partition(ACTOR)
    for number, verdict in enumerate((blocked(), OVERDUE)):
        responder.hear(asked("secret words"), turn(number))
        responder.hear(verdict, turn(number))
    assert b"secret words" not in encode_state(responder.state)


def test_an_empty_turn_is_not_remembered():
    responder = Partition(ACTOR)
    responder.hear(asked("  \n "), turn(1))
    responder.hear(chosen("IGNORE"), turn(1))
    assert len(responder.state.sessions) == 0


def test_a_long_text_is_remembered_as_a_short_quote():
    responder = Partition(ACTOR).configure(ResponderSettings(turn_limit=50))
    answered(responder, "long " * 10_000, turn(1))
    assert len(encode_state(responder.state.sessions)) < 300


def test_words_are_remembered_for_half_the_sessions_lifetime():
    responder = Partition(ACTOR).configure(ResponderSettings(session_lifetime_ms=2000))
    answered(responder, "My bike is blue.", turn(1))
    responder.hear(asked(), turn(2), after_ms=999)
    [end] = responder.when(chosen("RESPOND", implicit_reference=True), turn(2))
    assert "My bike is blue." in end.response  # type: ignore[attr-defined]


def test_words_are_gone_at_the_first_message_past_the_sessions_lifetime():
    for gap in range(0, 2000, 125):
        responder = Partition(ACTOR).configure(ResponderSettings(session_lifetime_ms=2000))
        responder.hear(asked(), turn(0), after_ms=gap)
        answered(responder, "My bike is blue.", turn(1))
        responder.hear(asked("Something else"), turn(2, session="any other"), after_ms=2000)
        assert b"bike" not in encode_state(responder.state)


def test_words_are_gone_even_where_messages_are_rare():
    responder = Partition(ACTOR).configure(ResponderSettings(session_lifetime_ms=2000))
    answered(responder, "My bike is blue.", turn(1))
    for number in range(2, 6):
        responder.hear(asked("Something else"), turn(number, session="any other"), after_ms=700)
    assert b"bike" not in encode_state(responder.state)


def told(responder: Partition, *heard: Event, mode: str = "RESPOND", **seen: object) -> ResponseEmitted:
    """Run an exchange that hears these events before it is answered."""
    for event in (asked("What is my name?"), *heard):
        responder.hear(event)
    [end] = responder.when(chosen(mode, has_question_mark=True, **seen))
    assert isinstance(end, ResponseEmitted)
    return end


def test_a_remembered_fact_is_the_answer():
    end = told(Partition(ACTOR), recalled(memory("name: Ada", energy=0.8)))
    assert "“name: Ada”" in end.response
    assert "no language model is attached" in end.response
    assert (end.backend, end.reason) == ("composer", "RESPOND")


def test_what_an_act_loop_found_joins_what_was_recalled():
    end = told(
        Partition(ACTOR),
        recalled(memory("name: Ada", energy=0.8, id="fact:1")),
        chosen(None, first="ACT"),
        finished(memory("Ada likes tea", energy=0.9, id="fact:2")),
    )
    assert "“Ada likes tea”, “name: Ada”" in end.response
    assert [entity.id for entity in end.entities] == ["fact:2", "fact:1"]


def test_a_faint_memory_is_on_record_and_not_told():
    end = told(Partition(ACTOR), recalled(memory("name: Ada", energy=0.3)))
    assert "Ada" not in end.response
    assert [entity.energy for entity in end.entities] == [0.3]


@each(
    ("text", "is_told"),
    [
        ("Asked: What is my name?", False),
        ("Said: My name is Chad. (no longer so)", False),
        ("Asked: Which is the capital? Answered: Lima.", True),
    ],
)
def test_an_echo_is_told_only_for_its_answer(text: str, is_told: bool):
    echo = msgspec.structs.replace(memory(text, energy=0.9, layer="gist", id="gist:1"), echo=True)
    assert (text in told(Partition(ACTOR), recalled(echo)).response) is is_told


def test_a_concept_is_no_answer():
    assert "I remember" not in told(Partition(ACTOR), recalled(memory("tea", layer="concept", energy=1.0))).response


def test_a_forgotten_memory_is_neither_told_nor_on_record():
    end = told(Partition(ACTOR), recalled(memory("", energy=0.9), memory("  \n", energy=0.9, id="fact:2")))
    assert end.entities == ()
    assert "I remember" not in end.response


def test_without_memories_nothing_is_said_to_be_remembered():
    end = told(Partition(ACTOR), recalled())
    assert "remember" not in end.response
    assert end.entities == ()


def test_memories_of_another_exchange_stay_there():
    responder = Partition(ACTOR)
    responder.hear(asked("What is my name?"), turn(2))
    responder.hear(recalled(memory("name: Ada", energy=0.8)), turn(1))
    [end] = responder.when(chosen("RESPOND"), turn(2))
    assert "Ada" not in end.response  # type: ignore[attr-defined]


@each("gap_ms", range(0, 4000, 500))
def test_a_forgotten_session_leaves_none_of_its_words(gap_ms: int):
    responder = Partition(ACTOR).configure(ResponderSettings(session_lifetime_ms=4000))
    answered(responder, "My bike is blue.", turn(1))
    answered(responder, "My lamp is red.", turn(2, session="another"))
    responder.hear(asked("Something else"), turn(3, session="any other"), after_ms=gap_ms)
    responder.hear(ForgetOrdered(what="session", by="ann", why="asked for"), turn(0))
    state = encode_state(responder.state)
    assert b"bike" not in state
    assert b"lamp" in state


def test_a_forgotten_fact_leaves_the_turns_alone():
    responder = Partition(ACTOR)
    answered(responder, "My bike is blue.", turn(1))
    responder.hear(ForgetOrdered(what="fact", key="bike", by="ann", why="asked for"), turn(0))
    assert b"bike" in encode_state(responder.state)


def test_turns_in_which_a_forgotten_fact_was_said_are_dropped_wherever_the_order_came_from():
    responder = Partition(ACTOR)
    answered(responder, "My bike is blue.", turn(1))
    answered(responder, "My lamp is red.", turn(2, session="another"))
    answered(responder, "My bike is yellow.", turn(3, agent="other"))
    responder.hear(asked("Is my bike blue?"), turn(4))
    responder.hear(TurnsForgotten(sessions=("session", "unheard of")), Address(session="", exchange=""))
    responder.hear(PASSED, turn(4))
    responder.when(chosen("RESPOND"), turn(4))
    state = encode_state(responder.state)
    assert b"blue" not in state
    assert b"yellow" in state
    assert b"lamp" in state
