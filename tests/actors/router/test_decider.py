"""The state machine: one mode for each exchange that memory recalled something for, and what a session remembers."""

import msgspec

from actors.router import ACTOR
from actors.router.settings import RouterSettings
from schemas.persistent import decode_state, encode_state, state_hash
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import COLD
from schemas.vocabulary.router import ModeSelected
from tests.actors.router.builders import WITHOUT_ACT, answered, ask, finished, ground, hear, partition, recalled, talk
from tests.actors.scenario import Address
from tests.each import each

DAY_MS = 24 * 3600 * 1000
E1, E2 = Address(exchange="e1"), Address(exchange="e2")
MODERATE = ground(turns=4, gists=1, facts=1)


def test_an_input_alone_selects_nothing():
    assert partition().when(InputReceived(text="Hey")) == []


def test_it_waits_for_memory_and_not_for_the_arbiter():
    assert ArbiterEscalated not in ACTOR.consumes


def test_an_input_that_memory_has_recalled_for_gets_one_mode():
    router = partition()
    router.hear(InputReceived(text="Hey"), E1)
    (selected,) = router.hear(recalled(), E1)
    assert isinstance(selected.event, ModeSelected)
    assert selected.event.terminal_mode == "ACKNOWLEDGE"
    assert (selected.exchange, selected.event.rerouted) == ("e1", False)


def test_what_memory_recalls_without_a_pending_input_selects_nothing():
    assert partition().when(recalled(), E1) == []


def test_recalling_twice_selects_nothing_more():
    router = partition()
    ask(router, "Hey", "e1")
    assert router.when(recalled(), E1) == []


def test_recalling_after_the_end_selects_nothing():
    router = partition()
    router.hear(InputReceived(text="Hey"), E1)
    router.hear(answered(None, "FAILED"), E1)
    assert router.when(recalled(), E1) == []


def test_exchanges_are_kept_apart():
    router = partition()
    router.hear(InputReceived(text="Hey"), E1)
    router.hear(InputReceived(text=" "), E2)
    (second,) = router.when(recalled(), E2)
    (first,) = router.when(recalled(), E1)
    assert isinstance(first, ModeSelected)
    assert isinstance(second, ModeSelected)
    assert (first.selected_mode, second.selected_mode) == ("ACKNOWLEDGE", "IGNORE")


@each("end", [answered("RESPOND"), answered(None, "BLOCKED"), answered(None, "FAILED")])
def test_the_text_is_dropped_with_the_end_of_the_exchange(end: object):
    router = partition()
    ask(router, "Hey", "e1")
    router.hear(InputReceived(text="attack"), E2)
    for here in (E1, E2):
        router.hear(end, here)  # type: ignore[arg-type]
    assert len(router.state.pending) == 0


def test_no_words_of_an_ended_exchange_are_kept():
    router = partition()
    talk(router, "The password of the garage is swordfish", "e1", familiarity=MODERATE)
    assert b"swordfish" not in encode_state(router.state)


def test_the_topic_and_its_signals_are_memorys():
    router = partition()
    known = ground(conversation_topic="leases", topic_confidence=0.71, session_exchange_count=7)
    selected = ask(router, "Why is it?", "e1", familiarity=known)
    assert selected.conversation_topic == "leases"
    assert (selected.signals.topic_confidence, selected.signals.is_new_topic) == (0.71, False)
    assert selected.signals.session_exchange_count == 7


def test_a_repeated_input_changes_nothing():
    router = partition()
    for text in ("Hey", "What is the capital of Peru?"):
        router.hear(InputReceived(text=text), E1)
    (selected,) = router.when(recalled(), E1)
    assert isinstance(selected, ModeSelected)
    assert selected.terminal_mode == "ACKNOWLEDGE"


def test_an_input_repeated_after_its_end_leaves_nothing_pending():
    router = partition()
    talk(router, "Hey", "e1")
    assert hear(router, "Hey", "e1") == []
    assert len(router.state.pending) == 0


def test_the_mode_of_the_last_answer_is_the_previous_one():
    router = partition()
    assert talk(router, "Is it ready yet?", "e1").previous_mode is None
    assert talk(router, "the blue one", "e2").previous_mode == "CLARIFY"


def test_a_refused_exchange_leaves_the_previous_mode_as_it_was():
    router = partition()
    talk(router, "Is it ready yet?", "e1")
    router.hear(InputReceived(text="attack"), E2)
    router.hear(answered(None, "BLOCKED"), E2)
    assert ask(router, "the blue one", "e3").previous_mode == "CLARIFY"


def test_after_a_clarification_an_answer_gains():
    """mode-router: Anti-Oscillation Guards, previous CLARIFY, in a session."""
    after_clarify, after_answer = partition(), partition()
    for router, mode in ((after_clarify, "CLARIFY"), (after_answer, "RESPOND")):
        ask(router, "x", "e1")
        router.hear(msgspec.structs.replace(answered(), mode=mode), E1)
    gained = ask(after_clarify, "the blue one", "e2").scores["RESPOND"]
    assert round(gained - ask(after_answer, "the blue one", "e2").scores["RESPOND"], 6) == 0.05


REFERENCE = "What did we discuss about the lease?"


def test_after_act_the_exchange_is_routed_again_without_act():
    """mode-router: Mode Types, ACT re-routes through the router excluding ACT."""
    router = partition()
    first = ask(router, REFERENCE, "e1", familiarity=MODERATE)
    assert (first.selected_mode, first.terminal_mode) == ("ACT", None)
    (again,) = router.when(finished(productive=True), E1)
    assert isinstance(again, ModeSelected)
    assert (again.selected_mode, again.terminal_mode, again.rerouted) == ("RESPOND", "RESPOND", True)
    assert again.scores == {mode: score for mode, score in first.scores.items() if mode != "ACT"}
    assert (again.tiebreaker_used, again.tiebreaker_candidates, again.tiebreaker_outcome) == (False, (), "")
    assert (again.signals, again.previous_mode) == (first.signals, first.previous_mode)


def test_an_exchange_is_routed_again_once():
    router = partition()
    ask(router, REFERENCE, "e1", familiarity=MODERATE)
    router.hear(finished(productive=True), E1)
    assert router.when(finished(productive=True), E1) == []
    assert router.when(recalled(MODERATE), E1) == []


def test_an_act_loop_that_nobody_asked_for_leads_to_nothing():
    router = partition(WITHOUT_ACT)
    assert ask(router, REFERENCE, "e1", familiarity=MODERATE).terminal_mode == "RESPOND"
    assert router.when(finished(productive=True), E1) == []


def after_act(*, productive: bool) -> list[float]:
    """Return ACT's scores in the two decisions that follow an ACT loop, over the same ground."""
    router = partition()
    ask(router, REFERENCE, "e1", familiarity=MODERATE)
    router.hear(finished(productive=productive), E1)
    router.hear(answered("RESPOND", first_mode="ACT"), E1)
    return [talk(router, "the blue one", each, familiarity=MODERATE).scores["ACT"] for each in ("e2", "e3")]


def test_after_an_unproductive_act_loop_the_next_request_and_only_that_shuns_act():
    """mode-router: Anti-Oscillation Guards, per request and not a weight mutation."""
    assert after_act(productive=False) == [0.05, 0.2]  # .20 - .15, then .20


def test_a_productive_act_loop_makes_no_difference():
    assert after_act(productive=True) == [0.2, 0.2]


def test_a_blank_input_does_not_use_the_guard_up():
    router = partition()
    ask(router, REFERENCE, "e1", familiarity=MODERATE)
    router.hear(finished(productive=False), E1)
    router.hear(answered("RESPOND", first_mode="ACT"), E1)
    talk(router, " ", "e2", familiarity=MODERATE)
    assert ask(router, "the blue one", "e3", familiarity=MODERATE).scores["ACT"] == 0.05


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
    """mode-router: Short-Term Hysteresis, last 3 below 0.15 -> margin + 0.05."""
    router = partition(CLOSE)
    selections = [ask(router, "so be it then", f"e{index}") for index in range(5)]
    assert {selected.router_confidence for selected in selections} == {0.1}
    assert [selected.effective_margin for selected in selections] == [0.2, 0.2, 0.2, 0.25, 0.25]


def test_a_recovered_confidence_resets_the_streak():
    """mode-router: Short-Term Hysteresis, resets when confidence recovers."""
    router = partition(CLOSE)
    texts = ["so be it then"] * 3 + ["Hey"] + ["so be it then"] * 4
    margins = [ask(router, text, f"e{index}").effective_margin for index, text in enumerate(texts)]
    assert margins == [0.2, 0.2, 0.2, 0.25, 0.2, 0.2, 0.2, 0.25]


def test_blank_inputs_leave_the_streak_alone():
    router = partition(CLOSE)
    texts = ["so be it then", " ", "so be it then", "", "so be it then", "so be it then"]
    margins = [ask(router, text, f"e{index}").effective_margin for index, text in enumerate(texts)]
    assert margins == [0.2, 0.0, 0.2, 0.0, 0.2, 0.25]


def test_a_streak_on_one_topic_widens_no_other_topics_margin():
    """mode-router: Short-Term Hysteresis, on the same topic."""
    router = partition(CLOSE)
    bikes, boats = (msgspec.structs.replace(COLD, conversation_topic=topic) for topic in ("bikes", "boats"))
    for index in range(3):
        ask(router, "so be it then", f"e{index}", familiarity=bikes)
    assert ask(router, "so be it then", "other", familiarity=boats).effective_margin == 0.2
    assert ask(router, "so be it then", "same", familiarity=bikes).effective_margin == 0.25


def test_a_reroute_does_not_count_twice_in_the_streak():
    router = partition()
    low = msgspec.structs.replace(ask(router, "x", "e"), router_confidence=0.1)
    for selected in (low, msgspec.structs.replace(low, rerouted=True)):
        router.fold(router.own(selected))
    memory = router.state.sessions.get("\n")  # own events of no session
    assert [streak.confidences for streak in memory.streaks] == [(0.1,)]


def test_streaks_are_kept_by_topic_and_only_the_latest():
    router = partition(RouterSettings(topics_remembered=2))
    sample = ask(router, "Hey", "e")
    for topic, confidence in [("a", 0.1), ("b", 0.1), ("a", 0.12), ("c", 0.01), ("c", 0.5)]:
        low = msgspec.structs.replace(sample, conversation_topic=topic, router_confidence=confidence)
        router.fold(router.own(low))
    memory = router.state.sessions.get("\n")
    assert [(streak.topic, streak.confidences) for streak in memory.streaks] == [("a", (0.1, 0.12))]


def test_sessions_are_kept_apart():
    router = partition()
    talk(router, "Is it ready yet?", "e1", session="one")
    assert ask(router, "Is it ready yet?", "e2", session="two").previous_mode is None


@each(("later_ms", "previous"), [(DAY_MS, "CLARIFY"), (DAY_MS + 1, None)])
def test_a_session_is_remembered_for_its_lifetime(later_ms: int, previous: str | None):
    router = partition()
    talk(router, "Is it ready yet?", "e1")
    router.hear(InputReceived(text="go on"), E2, after_ms=later_ms)
    (selected,) = router.when(recalled(), E2)
    assert isinstance(selected, ModeSelected)
    assert selected.previous_mode == previous


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


def test_a_state_survives_its_snapshot():
    router = partition(CLOSE)
    for index in range(3):
        talk(router, "so be it then", f"e{index}")
    ask(router, REFERENCE, "acting", familiarity=MODERATE)
    router.hear(InputReceived(text="zwölf"), E1)
    restored = decode_state(encode_state(router.state), ACTOR.state_type)
    assert state_hash(restored) == state_hash(router.state)
    assert restored == router.state
