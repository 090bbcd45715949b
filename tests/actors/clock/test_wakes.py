"""Timers that actors set for their sessions: one for each owner, agent and session, fired in no exchange."""

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from actors.clock import ACTOR
from actors.clock.decider import DEADLINE, SETTERS, WAKE, ClockState
from schemas.catalogue import CATALOGUE
from schemas.event import Event
from schemas.persistent import Map, decode_state, encode_state
from schemas.vocabulary.breaker import BreakerAttemptFailed, BreakerRecoveryStarted, BreakerReset, BreakerTripped
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.scenario import MS, START_NS, Address, Partition

TRIPPED: Any = CATALOGUE["forged_id.breaker.tripped"].sample
ENDED = CATALOGUE["forged_id.response.emitted"].sample
RECOVERED = CATALOGUE["forged_id.breaker.recovered"].sample
ASKED = InputReceived(text="When?", deadline_after_ms=60_000)
SET_BY = "forged_id.breaker.tripped"


def tripped(wake_after_ms: int = 900_000) -> Event:
    event: Event = msgspec.structs.replace(TRIPPED, wake_after_ms=wake_after_ms)
    return event


def due_ns(clock: Partition) -> int | None:
    assert ACTOR.timer is not None
    timer = ACTOR.timer(clock.state)
    return timer.due_ns if timer is not None else None


def test_an_event_sets_its_owner_s_timer_counted_from_its_storage():
    clock = Partition(ACTOR)
    clock.hear(tripped(500), after_ms=10)
    assert due_ns(clock) == START_NS + 510 * MS


def test_a_timer_goes_off_with_agent_and_session_but_in_no_exchange():
    clock = Partition(ACTOR)
    clock.hear(tripped(500), Address("ann", "morning", "first"))
    fired = clock.fire()
    assert fired is not None
    assert fired.event == ClockFired(set_by=SET_BY, due_ns=START_NS + 500 * MS)
    assert (fired.agent, fired.session, fired.exchange) == ("ann", "morning", "")


def test_a_timer_that_went_off_is_over():
    clock = Partition(ACTOR, tripped())
    clock.fire()
    assert clock.fire() is None
    assert clock.state == ClockState()


def test_the_latest_replaces_the_earlier_one_be_it_sooner_or_later():
    for first, second in ((100, 900), (900, 100)):
        clock = Partition(ACTOR, tripped(first), tripped(second))
        assert due_ns(clock) == START_NS + second * MS
        assert len(clock.state.wake_schedule) == 1


def test_another_event_of_the_same_owner_replaces_it_too():
    failed: Any = CATALOGUE["forged_id.breaker.attempt_failed"].sample
    clock = Partition(ACTOR, tripped(100), msgspec.structs.replace(failed, wake_after_ms=700))
    fired = clock.fire()
    assert fired is not None
    assert fired.event == ClockFired(set_by="forged_id.breaker.attempt_failed", due_ns=START_NS + 700 * MS)
    assert clock.fire() is None


def test_zero_cancels():
    for event in (
        RECOVERED,
        CATALOGUE["forged_id.breaker.reset"].sample,
        CATALOGUE["forged_id.breaker.terminated"].sample,
    ):
        assert Partition(ACTOR, tripped(), event).state == ClockState()


def test_zero_where_no_timer_is_set_changes_nothing():
    clock = Partition(ACTOR)
    before = clock.state
    clock.hear(RECOVERED)
    assert clock.state is before


def test_sessions_and_agents_have_timers_of_their_own():
    clock = Partition(ACTOR)
    clock.hear(tripped(300), Address("ann", "morning"))
    clock.hear(tripped(200), Address("ann", "evening"))
    clock.hear(tripped(100), Address("bob", "morning"))
    clock.hear(RECOVERED, Address("ann", "evening"))
    order = [clock.fire(), clock.fire()]
    assert [(each.agent, each.session) for each in order if each] == [("bob", "morning"), ("ann", "morning")]


def test_the_end_of_an_exchange_leaves_the_timer_that_was_set_in_it():
    clock = Partition(ACTOR, tripped())
    clock.hear(ENDED)
    assert due_ns(clock) == START_NS + 900_000 * MS


def test_a_deadline_that_fires_leaves_the_session_s_timer_and_the_other_way_round():
    clock = Partition(ACTOR, ASKED, tripped(30_000))
    first, second = clock.fire(), clock.fire()
    assert [each.exchange for each in (first, second) if each] == ["", "exchange"]
    clock = Partition(ACTOR, ASKED, tripped(90_000))
    first, second = clock.fire(), clock.fire()
    assert [each.exchange for each in (first, second) if each] == ["exchange", ""]
    assert clock.state == ClockState()


def test_what_is_due_at_once_goes_by_the_id_of_its_cause():
    clock = Partition(ACTOR)
    for number in range(10):
        clock.hear(tripped(1000), Address(session=f"session-{number}", exchange=""))
        clock.hear(InputReceived(text="", deadline_after_ms=1000), Address(exchange=f"exchange-{number}"))
    causes = []
    while (timer := ACTOR.timer(clock.state)) is not None:  # type: ignore[misc]
        causes.append(timer.cause)
        clock.fire()
    assert len(causes) == 20
    assert causes == sorted(causes)


def test_a_firing_of_a_timer_that_was_replaced_leaves_the_new_one():
    clock = Partition(ACTOR, tripped(500))
    clock.fold(clock.own(ClockFired(set_by=SET_BY, due_ns=1)))
    assert due_ns(clock) == START_NS + 500 * MS


def test_a_firing_by_a_subject_of_another_release_changes_nothing():
    clock = Partition(ACTOR, tripped())
    before = clock.state
    clock.fold(clock.own(ClockFired(set_by="forged_id.of.tomorrow", due_ns=1)))
    assert clock.state is before


def test_it_reads_every_event_that_sets_timers():
    assert {BreakerTripped, BreakerAttemptFailed, BreakerRecoveryStarted, BreakerReset} <= {*SETTERS}
    assert {*ACTOR.consumes} == {*SETTERS, ResponseEmitted}
    assert len(SETTERS) == len({*SETTERS})


def test_no_event_carries_both_fields():
    """What it set would be fired under one id twice, which is made from the cause."""
    assert not [event for event in SETTERS if {DEADLINE, WAKE} <= {*event.__struct_fields__}]


class WakesAgainstModel(RuleBasedStateMachine):
    """Any interleaving of setting, cancelling and going off, beside a dict that is searched from end to end."""

    sessions = st.builds(Address, agent=st.sampled_from("ab"), session=st.sampled_from("xyz"))

    def __init__(self) -> None:
        super().__init__()
        self.clock = Partition(ACTOR)
        self.model: dict[tuple[str, str], int] = {}

    @rule(address=sessions, after_ms=st.integers(0, 30), wait=st.integers(0, 10))
    def it_is_set(self, address: Address, after_ms: int, wait: int) -> None:
        self.clock.hear(tripped(after_ms), address, after_ms=wait)
        self.model.pop((address.agent, address.session), None)
        if after_ms:
            self.model[address.agent, address.session] = self.clock.now_ns + after_ms * MS

    @rule(address=sessions)
    def it_is_cancelled(self, address: Address) -> None:
        self.clock.hear(RECOVERED, address)
        self.model.pop((address.agent, address.session), None)

    @rule()
    def the_earliest_goes_off(self) -> None:
        fired = self.clock.fire()
        if fired is None:
            assert not self.model
            return
        assert fired.event == ClockFired(set_by=SET_BY, due_ns=min(self.model.values()))
        assert self.model.pop((fired.agent, fired.session)) == fired.event.due_ns

    @rule()
    def it_is_restored_from_a_snapshot(self) -> None:
        self.clock.state = decode_state(encode_state(self.clock.state), ClockState)

    @invariant()
    def the_same_timers_are_set(self) -> None:
        state: Any = self.clock.state
        held = {(wake.agent, wake.session): wake.due_ns for wake in state.wakes.values()}
        assert held == self.model
        assert len(state.wake_schedule) == len(self.model)
        assert state.pending == Map()


WakesAgainstModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestWakesAgainstModel = WakesAgainstModel.TestCase


def test_ten_thousand_sessions_that_recovered_leave_nothing():
    clock = Partition(ACTOR)
    sessions = [Address(session=f"session-{number}") for number in range(10_000)]
    for number, session in enumerate(sessions):
        clock.hear(tripped(1 + number * 7919 % 900_000), session)
    for session in sessions:
        clock.hear(RECOVERED, session)
    assert clock.state == ClockState()
