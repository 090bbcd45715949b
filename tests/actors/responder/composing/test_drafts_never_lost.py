"""Whatever models, guardrails, failures and deadlines do, in any order: one end, and a model's answer where one was."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.responder.decider import ResponderState
from schemas.actor import Message
from schemas.event import Event
from schemas.persistent import Map, decode_state, encode_state
from schemas.vocabulary.appraisal import AppraisalFailed
from schemas.vocabulary.guardrails import (
    GuardrailsFailed,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsRerunOrdered,
    LoopTrace,
)
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from tests.actors.responder.builders import OVERDUE, UNDELIBERATED, asked, chosen, failure, with_model
from tests.actors.scenario import HERE

FAILURES: dict[str, Event] = {
    "guardrails": failure(GuardrailsFailed, "forged_id.appraisal.answer_appraised"),
    "appraisal, of the answer": failure(AppraisalFailed, "forged_id.llm.completed"),
    "appraisal, of the request": failure(AppraisalFailed, "forged_id.response.requested"),
    "deadline": OVERDUE,
    "deliberation": UNDELIBERATED,
}
REASONS = (
    *("RESPOND", "RESPOND:max_reruns_reached", "RESPOND:guardrails_failed", "RESPOND:guardrails_silent"),
    *("RESPOND:appraisal_failed", "RESPOND:rerun_failed:answer_empty", "RESPOND:rerun_failed:no_time"),
    *("RESPOND:rerun_failed:endpoint_unreachable", "RESPOND:rerun_failed:deadline"),
)


class NeverLost(RuleBasedStateMachine):
    """One exchange that a model is asked to answer, from the question to its end and beyond.

    What fails before there is an answer is tested elsewhere: here it would end most runs at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.responder = with_model(guardrails=True)
        self.responder.hear(asked())
        self.requests: list[Message] = []
        self.words: dict[str, str] = {}
        self.ends: list[ResponseEmitted] = []
        self.hear(chosen("RESPOND"))

    def hear(self, event: Event, wait_ms: int = 0) -> None:
        for message in self.responder.hear(event, after_ms=wait_ms):
            assert not self.ends, "after the end nothing is said"
            if isinstance(message.event, ResponseEmitted):
                self.ends.append(message.event)
            else:
                assert isinstance(message.event, ResponseRequested)
                assert not self.requests or self.loop in self.words, "nobody is asked while another is"
                self.requests.append(message)

    @property
    def loop(self) -> str:
        event = self.requests[-1].event
        assert isinstance(event, ResponseRequested)
        return event.loop_id

    def model(self, kind: type[Any], request: str, **fields: Any) -> None:
        whole: dict[str, Any] = {
            "purpose": "respond",
            **({"model": "m", "backend": "b", "finish_reason": "stop", "attempts": 1} if kind is LlmCompleted else {}),
            **({"prompt_tokens": 1, "completion_tokens": 1} if kind is LlmCompleted else {}),
            **fields,
        }
        self.hear(kind(request=request, **whole))

    @rule()
    def a_poor_answer_is_to_be_bettered(self) -> None:
        self.a_model_answers(last=True, blank=False)
        if len(self.requests) < 5:
            self.guardrails_have_it_run_again(best=0, wait_ms=0)

    @rule(last=st.booleans(), blank=st.sampled_from([False] * 7 + [True]))
    def a_model_answers(self, last: bool, blank: bool) -> None:
        request = self.requests[-1 if last else 0]
        assert isinstance(request.event, ResponseRequested)
        loop_id = request.event.loop_id
        text = " " if blank else f"the answer of {loop_id}"
        if not blank and not self.ends and loop_id == self.loop:
            self.words.setdefault(loop_id, text)
        self.model(LlmCompleted, request.id, text=text)

    @precondition(lambda self: self.words)
    @rule()
    def a_model_fails(self) -> None:
        topic = "forged_id.response.requested"
        self.model(
            LlmFailed, self.requests[-1].id, reason="endpoint_unreachable", error="", failed_seq=1, failed_topic=topic
        )

    @rule(forced=st.booleans(), best=st.integers(0, 3), other=st.sampled_from([False, False, True]))
    def guardrails_end_it(self, forced: bool, best: int, other: bool) -> None:
        named = sorted(self.words)[best % len(self.words)] if self.words else "exchange"
        trace = LoopTrace(loop_id="other" if other else self.loop, family="exchange", rerun_reason="max_reruns_reached")
        self.hear((GuardrailsForceFinalized if forced else GuardrailsFinalized)(trace=trace, best=named))

    @precondition(lambda self: len(self.requests) < 5)
    @rule(best=st.integers(0, 3), wait_ms=st.sampled_from([0, 0, 0, 30_000]))
    def guardrails_have_it_run_again(self, best: int, wait_ms: int) -> None:
        named = sorted(self.words)[best % len(self.words)] if self.words else "exchange"
        trace = LoopTrace(loop_id=self.loop, family="exchange", rerun_reason="x", rerun_trigger=("alignment",))
        again = f"exchange_r{len(self.requests)}"
        self.hear(GuardrailsRerunOrdered(trace=trace, new_loop_id=again, best=named), wait_ms)

    @precondition(lambda self: self.words)
    @rule(which=st.sampled_from(sorted(FAILURES)))
    def something_fails(self, which: str) -> None:
        self.hear(FAILURES[which])

    @rule()
    def it_is_restored_from_a_snapshot(self) -> None:
        self.responder.state = decode_state(encode_state(self.responder.state), ResponderState)

    @invariant()
    def there_is_one_end_and_no_answer_is_lost(self) -> None:
        assert len(self.ends) <= 1
        assert (HERE.exchange in self.responder.state.pending) is not bool(self.ends)
        for end in self.ends:
            if self.words:
                assert (end.backend, end.action) == ("llm", "EXECUTED")
                assert end.response == self.words[end.loop_id]
                assert end.reason in REASONS
            else:
                assert end.backend == "composer"

    def teardown(self) -> None:
        self.hear(OVERDUE)
        assert len(self.ends) == 1
        self.there_is_one_end_and_no_answer_is_lost()
        assert self.responder.state.pending == Map()


NeverLost.TestCase.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
TestNeverLost = NeverLost.TestCase
