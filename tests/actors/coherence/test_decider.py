"""The join: one verdict for an exchange, whatever order its events arrive in, and nothing left of it."""

from itertools import permutations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.coherence import ACTOR
from actors.coherence.settings import CoherenceSettings
from schemas.event import Event
from schemas.persistent import encode_state
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from tests.actors.coherence.builders import ENDED, felt, flagged, measured, similar, thought
from tests.actors.scenario import Address, Partition
from tests.each import each

E1, E2 = Address(exchange="e1"), Address(exchange="e2")


@each("order", list(permutations([felt([similar()]), thought()])))
def test_the_verdict_comes_once_intuition_and_appraisal_have_both_spoken(order: tuple[Event, ...]):
    gate = Partition(ACTOR, flagged())
    first, second = order
    assert gate.when(first) == []
    (decided,) = gate.when(second)
    assert isinstance(decided, CoherencePassed)
    assert decided.similar == 1


@each("alone", [felt(), thought(), flagged("x"), measured(0.5), ENDED])
def test_nothing_is_decided_on_one_of_them_alone(alone: Event):
    assert Partition(ACTOR).when(alone) == []


def test_the_verdict_belongs_to_the_exchange_it_is_about():
    gate = Partition(ACTOR)
    gate.hear(thought(harm=True), E1)
    gate.hear(thought(), E2)
    (second,) = gate.hear(felt(), E2)
    (first,) = gate.hear(felt(), E1)
    assert (second.exchange, type(second.event)) == ("e2", CoherencePassed)
    assert (first.exchange, type(first.event)) == ("e1", CoherenceRejected)


def test_the_index_is_the_one_last_measured_before_the_verdict():
    gate = Partition(ACTOR, thought(), measured(0.6), measured(0.8))
    (decided,) = gate.when(felt())
    assert decided.sci == 0.8  # type: ignore[attr-defined]


def test_what_was_heard_first_counts():
    gate = Partition(ACTOR, thought(harm=True), thought())
    (decided,) = gate.when(felt())
    assert decided.violations == ("harm",)  # type: ignore[attr-defined]


def test_after_its_verdict_an_exchange_gets_no_other():
    gate = Partition(ACTOR, flagged(), thought(), felt())
    assert gate.when(flagged("x")) == []
    assert gate.when(thought(harm=True)) == []
    assert gate.when(felt()) == []
    assert len(gate.emitted) == 1
    assert len(gate.state.exchanges.pending) == 0


@each("heard", [flagged("x"), felt([similar()]), thought()])
def test_an_exchange_that_ends_without_a_verdict_leaves_nothing(heard: Event):
    gate = Partition(ACTOR, heard)
    assert len(gate.state.exchanges.pending) == 1
    gate.hear(ENDED)
    assert len(gate.state.exchanges.pending) == 0
    gate.hear(heard)
    assert len(gate.state.exchanges.pending) == 0


def test_messages_of_no_exchange_are_no_exchange():
    gate = Partition(ACTOR)
    nowhere = Address(exchange="")
    gate.hear(thought(), nowhere)
    assert gate.when(felt(), nowhere) == []
    gate.hear(ENDED, nowhere)
    assert (len(gate.state.exchanges.pending), len(gate.state.exchanges.settled)) == (0, 0)


def test_settled_exchanges_are_forgotten_after_their_lifetime():
    gate = Partition(ACTOR).configure(CoherenceSettings(settled_lifetime_ms=1000))
    gate.hear(thought(), E1)
    gate.hear(felt(), E1)
    gate.hear(measured(1.0), Address("", "", ""), after_ms=2000)
    assert len(gate.state.exchanges.settled) == 0


def test_what_no_verdict_ever_settles_is_forgotten():
    gate = Partition(ACTOR).configure(CoherenceSettings(pending_lifetime_ms=1000))
    gate.hear(thought(), E1)
    gate.hear(measured(1.0), Address("", "", ""), after_ms=2000)
    assert len(gate.state.exchanges.pending) == 0


def test_no_words_of_anybody_are_kept():
    worded = msgspec.structs.replace(similar(), precedent="p-9", answer="At nine.")
    gate = Partition(ACTOR, felt([worded]))
    assert b"nine" not in encode_state(gate.state)


steps = st.lists(
    st.tuples(
        st.sampled_from([flagged(), flagged("x"), felt(), felt([similar()]), thought(), thought(harm=True), ENDED]),
        st.sampled_from(["e1", "e2", "e3", ""]),
        st.integers(0, 1000),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps)
def test_an_exchange_gets_one_verdict_at_most_and_none_is_pending_when_all_have_ended(steps: list):
    gate = Partition(ACTOR)
    for event, exchange, wait_ms in steps:
        gate.hear(event, Address(exchange=exchange), after_ms=wait_ms)
    for exchange in ("e1", "e2", "e3"):
        gate.hear(ENDED, Address(exchange=exchange))
    decided = [message.exchange for message in gate.emitted]
    assert len(decided) == len(set(decided))
    assert len(gate.state.exchanges.pending) == 0
