"""Whatever loops complete, in whatever order: the limits hold, judgements stand, and what is kept is bounded."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from actors.guardrails.loop_family import split_loop_id
from actors.guardrails.state import State, family_of
from schemas.event import Event
from schemas.persistent import decode_state, encode_state
from schemas.vocabulary.guardrails import GuardrailsOverridden, GuardrailsRepeated, GuardrailsRerunOrdered
from schemas.vocabulary.loops import LoopCompleted
from tests.actors.guardrails.builders import DECISIONS, HOUR_MS, Decision, completed, guardrails, override
from tests.actors.scenario import HERE

ROOTS = ("loop", "idea", "plan_r1", "thought")
MOST = 2
pairs = st.sampled_from([(0.5, 0.5), (0.55, 0.5), (0.6, 0.45), (0.9, 0.1), (None, None), (0.5, None)]) | st.tuples(
    st.floats(0, 1), st.floats(0, 1)
)
tags = st.sampled_from([(), (), (), ("haste",), ("haste", "flattery", "haste")])
waits_ms = st.sampled_from([0, 0, 0, 1, HOUR_MS // 2, HOUR_MS])


class Families(RuleBasedStateMachine):
    """Loops of some families complete, are ordered, repeated and overridden, within a family's lifetime."""

    def __init__(self) -> None:
        super().__init__()
        self.partition = guardrails(max_reruns=MOST, bias_threshold=6, family_lifetime_ms=30 * 24 * HOUR_MS)
        self.open = list(ROOTS)
        self.judged: dict[str, str] = {}
        self.ended: dict[str, str] = {}
        self.lifted: dict[str, int] = {}
        self.ordered: dict[str, int] = dict.fromkeys((split_loop_id(root)[0] for root in ROOTS), 0)

    def complete(self, event: LoopCompleted, wait_ms: int) -> None:
        [message] = self.partition.hear(event, after_ms=wait_ms)
        decision = message.event
        if event.loop_id in self.judged and not self.was_reopened(event.loop_id, decision):
            assert decision == GuardrailsRepeated(loop_id=event.loop_id, decided=self.judged[event.loop_id])
            return
        assert isinstance(decision, DECISIONS)
        self.judged[event.loop_id] = message.id
        self.check(decision)
        self.ended[decision.trace.family] = event.loop_id if decision.trace.force_finalize else ""

    def was_reopened(self, loop_id: str, decision: Event) -> bool:
        """A judgement stands, but for a limit's last word on a family, once somebody has lifted a limit."""
        return self.ended.get(split_loop_id(loop_id)[0]) == loop_id and isinstance(decision, DECISIONS)

    def check(self, decision: Decision) -> None:
        trace = decision.trace
        assert 0.0 <= trace.reflection_fatigue <= 1.0
        assert trace.reflection_fatigue == round(trace.reflection_fatigue, 6)
        assert bool(trace.rerun_trigger) is (trace.rerun_reason not in ("no_issues_detected", "no_reflection_result"))
        assert trace.force_finalize is bool({"max_reruns", "bias_echo", "fatigue"} & set(trace.rerun_trigger))
        assert decision.best in self.judged
        if isinstance(decision, GuardrailsRerunOrdered):
            lifted = self.lifted.get(trace.family, 0) > self.partition.now_ns
            assert trace.rerun_count <= MOST or lifted, "no rerun beyond the limit unless somebody lifted it"
            assert trace.rerun_count <= MOST or trace.overridden_by == "ann"
            assert trace.rerun_count > self.ordered[trace.family], "no rerun is ordered twice"
            assert not trace.bias_echo
            assert decision.new_loop_id not in self.judged
            self.ordered[trace.family] = trace.rerun_count
            self.open.append(decision.new_loop_id)

    @rule(
        scored=pairs, tags=tags, conflict=st.booleans(), lifted=st.sampled_from([False, False, True]), wait_ms=waits_ms
    )
    def a_loop_completes(
        self,
        scored: tuple[float | None, float | None],
        tags: tuple[str, ...],
        conflict: bool,
        lifted: bool,
        wait_ms: int,
    ) -> None:
        loop_id = self.open[-1]
        if lifted and (loop_id not in self.judged or self.ended.get(split_loop_id(loop_id)[0]) == loop_id):
            until_ns = self.partition.now_ns + (wait_ms + HOUR_MS) * 1_000_000
            self.lifted[split_loop_id(loop_id)[0]] = until_ns
        override: dict[str, Any] = {"override_max_reruns": True, "override_by": "ann"} if lifted else {}
        self.complete(completed(loop_id, scored, *tags, critics_conflict=conflict, **override), wait_ms)
        if loop_id == self.open[-1]:
            self.another_family_goes_on()

    @rule(place=st.integers(0, 5))
    def a_completion_is_repeated(self, place: int) -> None:
        done = sorted(self.judged)
        if done:
            self.complete(completed(done[place % len(done)], (0.1, 0.9), "haste"), 0)

    @rule()
    def another_family_goes_on(self) -> None:
        self.open.insert(0, self.open.pop())

    @rule(fatigue=st.booleans(), reruns=st.booleans(), wait_ms=waits_ms)
    def a_person_overrides(self, fatigue: bool, reruns: bool, wait_ms: int) -> None:
        loop_id = self.open[-1]
        [event] = self.partition.when(override(loop_id, fatigue=fatigue, reruns=reruns), after_ms=wait_ms)
        known = any(split_loop_id(each)[0] == split_loop_id(loop_id)[0] for each in self.judged)
        assert isinstance(event, GuardrailsOverridden) is known
        if known:
            until_ns = self.partition.now_ns + HOUR_MS * 1_000_000 if reruns else 0
            self.lifted[split_loop_id(loop_id)[0]] = until_ns

    @rule()
    def it_is_restored_from_a_snapshot(self) -> None:
        self.partition.state = decode_state(encode_state(self.partition.state), State)

    @invariant()
    def what_is_kept_is_bounded(self) -> None:
        state = self.partition.state
        assert len(state.families) <= len(ROOTS)
        assert not state.pending
        for root in ROOTS:
            family = family_of(state, HERE.agent, root)
            assert family is None or len(family.loops) <= state.settings.family_loops


Families.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestFamilies = Families.TestCase
