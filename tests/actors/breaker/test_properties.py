"""The real decider under any interleaving: the invariants of circuit-breaker.md, and the integer model at its side."""

from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from actors.breaker import ACTOR
from actors.breaker.decider import BreakerState
from actors.breaker.machine import (
    Machine,
    Move,
    count_refusal,
    end_by_calm,
    judge,
    new_machine,
    reading_of,
    refuse,
    stance_of,
    start_recovery,
)
from actors.breaker.settings import BreakerSettings
from schemas.persistent import decode_state, encode_state
from schemas.vocabulary.appraisal import LayerTrust
from tests.actors.breaker import model
from tests.actors.breaker.builders import LONG, SHORT, WARNINGS, Talk, appraised, ended
from tests.actors.breaker.test_refinement import session_of

ANSWERS = {"cleared", "withheld", "tripped", "terminated"}
DEFAULT = BreakerSettings()

layers = st.lists(
    st.builds(
        LayerTrust,
        layer=st.sampled_from(["text", "document[0]"]),
        characters=st.sampled_from([0, SHORT, LONG - 1, LONG, 100_000]),
        truth=st.integers(0, 100).map(lambda hundredths: hundredths / 100),
        indeterminacy=st.just(0.0),
        falsehood=st.sampled_from(model.FALSEHOODS).map(lambda hundredths: hundredths / 100),
    ),
    min_size=1,
    max_size=3,
).map(tuple)


def told(moves: tuple[Move, ...]) -> list[str]:
    """Return what a talk says of moves."""
    return [move.name for move in moves if move.name not in WARNINGS]


class BreakerMachine(RuleBasedStateMachine):
    """One session, beside the bare machine fed with the same inputs."""

    @initialize()
    def begins(self) -> None:
        self.talk = Talk()
        self.machine = new_machine(DEFAULT)
        self.refused: set[int] = set()

    @rule(layers=layers)
    def an_input_comes(self, layers: tuple[LayerTrust, ...]) -> None:
        reading = reading_of(layers, DEFAULT)
        assert reading is not None
        before = self.machine
        moves = judge(before, reading, DEFAULT)
        self.machine = moves[-1].after
        names = self.talk.hear(appraised(*layers))
        assert names == told(moves)
        assert [name for name in names if name in ANSWERS] == [names[-1]], "one answer, the last"
        assert (names[-1] == "cleared") is (self.machine.state == "NORMAL"), "SafetyInvariant"
        self.check_violation(before, reading.violation is not None)
        if (
            names[-1] == "terminated"
            and reading.violation is None
            and reading.falsehood <= 0.6
            and reading.balance >= 0
        ):
            assert self.talk.last.reason == "attempt_budget", "a calm input ends nothing but a third attempt"
        self.check_model(before, layers)

    def check_violation(self, before: Machine, violated: bool) -> None:
        after = self.machine
        if before.state == "TERMINATED":
            return
        assert after.breakers.total - before.breakers.total == violated
        if violated:
            assert after.state in ("VIOLATED", "TERMINATED"), "NonCompensableViolations"
            assert after.trust < before.trust or before.trust == 0.0, "TrustDegradationOnViolation"
        elif before.state == "NORMAL":
            assert after.state in ("NORMAL", "TERMINATED"), "NoFalsePositives"

    def check_model(self, before: Machine, layers: tuple[LayerTrust, ...]) -> None:
        """The model, put where the machine stood, takes the same step, but for what it does not hold.

        It rounds trust down, so it may be one point lower after a step, and so may miss a recovery by that point.
        """
        falsehood = max(layers, key=lambda each: each.falsehood).falsehood
        saturated = any(each.characters > 5000 and each.falsehood > 0.5 for each in layers)
        action = model.Action("input", round(100 * falsehood), saturated)
        expected, verdict = model.step(session_of(before, model.Rules()), action, model.Rules())
        found = session_of(self.machine, model.Rules())
        if getattr(self.talk.last, "reason", "") in ("balance_trend", "refusal_share"):
            assert found.state == "TERMINATED"
            return
        assert 0 <= found.trust - expected.trust <= 1
        if (expected.trust, found.trust) != (59, 60):
            assert found._replace(trust=0) == expected._replace(trust=0)
            assert verdict == self.talk.said[-1].__struct_config__.tag.rpartition(".")[2]  # type: ignore[union-attr]

    @rule()
    def the_timer_goes_off(self) -> None:
        moves = start_recovery(self.machine, "timer")
        assert self.talk.wake(after_ms=1) == told(moves)
        self.machine = moves[-1].after if moves else self.machine

    @precondition(lambda self: self.machine.state == "RECOVERY")
    @rule(early_ns=st.sampled_from([0, 1]))
    def an_attempt_was_calm_for_a_day(self, early_ns: int) -> None:
        calm_ns = self.talk.machine.calm_ns
        moves = end_by_calm(msgspec.structs.replace(self.machine, calm_ns=calm_ns), calm_ns - early_ns, DEFAULT)
        assert self.talk.calm(after_ms=1, early_ns=early_ns) == told(moves)
        assert bool(moves) is (early_ns == 0)
        self.machine = moves[-1].after if moves else self.machine

    @precondition(lambda self: self.talk.exchanges - 1 not in self.refused and self.talk.exchanges > 1)
    @rule()
    def the_exchange_before_last_was_refused(self) -> None:
        exchange = self.talk.exchanges - 1
        self.refused.add(exchange)
        moves = refuse(self.machine, DEFAULT)
        names = self.talk.end(ended("COHERENCE", "REJECTED"), exchange=f"exchange-{exchange}")
        assert names == told(moves)
        self.machine = moves[-1].after if moves else count_refusal(self.machine)

    @rule()
    def an_exchange_was_answered(self) -> None:
        assert self.talk.end(ended("DELIBERATIVE", "EXECUTED")) == []

    @precondition(lambda self: self.machine.state == "TERMINATED")
    @rule()
    def an_operator_resets_it(self) -> None:
        assert self.talk.reset() == ["reset"]
        # Their refusals count no more.
        self.refused |= set(range(self.talk.exchanges + 1))
        self.machine = new_machine(DEFAULT)

    @rule()
    def it_is_restored_from_a_snapshot(self) -> None:
        partition = self.talk.partition
        partition.state = decode_state(encode_state(partition.state), BreakerState)

    @rule(layers=layers)
    def an_appraisal_is_repeated(self, layers: tuple[LayerTrust, ...]) -> None:
        if self.talk.exchanges:
            assert self.talk.partition.when(appraised(*layers), self.talk.address()) == []

    @invariant()
    def the_folded_machine_is_the_one_that_was_stepped(self) -> None:
        if hasattr(self, "talk"):
            # When an attempt may end by time is known from its event alone.
            assert msgspec.structs.replace(self.talk.machine, calm_ns=0, reset_seq=0) == self.machine
            guarded = self.machine.state == "NORMAL" and stance_of(self.machine, DEFAULT) == "guarded"
            assert self.machine.warned is guarded, "the warning stands as long as the danger"

    @invariant()
    def recovery_attempts_and_turns_are_bounded(self) -> None:
        machine = getattr(self, "machine", new_machine(DEFAULT))
        assert 0 <= machine.attempts <= 3
        assert 0 <= machine.attempt_turns < 10
        assert 0.0 <= machine.trust <= 1.0
        assert machine.trust == round(machine.trust, 6)

    def teardown(self) -> None:
        """Every standing begins where the one before it ended, whatever happened."""
        standings: list[Any] = [event.standing for event in getattr(self, "talk", Talk()).said]  # type: ignore[attr-defined]
        for before, after in pairwise(standings):
            assert (before.state, before.trust) == (after.state_before, after.trust_before)
            if before.state == "TERMINATED" and after.state != "TERMINATED":
                assert msgspec.structs.asdict(after)["violations"] == 0, "TerminalStateStable, but for an operator"


BreakerMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestBreakerMachine = BreakerMachine.TestCase


def test_the_actor_is_the_decider_that_is_tested():
    assert ACTOR.state_type is BreakerState
