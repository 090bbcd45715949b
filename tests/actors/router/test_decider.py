"""The state machine: one mode for each exchange that is passed, and what a session remembers."""

import msgspec
import pytest

from actors.router import ACTOR
from actors.router.settings import RouterSettings
from schemas.event import Event
from schemas.persistent import decode_state, encode_state, state_hash
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.router import ModeSelected, RouterConfigured
from tests.actors.router.builders import ESCALATED, answered, appraised, ask, partition, talk
from tests.actors.scenario import Address, Partition

DAY_MS = 24 * 3600 * 1000
SESSION_KEY = "agent\nsession"
E1, E2 = Address(exchange="e1"), Address(exchange="e2")


def test_an_input_alone_selects_nothing():
    assert partition().when(InputReceived(text="Hey")) == []


def test_an_escalated_input_gets_one_mode():
    router = partition()
    router.hear(InputReceived(text="Hey"), E1)
    (selected,) = router.hear(ESCALATED, E1)
    assert isinstance(selected.event, ModeSelected)
    assert selected.event.terminal_mode == "ACKNOWLEDGE"
    assert selected.exchange == "e1"


def test_an_escalation_without_a_pending_input_selects_nothing():
    assert partition().when(ESCALATED, E1) == []


def test_a_second_escalation_selects_nothing_more():
    router = partition()
    ask(router, "Hey", "e1")
    assert router.when(ESCALATED, E1) == []


def test_an_escalation_after_the_end_selects_nothing():
    router = partition()
    router.hear(InputReceived(text="Hey"), E1)
    router.hear(answered(None, "FAILED"), E1)
    assert router.when(ESCALATED, E1) == []


def test_exchanges_are_kept_apart():
    router = partition()
    router.hear(InputReceived(text="Hey"), E1)
    router.hear(InputReceived(text=" "), E2)
    (second,) = router.when(ESCALATED, E2)
    (first,) = router.when(ESCALATED, E1)
    assert isinstance(first, ModeSelected)
    assert isinstance(second, ModeSelected)
    assert (first.selected_mode, second.selected_mode) == ("ACKNOWLEDGE", "IGNORE")


def test_the_text_is_dropped_once_the_mode_is_out():
    router = partition()
    ask(router, "Hey", "e1")
    assert len(router.state.pending) == 0


def test_the_text_is_dropped_when_the_exchange_ends_without_a_mode():
    router = partition()
    router.hear(InputReceived(text="attack"), E1)
    router.hear(answered(None, "BLOCKED"), E1)
    assert len(router.state.pending) == 0


def test_the_first_exchange_of_a_session_is_a_new_topic():
    router = partition()
    first, second = talk(router, "Why is it?", "e1"), talk(router, "Why is it?", "e2")
    assert (first.signals.is_new_topic, second.signals.is_new_topic) == (True, False)
    assert (first.signals.session_exchange_count, second.signals.session_exchange_count) == (0, 1)
    assert (first.conversation_topic, first.signals.topic_confidence) == ("unclassified", 0.0)


def test_the_topic_is_the_one_that_was_appraised():
    router = partition()
    router.hear(InputReceived(text="Why is it?"), E1)
    assert router.when(appraised("leases", 0.71, is_new=False), E1) == []
    (selected,) = router.when(ESCALATED, E1)
    assert isinstance(selected, ModeSelected)
    assert selected.conversation_topic == "leases"
    assert (selected.signals.topic_confidence, selected.signals.is_new_topic) == (0.71, False)


def test_a_new_topic_in_a_known_session_is_new():
    router = partition()
    talk(router, "Why is it?", "e1")
    router.hear(InputReceived(text="Why is it?"), E2)
    router.hear(appraised("bikes", 0.2, is_new=True), E2)
    (selected,) = router.when(ESCALATED, E2)
    assert isinstance(selected, ModeSelected)
    assert selected.signals.is_new_topic is True


def test_a_repeated_input_and_its_second_appraisal_change_nothing():
    router = partition()
    for text, topic in [("Hey", "greetings"), ("What is the capital of Peru?", "cities")]:
        router.hear(InputReceived(text=text), E1)
        router.hear(appraised(topic, 0.9, is_new=False), E1)
    (selected,) = router.when(ESCALATED, E1)
    assert isinstance(selected, ModeSelected)
    assert (selected.terminal_mode, selected.conversation_topic) == ("ACKNOWLEDGE", "greetings")
    assert ask(router, "Hey", "e2").signals.session_exchange_count == 1


def test_an_appraisal_of_an_unknown_exchange_leaves_nothing():
    router = partition()
    before = state_hash(router.state)
    router.hear(appraised("leases", 0.71, is_new=False), E1)
    assert state_hash(router.state) == before


def test_answered_exchanges_fill_working_memory_up_to_four_turns():
    router = partition()
    turns = [talk(router, "go on", f"e{index}").signals.working_memory_turns for index in range(7)]
    assert turns == [0, 1, 2, 3, 4, 4, 4]
    assert talk(router, "go on", "last").signals.context_warmth == 0.3


@pytest.mark.parametrize(
    "end", [answered(None, "BLOCKED"), answered(None, "WITHHELD"), answered(None, "FAILED"), answered("IGNORE")]
)
def test_what_was_not_answered_is_no_turn(end: Event):
    router = partition()
    router.hear(InputReceived(text="x"), E1)
    router.hear(end, E1)
    assert ask(router, "go on", "e2").signals.working_memory_turns == 0


def test_an_exchange_under_way_is_no_turn_yet():
    router = partition()
    ask(router, "go on", "e1")
    second = ask(router, "go on", "e2")
    assert (second.signals.working_memory_turns, second.signals.session_exchange_count) == (0, 1)


def test_the_mode_of_the_last_answer_is_the_previous_one():
    router = partition()
    assert talk(router, "Is it ready yet?", "e1").previous_mode is None
    assert talk(router, "the blue one", "e2").previous_mode == "CLARIFY"


def test_after_a_clarification_an_answer_gains():
    after_clarify, after_answer = partition(), partition()
    for router, mode in ((after_clarify, "CLARIFY"), (after_answer, "RESPOND")):
        ask(router, "x", "e1")
        router.hear(msgspec.structs.replace(answered(), mode=mode), E1)
    gained = ask(after_clarify, "the blue one", "e2").scores["RESPOND"]
    assert round(gained - ask(after_answer, "the blue one", "e2").scores["RESPOND"], 6) == 0.05


def test_after_an_unproductive_act_another_loses():
    router = partition()
    talk(router, "x", "e1")
    memory = router.state.sessions.get(SESSION_KEY)
    wasted = msgspec.structs.replace(memory, act_unproductive=True)
    plain, guarded = router, Partition(ACTOR)
    guarded.state = msgspec.structs.replace(
        router.state, sessions=router.state.sessions.set(SESSION_KEY, wasted, router.now_ns, DAY_MS * 1_000_000)
    )
    guarded.now_ns = router.now_ns
    lost = ask(guarded, "the blue one", "e2").scores["ACT"]
    assert round(lost - ask(plain, "the blue one", "e2").scores["ACT"], 6) == -0.15


# With these bases every statement is answered with a confidence of 0.1, every greeting with a high one.
CLOSE = RouterSettings(
    base_scores={"RESPOND": 0.5, "CLARIFY": 0.45, "ACT": 0.0},
    weights={
        "respond.cold_penalty": 0.0,
        "respond.warmth_boost": 0.0,
        "clarify.cold_boost": 0.0,
        "guard.after_clarify": 0.0,
    },
)


def test_three_low_confidences_in_a_row_widen_the_margin_of_the_fourth():
    router = partition(CLOSE)
    selections = [ask(router, "so be it then", f"e{index}") for index in range(5)]
    assert {selected.router_confidence for selected in selections} == {0.1}
    assert [selected.effective_margin for selected in selections] == [0.2, 0.2, 0.2, 0.25, 0.25]


def test_a_recovered_confidence_resets_the_streak():
    router = partition(CLOSE)
    texts = ["so be it then"] * 3 + ["Hey"] + ["so be it then"] * 4
    margins = [ask(router, text, f"e{index}").effective_margin for index, text in enumerate(texts)]
    assert margins == [0.2, 0.2, 0.2, 0.25, 0.2, 0.2, 0.2, 0.25]


def test_blank_inputs_leave_the_streak_alone():
    router = partition(CLOSE)
    texts = ["so be it then", " ", "so be it then", "", "so be it then", "so be it then"]
    margins = [ask(router, text, f"e{index}").effective_margin for index, text in enumerate(texts)]
    assert margins == [0.2, 0.0, 0.2, 0.0, 0.2, 0.25]


def test_streaks_are_kept_by_topic_and_only_the_latest():
    router = partition(RouterSettings(topics_remembered=2))
    sample = ask(router, "Hey", "e")
    for topic, confidence in [("a", 0.1), ("b", 0.1), ("a", 0.12), ("c", 0.01), ("c", 0.5)]:
        low = msgspec.structs.replace(sample, conversation_topic=topic, router_confidence=confidence)
        router.fold(router.own(low))
    memory = router.state.sessions.get("\n")  # own events of no session
    assert [(streak.topic, streak.confidences) for streak in memory.streaks] == [("a", (0.1, 0.12))]


def test_sessions_are_kept_apart():
    router = partition()
    for index in range(4):
        talk(router, "Is it ready yet?", f"e{index}", session="one")
    other = ask(router, "Is it ready yet?", "e9", session="two")
    assert (other.previous_mode, other.signals.working_memory_turns, other.signals.is_new_topic) == (None, 0, True)


def test_a_session_unused_for_its_lifetime_is_forgotten():
    router = partition()
    talk(router, "go on", "e1")
    router.hear(InputReceived(text="go on"), E2, after_ms=DAY_MS + 1)
    (selected,) = router.when(ESCALATED, E2)
    assert isinstance(selected, ModeSelected)
    assert (selected.signals.is_new_topic, selected.signals.working_memory_turns) == (True, 0)
    assert selected.previous_mode is None


def test_a_session_used_within_its_lifetime_is_remembered():
    router = partition()
    talk(router, "go on", "e1")
    router.hear(InputReceived(text="go on"), E2, after_ms=DAY_MS)
    (selected,) = router.when(ESCALATED, E2)
    assert isinstance(selected, ModeSelected)
    assert selected.signals.session_exchange_count == 1


def test_old_sessions_leave_the_state():
    router = partition(RouterSettings(session_lifetime_ms=1000))
    for index in range(50):
        talk(router, "Hey", f"e{index}", session=f"s{index}")
        router.hear(InputReceived(text="Hey"), Address(session="tick", exchange="tick"), after_ms=500)
        router.hear(answered(), Address(session="tick", exchange="tick"))
    assert len(router.state.sessions) <= 6


def test_settings_in_force_are_those_last_recorded():
    router = partition()
    router.configure(RouterSettings(weights={"acknowledge.greeting": 0.0}))
    assert ask(router, "Hey", "e1").terminal_mode == "CLARIFY"


def test_recorded_settings_that_no_longer_convert_leave_the_last_ones_in_force():
    router = partition(RouterSettings(act_available=True))
    before = state_hash(router.state)
    router.fold(router.own(RouterConfigured(settings={"weights": {"gone": 1.0}}, settings_hash="", behaviour=9)))
    assert state_hash(router.state) == before


def test_a_state_survives_its_snapshot():
    router = partition(CLOSE)
    for index in range(3):
        ask(router, "so be it then", f"e{index}")
    router.hear(InputReceived(text="zwölf"), E1)
    restored = decode_state(encode_state(router.state), ACTOR.state_type)
    assert state_hash(restored) == state_hash(router.state)
    assert restored == router.state
