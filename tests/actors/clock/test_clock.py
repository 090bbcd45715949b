"""Which deadlines the clock keeps, in which order they come due, and that none is left behind."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from actors.clock import ACTOR
from actors.clock.decider import SETTERS, ClockState
from actors.clock.schedule import Schedule
from schemas.event import Event, Milliseconds
from schemas.persistent import Map, decode_state, encode_state
from schemas.vocabulary.clock import ClockConfigured, ClockFailed, ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ENTRIES, ResponseEmitted
from tests.actors.scenario import MS, START_NS, Address, Partition
from tests.each import each

ENDED: Event = next(entry.sample for entry in ENTRIES if entry.event is ResponseEmitted)


def asked(deadline_after_ms: int = 60_000) -> InputReceived:
    return InputReceived(text="When?", deadline_after_ms=deadline_after_ms)


def to(exchange: str) -> Address:
    return Address(exchange=exchange)


def test_an_input_sets_a_deadline_counted_from_its_storage():
    clock = Partition(ACTOR)
    clock.hear(asked(250), after_ms=10)
    assert ACTOR.timer is not None
    timer = ACTOR.timer(clock.state)
    assert timer is not None
    assert timer.due_ns == START_NS + 260 * MS


def test_nothing_is_due_when_nothing_is_pending():
    assert Partition(ACTOR).fire() is None


def test_a_deadline_that_comes_due_names_what_set_it():
    clock = Partition(ACTOR, asked(250))
    fired = clock.fire()
    assert fired is not None
    assert fired.event == ClockFired(set_by="forged_id.input.received", due_ns=START_NS + 250 * MS)


def test_a_fired_deadline_is_caused_by_the_message_that_set_it():
    clock = Partition(ACTOR)
    clock.hear(asked(100), to("other"))
    other = ACTOR.timer(clock.state).cause  # type: ignore[misc, union-attr]
    clock.hear(asked(50), to("mine"))
    mine = ACTOR.timer(clock.state).cause  # type: ignore[misc, union-attr]
    assert mine != other
    clock.fire()
    assert ACTOR.timer(clock.state).cause == other  # type: ignore[misc, union-attr]


def test_a_fired_deadline_is_addressed_to_its_own_exchange():
    clock = Partition(ACTOR)
    clock.hear(asked(), Address("ann", "morning", "first"))
    clock.hear(asked(), Address("bob", "evening", "second"), after_ms=5)
    fired = clock.fire()
    assert fired is not None
    assert (fired.agent, fired.session, fired.exchange) == ("ann", "morning", "first")


def test_deadlines_fire_in_the_order_they_are_due_not_set():
    clock = Partition(ACTOR)
    for exchange, after_ms in (("slow", 300), ("quick", 100), ("middle", 200)):
        clock.hear(asked(after_ms), to(exchange))
    assert [clock.fire().exchange for _ in range(3)] == ["quick", "middle", "slow"]  # type: ignore[union-attr]


def test_deadlines_due_at_once_fire_in_the_order_of_their_causes_ids():
    clock = Partition(ACTOR)
    for number in range(20):
        clock.hear(asked(), to(f"exchange-{number}"))
    causes = []
    while (timer := ACTOR.timer(clock.state)) is not None:  # type: ignore[misc]
        causes.append(timer.cause)
        clock.fire()
    assert causes == sorted(causes)
    assert len(causes) == 20


def test_the_end_of_an_exchange_settles_its_deadline():
    clock = Partition(ACTOR, asked())
    clock.hear(ENDED)
    assert clock.state == ClockState()


def test_the_end_of_one_exchange_leaves_the_others_pending():
    clock = Partition(ACTOR)
    clock.hear(asked(100), to("settled"))
    clock.hear(asked(200), to("open"))
    clock.hear(ENDED, to("settled"))
    fired = clock.fire()
    assert fired is not None
    assert fired.exchange == "open"


def test_the_end_of_an_unknown_exchange_changes_nothing():
    clock = Partition(ACTOR, asked())
    before = clock.state
    clock.hear(ENDED, to("never heard of"))
    assert clock.state is before


def test_a_fired_deadline_does_not_fire_again():
    clock = Partition(ACTOR, asked())
    clock.fire()
    assert clock.fire() is None
    assert clock.state == ClockState()


def test_a_repeated_input_does_not_postpone_the_deadline():
    clock = Partition(ACTOR, asked(100))
    before = clock.state
    clock.hear(asked(100), after_ms=50)
    assert clock.state is before


def test_a_message_without_an_exchange_sets_no_deadline():
    clock = Partition(ACTOR)
    clock.hear(asked(), to(""))
    assert clock.state == ClockState()


def test_its_failure_to_fold_one_message_leaves_the_pending_deadlines():
    clock = Partition(ACTOR, asked())
    before = clock.state
    clock.fold(clock.own(ClockFailed(reason="undecodable", error="", failed_seq=1, failed_topic="x")))
    assert clock.state is before


def test_no_message_makes_the_clock_speak():
    clock = Partition(ACTOR)
    assert not any(clock.when(event) for event in (asked(1), asked(1), ENDED))


def test_it_reads_every_event_that_carries_a_deadline():
    assert InputReceived in SETTERS
    assert set(ACTOR.consumes) == {*SETTERS, ResponseEmitted}


class Reminded(Event, frozen=True, kw_only=True, tag="forged_id.reminder.set"):
    """An event of another actor that sets a deadline within an exchange."""

    deadline_after_ms: Milliseconds | None


def test_two_subjects_set_two_deadlines_of_one_exchange():
    clock = Partition(ACTOR, asked(100), Reminded(deadline_after_ms=50))
    first, second = clock.fire(), clock.fire()
    assert [each.event.set_by for each in (first, second) if each] == [  # type: ignore[attr-defined]
        "forged_id.reminder.set",
        "forged_id.input.received",
    ]
    assert clock.state == ClockState()


def test_the_end_of_an_exchange_settles_the_deadlines_of_every_subject():
    clock = Partition(ACTOR, asked(100), Reminded(deadline_after_ms=50), ENDED)
    assert clock.state == ClockState()


def test_an_event_that_leaves_its_deadline_out_sets_none():
    assert Partition(ACTOR, Reminded(deadline_after_ms=None)).state == ClockState()


def test_its_settings_are_folded_and_leave_the_deadlines_alone():
    clock = Partition(ACTOR, asked())
    before = clock.state
    clock.fold(clock.own(ClockConfigured(settings={"a field of another release": 1}, settings_hash="", behaviour=1)))
    assert clock.state == before


class ClockAgainstModel(RuleBasedStateMachine):
    """Any interleaving of inputs, ends and firings, beside a dict that is searched from end to end."""

    exchanges = st.sampled_from([f"exchange-{number}" for number in range(12)])

    def __init__(self) -> None:
        super().__init__()
        self.clock = Partition(ACTOR)
        self.model: dict[str, tuple[int, str]] = {}

    @rule(exchange=exchanges, deadline=st.integers(1, 30), wait=st.integers(0, 10))
    def an_input_comes(self, exchange: str, deadline: int, wait: int) -> None:
        self.clock.hear(asked(deadline), to(exchange), after_ms=wait)
        if exchange not in self.model:
            cause = self.clock.state.pending[exchange][0].cause
            self.model[exchange] = (self.clock.now_ns + deadline * MS, cause)

    @rule(exchange=exchanges)
    def an_exchange_ends(self, exchange: str) -> None:
        self.clock.hear(ENDED, to(exchange))
        self.model.pop(exchange, None)

    @rule()
    def the_earliest_fires(self) -> None:
        fired = self.clock.fire()
        if not self.model:
            assert fired is None
            return
        due, exchange = min((due, cause, exchange) for exchange, (due, cause) in self.model.items())[::2]
        assert fired is not None
        assert (fired.exchange, fired.event.due_ns) == (exchange, due)  # type: ignore[attr-defined]
        del self.model[exchange]

    @rule()
    def it_is_restored_from_a_snapshot(self) -> None:
        self.clock.state = decode_state(encode_state(self.clock.state), ClockState)

    @invariant()
    def the_same_deadlines_are_pending(self) -> None:
        state: Any = self.clock.state
        assert {exchange: (each[0].due_ns, each[0].cause) for exchange, each in state.pending.items()} == self.model
        assert len(state.schedule) == len(self.model)

    def teardown(self) -> None:
        for exchange in list(self.model):
            self.an_exchange_ends(exchange)
        assert self.clock.state.pending == Map()
        assert self.clock.state.schedule == Schedule()


ClockAgainstModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestClockAgainstModel = ClockAgainstModel.TestCase


@each("order", ["as set", "reversed"])
def test_ten_thousand_settled_exchanges_leave_nothing(order: str):
    clock = Partition(ACTOR)
    exchanges = [f"exchange-{number}" for number in range(10_000)]
    for number, exchange in enumerate(exchanges):
        clock.hear(asked(1 + number * 7919 % 60_000), to(exchange))
    for exchange in exchanges if order == "as set" else reversed(exchanges):
        clock.hear(ENDED, to(exchange))
    assert clock.state == ClockState()
