"""The table of the package: which events an input leads to, in every state; and what they report."""

import re
from itertools import pairwise

import actors.breaker
from actors.breaker import ACTOR
from actors.breaker.machine import Machine, Move, ViolationCounts, judge, reading_of, refuse, stance_of, start_recovery
from actors.breaker.settings import BreakerSettings
from tests.actors.breaker.builders import (
    GOOD,
    LONG,
    SHORT,
    VIOLATING,
    WARNINGS,
    Talk,
    appraised,
    layer,
    name_of,
    terminated,
)
from tests.actors.scenario import Address, Partition
from tests.each import each

ANSWERS = {"cleared", "withheld", "tripped", "terminated"}
DEFAULT = BreakerSettings()

TABLE = {
    ("NORMAL", "kept"): {("cleared",), ("terminated",)},
    ("NORMAL", "violating"): {("tripped",), ("terminated",)},
    ("VIOLATED", "kept"): {
        ("recovery_started", "withheld"),
        ("recovery_started", "recovered", "cleared"),
    },
    ("VIOLATED", "violating"): {("recovery_started", "tripped"), ("recovery_started", "terminated")},
    ("RECOVERY", "kept"): {("withheld",), ("recovered", "cleared"), ("attempt_failed", "withheld"), ("terminated",)},
    ("RECOVERY", "violating"): {("tripped",), ("terminated",)},
    ("TERMINATED", "kept"): {("withheld",)},
    ("TERMINATED", "violating"): {("withheld",)},
}
"""(state, kind of input) -> all that it can lead to, in order."""

STATES = ("NORMAL", "VIOLATED", "RECOVERY", "TERMINATED")
WINDOWS = ((), (0.61,) * 2, (0.61,) * 4, (0.0,) * 5)
MACHINES = [
    Machine(
        state=state,
        trust=trust,
        attempts=attempts,
        attempt_turns=turns,
        breakers=ViolationCounts(breakers),
        falsehoods=window,
        balances=window,
    )
    for state in STATES
    for trust in (0.0, 0.15, 0.59, 0.9)
    for attempts in ((0,) if state == "NORMAL" else (0, 1, 2) if state == "VIOLATED" else (1, 2, 3))
    for turns in ((0, 8, 9) if state == "RECOVERY" else (0,))
    for breakers in (0, 1, 2)
    for window in WINDOWS
]  # fmt: skip
READINGS = [
    reading_of([layer(falsehood, truth, characters)], DEFAULT)
    for falsehood in (0.0, 0.4, 0.5, 0.51, 0.61, 0.65, 0.66, 1.0)
    for truth in (0.0, 1.0)
    for characters in (SHORT, LONG)
]


def names(moves: tuple[Move, ...]) -> tuple[str, ...]:
    return tuple(move.name for move in moves if move.name not in WARNINGS)


def test_every_state_and_input_leads_to_what_the_table_says_and_all_of_it_occurs():
    """Every transition of the state machine, TerminationCorrect with them."""
    found: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for machine in MACHINES:
        for reading in READINGS:
            assert reading is not None
            kind = "violating" if reading.violation else "kept"
            found.setdefault((machine.state, kind), set()).add(names(judge(machine, reading, DEFAULT)))
    assert found == TABLE


def test_exactly_one_event_of_an_input_answers_it_and_that_is_the_last():
    for outcomes in TABLE.values():
        for outcome in outcomes:
            assert [name for name in outcome if name in ANSWERS] == [outcome[-1]]


def test_cleared_means_normal_and_every_other_answer_means_that_processing_is_off():
    """SafetyInvariant."""
    for machine in MACHINES:
        for reading in READINGS:
            assert reading is not None
            answer = judge(machine, reading, DEFAULT)[-1]
            assert (answer.name == "cleared") is (answer.after.state == "NORMAL")


def test_the_docstring_of_the_package_shows_the_table():
    cells = re.findall(r"^(NORMAL|VIOLATED|RECOVERY|TERMINATED)  +(.*)$", actors.breaker.__doc__ or "", re.MULTILINE)
    shown = {state: re.split(r" {3,}", text.strip()) for state, text in cells}
    assert list(shown) == list(STATES)
    assert shown["NORMAL"] == ["cleared | terminated", "tripped | terminated"]
    assert shown["TERMINATED"] == ["withheld", "withheld"]
    assert shown["RECOVERY"][1] == "tripped | terminated"
    assert shown["VIOLATED"] == ["recovery_started, then as in RECOVERY"] * 2


def test_a_timer_begins_an_attempt_in_violated_alone():
    for machine in MACHINES:
        expected = ("recovery_started",) if machine.state == "VIOLATED" else ()
        assert names(start_recovery(machine, "timer")) == expected


def test_a_refusal_answers_nothing_and_can_only_terminate():
    for machine in MACHINES:
        outcome = names(refuse(machine, DEFAULT))
        assert outcome == () or (outcome == ("terminated",) and machine.state != "TERMINATED")


@each("before", [(), (VIOLATING,), (VIOLATING, GOOD), (VIOLATING,) * 3])
@each("falsehood", [GOOD, 0.5, VIOLATING])
def test_an_exchange_is_judged_once_however_often_it_is_appraised(before: tuple[float, ...], falsehood: float):
    talk = Talk(*before)
    talk.say(falsehood)
    machine = talk.machine
    again = talk.partition.when(appraised(layer(falsehood)), talk.address(f"exchange-{talk.exchanges}"))
    assert again == []
    assert talk.machine == machine


def test_an_input_whose_exchange_has_ended_meanwhile_is_judged_all_the_same():
    slow, fast = Talk(), Talk()
    fast.say(VIOLATING)
    fast.end()
    slow.end(exchange="exchange-1")
    assert slow.say(VIOLATING) == ["tripped"]
    assert slow.machine == fast.machine


def test_an_appraisal_of_no_exchange_leads_to_nothing():
    partition = Partition(ACTOR)
    assert partition.when(appraised(layer(VIOLATING)), Address(exchange="")) == []
    assert not any(len(each) for each in (partition.state.sessions, partition.state.marked, partition.state.exchanges))


def test_all_events_of_an_input_are_addressed_like_it():
    partition = Partition(ACTOR)
    for exchange in ("first", "second", "third"):
        led_to = partition.hear(appraised(layer(VIOLATING)), Address("ann", "morning", exchange))
        assert led_to
        assert {(each.agent, each.session, each.exchange) for each in led_to} == {("ann", "morning", exchange)}


def test_sessions_of_two_agents_with_one_name_are_two():
    partition = Partition(ACTOR)
    partition.hear(appraised(layer(VIOLATING)), Address("ann", "morning", "first"))
    assert [name_of(e) for e in partition.when(appraised(layer(GOOD)), Address("bob", "morning", "second"))] == [
        "cleared"
    ]


@each(
    ("machine", "stance"),
    [
        (Machine(), "cautious"),
        (Machine(trust=0.6), "normal"),
        (Machine(trust=0.599999), "cautious"),
        (Machine(trust=0.4), "cautious"),
        (Machine(trust=0.399999), "guarded"),
        (Machine(trust=0.9, falsehoods=(0.4,)), "normal"),
        (Machine(trust=0.9, falsehoods=(0.1, 0.5, 0.7)), "cautious"),
        (Machine(trust=0.9, falsehoods=(0.65, 0.65)), "guarded"),
        (Machine(trust=0.2, falsehoods=(0.0, 0.0)), "guarded"),
        (Machine(state="VIOLATED", trust=0.15), "guarded"),
        (Machine(state="TERMINATED", trust=0.9), "terminated"),
    ],
)
def test_stance_is_derived_from_trust_and_where_the_latest_inputs_lead_it(machine: Machine, stance: str):
    assert stance_of(machine, DEFAULT) == stance


def test_the_stance_is_reported_along_a_session():
    """Session memory, stance recommendation."""
    talk = Talk()
    stances = []
    for falsehood in (0.0, VIOLATING, 0.0, 0.0, 0.0, 0.0):
        talk.say(falsehood)
        stances.append(talk.last.standing.stance)
    assert stances == ["normal", "guarded", "cautious", "normal", "normal", "normal"]
    assert terminated().last.standing.stance == "terminated"


def test_every_standing_begins_where_the_one_before_it_ended():
    talk = Talk(0.0, 0.3, VIOLATING, 0.0, *[0.5] * 12, 0.0, 0.0, 0.0, 0.0, VIOLATING, VIOLATING, 0.0)
    talk.reset()
    talk.say(0.0)
    standings = [event.standing for event in talk.said]  # type: ignore[attr-defined]
    assert len({standing.state for standing in standings}) == 4
    for before, after in pairwise(standings):
        assert (before.state, before.trust) == (after.state_before, after.trust_before)
