"""A model's judgement on the whole path: every actor there is, the model by the test's own hand."""

from typing import Any

from actors.registry import ACTORS
from schemas.actor import Message
from schemas.vocabulary.appraisal import JudgementRequested
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.appraisal.judging import CALM, fails, says, settings, word
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import Address
from tests.each import each
from tests.events.recording import Recording
from tests.events.whatif.asking import REQUESTS, whatif

HERE = Address(exchange="e0")


class Judged:
    """An input on which a model is asked."""

    def __init__(self, gate: str) -> None:
        self.pipeline = Pipeline(ACTORS)
        self.pipeline.partitions["appraisal"].configure(settings(gate=gate))
        self.pipeline.ask(CALM, HERE)

    @property
    def request(self) -> Message:
        [found] = [each for each in self.pipeline.stream if isinstance(each.event, JudgementRequested)]
        return found

    @property
    def ends(self) -> list[tuple[str, str, str]]:
        ends = [each.event for each in self.pipeline.ends()]
        return [(end.stage, end.action, end.reason) for end in ends if isinstance(end, ResponseEmitted)]


@each("gate", ["llm", "both"])
def test_an_input_waits_for_the_word_and_is_withheld_by_it(gate: str) -> None:
    judged = Judged(gate)
    assert judged.ends == []
    judged.pipeline.send(says(word(9), judged.request.id), HERE)
    assert judged.ends == [("BREAKER", "WITHHELD", "role_confusion")]


@each("answer", [word(0), "I would rather not judge."])
def test_an_input_that_the_model_does_not_object_to_is_answered(answer: str) -> None:
    judged = Judged("llm")
    judged.pipeline.send(says(answer, judged.request.id), HERE)
    [(stage, action, _)] = judged.ends
    assert (stage, action) == ("DELIBERATIVE", "EXECUTED")


def test_a_model_that_fails_holds_nobody_up() -> None:
    judged = Judged("both")
    judged.pipeline.send(fails(judged.request.id), HERE)
    assert [action for _, action, _ in judged.ends] == ["EXECUTED"]


def test_a_model_that_keeps_silent_is_waited_for_no_longer_than_was_said() -> None:
    judged = Judged("llm")
    request = judged.request.event
    assert isinstance(request, JudgementRequested)
    judged.pipeline.advance(request.deadline_after_ms - 1)
    assert judged.ends == []
    judged.pipeline.advance(1)
    assert [action for _, action, _ in judged.ends] == ["EXECUTED"]


def test_under_the_local_gate_the_word_counts_against_the_session_from_the_next_input_on() -> None:
    judged = Judged("local")
    assert [action for _, action, _ in judged.ends] == ["EXECUTED"]
    judged.pipeline.send(says(word(9), judged.request.id), HERE)
    judged.pipeline.ask(CALM, Address(exchange="e1"))
    assert judged.ends[1][:2] == ("BREAKER", "WITHHELD")


# --- the same in logs


def recorded(answer: str = "", **trust: Any) -> Recording:
    """Record an input, and a model's word on it, where there is one."""
    recording = Recording(ACTORS.values())
    recording.configure({"appraisal": settings(**trust)})
    recording.send(InputReceived(text=CALM), HERE)
    recording.settle()
    if answer:
        [asked] = [each for each in recording.log if each.subject.endswith(".appraisal.judgement_requested")]
        id = asked.headers["ce-id"]
        recording.send(says(answer, id), HERE, ce_cause=id, ce_causeseq=str(asked.seq), ce_index="0", ce_count="1")
        recording.settle()
    return recording


ASKING = REQUESTS | {JudgementRequested}


@each("gate", ["local", "llm", "both"])
@each("answer", [word(9), "rubbish"])
def test_what_was_decided_by_a_word_is_decided_so_again(gate: str, answer: str) -> None:
    report = whatif(recorded(answer, gate=gate).log, requests=ASKING)
    assert report.effects == {"reused": 1}
    for name, tally in report.tallies.items():
        assert (tally.different, tally.gone, tally.new) == (0, 0, 0), name


def test_what_if_has_the_recorded_word_waited_for_under_another_gate() -> None:
    report = whatif(recorded(word(9)).log, {"appraisal": {"trust": {"gate": "llm"}}}, requests=ASKING)
    assert report.effects == {"reused": 1}
    assert report.ends == {"DELIBERATIVE/EXECUTED": {"BREAKER/WITHHELD": 1}}


def test_what_if_says_what_it_cannot_know_where_a_model_was_never_asked() -> None:
    log = recorded(judge="off").log
    report = whatif(log, {"appraisal": {"trust": {"gate": "both"}}}, requests=ASKING)
    assert report.effects == {"never_asked": 1}
    assert sum(report.without_end.values()) == 1
