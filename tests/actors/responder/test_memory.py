"""What the responder remembers of a session, for how long, and to whom it says it."""

from actors.responder import ACTOR
from actors.responder.composer import MEMORY_TURNS
from actors.responder.settings import ResponderSettings
from schemas.persistent import encode_state
from tests.actors.responder.builders import OVERDUE, PASSED, asked, blocked, chosen
from tests.actors.scenario import Address, Partition


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
    responder = Partition(ACTOR).configure(ResponderSettings(quote_limit=50))
    answered(responder, "long " * 10_000, turn(1))
    assert len(encode_state(responder.state)) < 1000


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
