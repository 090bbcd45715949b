"""What the next input says of a choice: each row of the feedback table, and what is none."""

from typing import Any

from actors.router.settings import RouterSettings
from schemas.vocabulary.feedback import FeedbackGiven
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.router import FeedbackObserved, Mode
from tests.actors.router.builders import answered, ask, feedback, ground, partition
from tests.actors.scenario import Address, Partition
from tests.each import each

QUESTION = "What is the capital of Peru?"
MINUTES_MS = 60_000


def after(
    mode: Mode | None, first_mode: Mode | None = None, text: str = QUESTION, action: str = "EXECUTED"
) -> Partition:
    """Return a router after an exchange that was answered in a mode."""
    router = partition()
    ask(router, text, "e1")
    router.hear(answered(mode, action, first_mode), Address(exchange="e1"))
    return router


@each(
    "text",
    [
        "What is the capital of Peru?",
        "what's the capital of peru",
        "capital of Peru?",
        "What is the capital of Peru, please",
        "What is the capital of Peru in 1800?",
    ],
)
def test_repeating_an_answered_question_at_once_is_a_missed_clarify(text: str):
    """mode-router: Post-Routing Feedback, user immediately repeats -> misroute (missed_clarify)."""
    assert feedback(after("RESPOND"), text, "e2") == ("missed_clarify", "repeated")


@each(
    "text",
    [
        "I meant the country, not the bear", "no, I mean the other one", "That's not what I asked",
        "Sorry, what I meant was the port", "Let me rephrase: where does the government sit?",
        "I was asking about the old capital", "You misunderstood me", "To be clear, I need the old one",
        "In other words, where do they rule from?",
    ],
)  # fmt: skip
def test_setting_right_what_was_asked_is_a_missed_clarify(text: str):
    """mode-router: Post-Routing Feedback, user immediately clarifies -> misroute (missed_clarify)."""
    assert feedback(after("RESPOND"), text, "e2") == ("missed_clarify", "clarified")


@each(
    "text",
    [
        "Don't you remember what I told you about Lima?",
        "What did we discuss last time?",
        "As I said, I live there",
        "Didn't I tell you? You said it was Cusco",
    ],
)
def test_a_follow_up_on_shared_history_is_a_missed_act(text: str):
    """mode-router: Post-Routing Feedback, memory-related follow-up -> misroute (missed_act)."""
    assert feedback(after("RESPOND"), text, "e2") == ("missed_act", "memory_follow_up")


def test_where_an_act_loop_had_run_none_was_missed():
    assert feedback(after("RESPOND", first_mode="ACT"), "What did we discuss last time?", "e2") is None


@each("text", ["That's not helpful", "No, that's wrong", "you misunderstood"])
def test_disapproval_of_an_acknowledgment_is_under_engagement(text: str):
    """mode-router: Post-Routing Feedback, negative after ACKNOWLEDGE -> misroute (under_engagement)."""
    assert feedback(after("ACKNOWLEDGE"), text, "e2") == ("under_engagement", "negative")


@each("mode", ["RESPOND", "CLARIFY", "ACKNOWLEDGE", "IGNORE"])
def test_approval_says_that_any_mode_was_right(mode: Mode):
    """mode-router: Post-Routing Feedback, positive after any mode -> correct_route."""
    assert feedback(after(mode), "Thanks, that's exactly what I needed!", "e2") == ("correct_route", "positive")


def test_approval_after_an_act_loop_says_so_too():
    assert feedback(after("RESPOND", first_mode="ACT"), "Great, thanks", "e2") == ("correct_route", "positive")


@each(
    "text",
    [
        "What is the capital of Chile?", "And how many people live there?", "go on", "", "That's wrong",
        "I mean it's a nice country", "The asking price is 300",
    ],
)  # fmt: skip
def test_what_simply_follows_an_answer_is_no_feedback(text: str):
    assert feedback(after("RESPOND"), text, "e2") is None


@each("mode", ["CLARIFY", "ACKNOWLEDGE"])
@each("text", [QUESTION, "I meant the country", "What did we discuss last time?"])
def test_only_an_answer_in_substance_can_have_missed_something(mode: Mode, text: str):
    assert feedback(after(mode), text, "e2") is None


def test_a_bare_word_said_twice_is_no_complaint():
    assert feedback(after("RESPOND", text="next"), "next", "e2") is None


def test_it_names_the_exchange_judged_and_the_mode_it_was_answered_in():
    router = after("RESPOND", first_mode="ACT")
    (event,) = router.when(InputReceived(text="thanks!"), Address(exchange="e2"))
    assert event == FeedbackObserved(of_exchange="e1", mode="RESPOND", feedback="correct_route", signal="positive")


def test_it_is_told_in_the_exchange_that_it_was_heard_in():
    router = after("RESPOND")
    (message,) = router.hear(InputReceived(text="thanks!"), Address(exchange="e2"))
    assert message.exchange == "e2"


def test_only_the_next_input_judges():
    """mode-router: Post-Routing Feedback, signals from the NEXT exchange."""
    router = after("RESPOND")
    assert feedback(router, "And how many people live there?", "e2") is None
    assert feedback(router, "thanks!", "e3") is None


def test_a_repeated_input_judges_once():
    router = after("RESPOND")
    assert feedback(router, "thanks!", "e2") is not None
    assert feedback(router, "thanks!", "e2") is None


def test_an_input_that_comes_before_the_answer_does_not_judge_it():
    router = partition()
    ask(router, QUESTION, "e1")
    assert feedback(router, "thanks!", "e2") is None


@each("action", ["BLOCKED", "WITHHELD", "FAILED"])
def test_what_was_not_answered_is_not_judged(action: str):
    assert feedback(after(None, action=action), "thanks!", "e2") is None


def test_another_session_does_not_judge():
    router = after("RESPOND")
    assert router.when(InputReceived(text="thanks!"), Address(session="other", exchange="e2")) == []


def test_the_same_question_much_later_is_no_complaint():
    router = after("RESPOND")
    later = router.when(InputReceived(text=QUESTION), Address(exchange="e2"), after_ms=10 * MINUTES_MS + 1)
    assert later == []


def test_within_ten_minutes_it_is():
    router = after("RESPOND")
    assert router.when(InputReceived(text=QUESTION), Address(exchange="e2"), after_ms=10 * MINUTES_MS)


def test_how_long_at_once_lasts_is_a_setting():
    router = after("RESPOND").configure(RouterSettings(feedback_within_ms=1_000))
    assert router.when(InputReceived(text=QUESTION), Address(exchange="e2"), after_ms=1_001) == []


def test_feedback_and_the_decision_on_the_same_input_are_events_of_their_own():
    router = after("RESPOND")
    router.hear(InputReceived(text="thanks!"), Address(exchange="e2"))
    assert [type(each.event).__name__ for each in router.emitted] == ["ModeSelected", "FeedbackObserved"]
    assert ask(router, "x", "e3", familiarity=ground()).previous_mode == "RESPOND"


def test_no_feedback_moves_a_weight():
    """mode-router: Core Principles, 2 monitors observe and none modifies weights."""
    router = partition()
    settings = router.state.settings
    before = ask(router, QUESTION, "e1").weights
    for number, text in enumerate(("That's wrong", "What did we discuss last time?", QUESTION, "Thanks!"), 2):
        router.hear(answered("RESPOND"), Address(exchange=f"e{number - 1}"))
        after = ask(router, text, f"e{number}").weights
        assert after == before
    assert router.state.settings == settings


def test_a_forgotten_session_is_not_recognised_by_its_words():
    said = "What became of my diagnosis of grotbulax?"
    router = partition()
    ask(router, said, "e1")
    router.hear(answered("RESPOND"), Address(exchange="e1"))
    assert feedback(router, said, "e2") == ("missed_clarify", "repeated")
    router.hear(answered("RESPOND"), Address(exchange="e2"))
    router.hear(ForgetOrdered(what="session", by="ann", why="the person asked for it"), Address(exchange=""))
    assert feedback(router, said, "e3") is None
    assert len(router.state.sessions) == 1, "of the input that came after it"


def test_a_session_in_which_a_forgotten_fact_was_told_leaves_nothing_to_be_recognised_by():
    said = "My name is Zanzibarius, and I love quokkas"
    router = partition()
    ask(router, said, "e1")
    router.hear(answered("RESPOND"), Address(exchange="e1"))
    router.hear(TurnsForgotten(sessions=("session",)), Address(session="", exchange=""))
    assert feedback(router, said, "e2") is None


def given(router: Partition, exchange: str, **said: Any) -> list[tuple[str, str]]:
    """Tell of an exchange in so many words; return what the router makes of it."""
    return [
        (event.feedback, event.signal)
        for event in router.when(FeedbackGiven(**said), Address(exchange=exchange))
        if isinstance(event, FeedbackObserved)
    ]


@each(
    ("mode", "reward", "learned"),
    [
        ("RESPOND", 1.0, [("correct_route", "rewarded")]),
        ("ACKNOWLEDGE", 0.2, [("correct_route", "rewarded")]),
        ("ACKNOWLEDGE", -0.5, [("under_engagement", "disapproved")]),
        ("RESPOND", -1.0, []),
        ("RESPOND", 0.0, []),
        ("RESPOND", None, []),
        (None, 1.0, []),
    ],
)
def test_what_an_application_says_of_an_exchange_judges_its_mode(
    mode: Mode | None, reward: float | None, learned: list[tuple[str, str]]
):
    assert given(partition(), "long-ago", mode=mode, reward=reward, comment="so") == learned


def test_the_same_word_on_an_exchange_is_learned_once_and_another_one_again():
    router = partition()
    assert given(router, "e1", mode="ACKNOWLEDGE", reward=1.0) == [("correct_route", "rewarded")]
    assert given(router, "e1", mode="ACKNOWLEDGE", reward=0.5) == []
    assert given(router, "e1", mode="ACKNOWLEDGE", reward=-0.5) == [("under_engagement", "disapproved")]
    assert given(router, "e2", mode="ACKNOWLEDGE", reward=1.0) == [("correct_route", "rewarded")]


def test_the_next_input_says_nothing_of_an_exchange_that_somebody_spoke_of():
    router = after("RESPOND")
    given(router, "e1", mode="RESPOND", reward=-1.0)
    assert feedback(router, QUESTION, "e2") is None
    router = after("RESPOND")
    given(router, "e0", mode="RESPOND", reward=-1.0)
    assert feedback(router, QUESTION, "e2") == ("missed_clarify", "repeated")
