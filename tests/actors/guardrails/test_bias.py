"""Bias echo: distinct loops of an agent, in a window."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.guardrails.bias import Biases, count_families, with_loop
from actors.guardrails.settings import GuardrailsSettings
from tests.actors.guardrails.builders import GOOD, HOUR_MS, POOR, completed, guardrails, trace_of
from tests.actors.scenario import Address
from tests.each import each

SETTINGS = GuardrailsSettings()
HOUR_NS = HOUR_MS * 1_000_000


def test_the_loop_being_judged_counts_in_its_own_decision():
    assert trace_of(guardrails(bias_threshold=1), completed("loop", GOOD, "haste")).bias_echo


def test_a_bias_that_a_loop_shows_twice_counts_once():
    partition = guardrails()
    assert trace_of(partition, completed("one", GOOD, "haste", "haste")).repetition_counts == {"haste": 1}
    assert trace_of(partition, completed("two", GOOD, "haste", "haste")).repetition_counts == {"haste": 2}


def test_a_completion_that_is_repeated_counts_no_bias_again():
    partition = guardrails()
    for _ in range(5):
        partition.hear(completed("one", GOOD, "haste"))
    assert trace_of(partition, completed("two", GOOD, "haste")).repetition_counts == {"haste": 2}


def test_loops_of_all_sessions_of_an_agent_count_and_those_of_others_do_not():
    partition = guardrails()
    for session in ("morning", "noon"):
        trace_of(partition, completed(session, GOOD, "haste"), Address(session=session))
    assert not trace_of(partition, completed("one", GOOD, "haste"), Address(agent="other")).bias_echo
    assert trace_of(partition, completed("evening", GOOD, "haste"), Address(session="evening")).bias_echo


def test_the_reruns_of_one_deliberation_are_one_loop():
    partition = guardrails(max_reruns=9)
    counted = [
        trace_of(partition, completed(loop, POOR, "haste")).repetition_counts
        for loop in ("loop", "loop_r1", "loop_r2", "loop_r3")
    ]
    assert counted == [{"haste": 1}] * 4
    assert trace_of(partition, completed("another", POOR, "haste")).repetition_counts == {"haste": 2}


def test_a_rerun_of_another_name_is_one_of_its_family_whoever_comes_first():
    partition = guardrails()
    trace_of(partition, completed("loop_r2", GOOD, "haste"))
    assert trace_of(partition, completed("loop", GOOD, "haste")).repetition_counts == {"haste": 1}


def test_an_echo_that_only_feeds_on_itself_ends_with_what_began_it():
    partition = guardrails()
    for loop in ("one", "two"):
        trace_of(partition, completed(loop, GOOD, "haste"))
    for hour in range(23):
        trace = trace_of(partition, completed(f"halted {hour}", GOOD, "haste"), after_ms=HOUR_MS)
        assert (trace.bias_echo, trace.repetition_counts) == (True, {"haste": 3})
    assert not trace_of(partition, completed("later", GOOD, "haste"), after_ms=HOUR_MS).bias_echo


def test_what_halts_a_loop_for_one_bias_still_counts_its_others():
    partition = guardrails()
    for loop in ("one", "two"):
        trace_of(partition, completed(loop, GOOD, "haste"))
    trace_of(partition, completed("three", GOOD, "haste", "greed"))
    assert trace_of(partition, completed("four", GOOD, "greed")).repetition_counts == {"greed": 2}


steps = st.tuples(
    st.sampled_from(["one", "two", "three", "four"]),
    st.lists(st.sampled_from(["haste", "greed", "envy"]), min_size=1, max_size=3),
    st.integers(0, 12),
)


@given(st.lists(steps, max_size=30))
@settings(max_examples=60, deadline=None)
def test_over_any_history_an_echo_is_three_families_of_a_day_none_of_them_halted_for_it(
    history: list[tuple[str, list[str], int]],
):
    partition, reruns = guardrails(max_reruns=20), Counter[str]()
    shown: dict[str, dict[str, int]] = {}
    hours = 0
    for family, tags, pause in history:
        hours += pause
        loop = f"{family}_r{reruns[family]}" if reruns[family] else family
        reruns[family] = (reruns[family] + 1) % 19
        trace = trace_of(partition, completed(loop, GOOD, *tags), after_ms=pause * HOUR_MS)
        if not trace.repetition_counts:
            continue  # judged before, under this very name
        for tag in {*tags}:
            others = [one for one, at in shown.get(tag, {}).items() if one != family and hours - at < 24]
            assert trace.repetition_counts[tag] == len(others) + 1
            assert (tag in trace.repeated_tags) is (len(others) >= 2)
            if len(others) < 2:
                shown.setdefault(tag, {})[family] = hours


@each(("hours", "echo"), [(23, True), (24, False)])
def test_a_bias_is_forgotten_after_the_window(hours: int, echo: bool):
    partition = guardrails()
    trace_of(partition, completed("one", GOOD, "haste"))
    trace_of(partition, completed("two", GOOD, "haste"))
    assert trace_of(partition, completed("three", GOOD, "haste"), after_ms=hours * HOUR_MS).bias_echo is echo


def test_what_is_kept_of_an_agent_is_bounded():
    biases = Biases()
    for number in range(2_000):
        biases = with_loop(biases, [f"tag-{number}", "haste"], f"loop-{number}", number, SETTINGS)
    assert len(biases.seen) == SETTINGS.bias_tags
    assert len(biases.seen["haste"]) == SETTINGS.bias_loops
    assert count_families(biases, ["haste"], "another", 2_000, SETTINGS) == {"haste": SETTINGS.bias_loops + 1}


def test_a_tag_out_of_the_window_is_dropped():
    biases = with_loop(Biases(), ["haste"], "one", 0, SETTINGS)
    assert set(with_loop(biases, ["greed"], "two", 25 * HOUR_NS, SETTINGS).seen) == {"greed"}
