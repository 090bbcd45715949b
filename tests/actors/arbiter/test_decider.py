"""The join: one ruling for an exchange once both gates let it pass, and nothing left of it."""

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.arbiter import ACTOR
from actors.arbiter.settings import ArbiterSettings
from schemas.event import Event
from schemas.persistent import encode_state
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterImmediate
from tests.actors.arbiter.builders import CLEARED, COHERENT, ENDED, RISKY, asked, felt, similar
from tests.actors.scenario import Address, Partition
from tests.each import each

E1, E2 = Address(exchange="e1"), Address(exchange="e2")
NINE = felt(similar(0.95, answer="At nine."))


@each("gates", list(permutations([COHERENT, CLEARED])))
def test_the_ruling_comes_once_both_gates_have_let_the_input_pass(gates: tuple[Event, Event]):
    arbiter = Partition(ACTOR, asked(), NINE)
    assert arbiter.when(gates[0]) == []
    (ruled,) = arbiter.when(gates[1])
    assert isinstance(ruled, ArbiterImmediate)


def test_a_breaker_that_is_faster_than_intuition_changes_nothing():
    arbiter = Partition(ACTOR, asked(), CLEARED, NINE)
    (ruled,) = arbiter.when(COHERENT)
    assert isinstance(ruled, ArbiterImmediate)


@each("heard", [(COHERENT,), (CLEARED,), (NINE, COHERENT), (CLEARED, CLEARED), (COHERENT, COHERENT)])
def test_one_gate_alone_lets_nothing_pass(heard: tuple[Event, ...]):
    assert Partition(ACTOR, asked(), *heard).emitted == []


def test_a_violation_that_the_gate_let_pass_is_denied():
    arbiter = Partition(ACTOR, asked(), NINE, RISKY)
    (ruled,) = arbiter.when(CLEARED)
    assert isinstance(ruled, ArbiterDenied)
    assert ruled.reason == "constitutional_risk"


@each("known", [(), (asked(),), (NINE,)])
def test_without_its_situation_or_its_precedents_an_exchange_is_denied(known: tuple[Event, ...]):
    arbiter = Partition(ACTOR, *known, COHERENT)
    (ruled,) = arbiter.when(CLEARED)
    assert isinstance(ruled, ArbiterDenied)
    assert ruled.reason == "unknown_outcome"


def test_the_situation_type_is_that_of_the_input():
    arbiter = Partition(ACTOR)
    for address, situation in ((E1, "by phone"), (E2, "general")):
        for event in (asked(situation), NINE, COHERENT, CLEARED):
            arbiter.hear(event, address)
    assert [(message.exchange, type(message.event)) for message in arbiter.emitted] == [
        ("e1", ArbiterEscalated),
        ("e2", ArbiterImmediate),
    ]


def test_after_its_ruling_an_exchange_gets_no_other():
    arbiter = Partition(ACTOR, asked(), felt(), COHERENT, CLEARED)
    for event in (asked(), NINE, COHERENT, CLEARED):
        assert arbiter.when(event) == []
    assert len(arbiter.emitted) == 1
    assert len(arbiter.state.exchanges.pending) == 0


@each("heard", [asked(), NINE, COHERENT, CLEARED])
def test_an_exchange_that_ends_without_a_ruling_leaves_nothing(heard: Event):
    arbiter = Partition(ACTOR, heard)
    assert len(arbiter.state.exchanges.pending) == 1
    arbiter.hear(ENDED)
    arbiter.hear(heard)
    assert len(arbiter.state.exchanges.pending) == 0


def test_the_words_of_the_input_are_not_kept():
    assert b"When do you open" not in encode_state(Partition(ACTOR, asked(), NINE).state)


def test_messages_of_no_exchange_are_no_exchange():
    arbiter = Partition(ACTOR)
    for event in (asked(), NINE, COHERENT, CLEARED, ENDED):
        assert arbiter.when(event, Address(exchange="")) == []
    assert (len(arbiter.state.exchanges.pending), len(arbiter.state.exchanges.settled)) == (0, 0)


def test_settled_exchanges_are_forgotten_after_their_lifetime():
    arbiter = Partition(ACTOR).configure(ArbiterSettings(settled_lifetime_ms=1000))
    arbiter.hear(ENDED, E1)
    arbiter.hear(asked(), E2, after_ms=2000)
    assert len(arbiter.state.exchanges.settled) == 0


def test_what_no_ruling_ever_settles_is_forgotten():
    arbiter = Partition(ACTOR).configure(ArbiterSettings(pending_lifetime_ms=1000))
    arbiter.hear(asked(), E1)
    arbiter.hear(ENDED, E2, after_ms=2000)
    assert len(arbiter.state.exchanges.pending) == 0


steps = st.lists(
    st.tuples(
        st.sampled_from([asked(), asked("by phone"), felt(), NINE, COHERENT, RISKY, CLEARED, ENDED]),
        st.sampled_from(["e1", "e2", "e3", ""]),
        st.integers(0, 1000),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps)
def test_an_exchange_gets_one_ruling_at_most_and_none_is_pending_when_all_have_ended(steps: list):
    arbiter = Partition(ACTOR)
    for event, exchange, wait_ms in steps:
        arbiter.hear(event, Address(exchange=exchange), after_ms=wait_ms)
    for exchange in ("e1", "e2", "e3"):
        arbiter.hear(ENDED, Address(exchange=exchange))
    ruled = [message.exchange for message in arbiter.emitted]
    assert len(ruled) == len(set(ruled))
    assert len(arbiter.state.exchanges.pending) == 0
