"""What ``why`` tells of loops: every number that guardrails decided by."""

import msgspec

from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.guardrails import (
    CritiqueRequested,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsOverridden,
    GuardrailsRefused,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
)
from schemas.vocabulary.loops import LoopCompleted, LoopOverridden
from schemas.vocabulary.responder import IdentityUse, ResponseEmitted, ResponseRequested
from tests.deploy.showing.why.test_why_of_the_mind import sample, told
from tests.each import each


@each(
    ("kind", "parts"),
    [
        (AnswerAppraised, ["alignment 0.82, drift 0.14, biases overconfidence", "models hashed-1+bias-1"]),
        (LoopCompleted, ["loop loop_001 is done: alignment 0.72, drift 0.28"]),
        (LoopOverridden, ["loop loop_001: overrides fatigue, by “ann”: “close to an answer”"]),
        (
            GuardrailsRerunOrdered,
            [
                "loop loop_001 runs again as loop_001_r1, best so far loop_001: alignment_threshold_not_met",
                "(alignment 0.72 < 0.75; drift 0.28 > 0.25)",
                "alignment 0.72, drift 0.28 by caller, summary valid, rerun 1 of 3, fatigue 0 (+0)",
                "spoke: alignment, drift; judged by SAGE for SAGE",
            ],
        ),
        (
            GuardrailsForceFinalized,
            ["loop_001_r3 finalized by force, best loop loop_001_r1: max_reruns_reached", "fatigue 0.45 (+0.15)"],
        ),
        (GuardrailsFinalized, ["loop_001_r1 finalized, best loop loop_001_r1: no_issues_detected"]),
        (GuardrailsRepeated, [f"loop loop_001 was judged before, by {'0' * 32}"]),
        (GuardrailsRefused, ["loop loop_404 refused: unknown_loop"]),
        (GuardrailsOverridden, ["family loop_001: fatigue overridden for 60 minutes, by “ann”: “close to an answer”"]),
        (CritiqueRequested, ["calls a model for reflect: 1 message of 28 characters"]),
    ],
)
def test_the_numbers_of_an_event_are_told(kind: type[Event], parts: list[str]) -> None:
    text = told(entry_of(kind).sample)
    assert [part for part in parts if part not in text] == []


def test_what_could_not_be_scored_is_told_to_be_so() -> None:
    answer = msgspec.structs.replace(sample(AnswerAppraised), judged=False)
    assert "neutral: too few words to judge by" in told(answer)
    completed = LoopCompleted(
        loop_id="loop", critics_conflict=True, bias_tags=("haste",), override_max_reruns=True, override_by="ann"
    )
    text = told(completed)
    assert "alignment unknown, drift unknown, critics in conflict, biases haste" in text
    assert "overrides the rerun limit, by “ann”" in text


def test_an_echo_and_who_overrode_a_limit_are_told() -> None:
    ordered = sample(GuardrailsRerunOrdered)
    assert isinstance(ordered, GuardrailsRerunOrdered)
    trace = msgspec.structs.replace(ordered.trace, repetition_counts={"haste": 2}, overridden_by="ann")
    text = told(msgspec.structs.replace(ordered, trace=trace))
    assert "biases: haste in 2 loops" in text
    assert "a limit was overridden by “ann”" in text


def test_a_request_tells_its_loop_and_why_it_runs_again() -> None:
    request = msgspec.structs.replace(sample(ResponseRequested), loop_id="x_r1", rerun_reason="summary_invalid")
    assert "loop x_r1, to be judged, run again for summary_invalid" in told(request)
    assert "not to be judged" in told(sample(ResponseRequested))


def test_an_end_tells_its_loop_and_what_it_took_up_of_the_soul() -> None:
    identity = IdentityUse(stable=("calm-voice", "plain-word"), current=("calm-voice",), overlap=0.25)
    text = told(msgspec.structs.replace(sample(ResponseEmitted), loop_id="x_r1", identity=identity))
    assert "of loop x_r1" in text
    assert "took up 1 of 2 parts of the soul, overlap 0.25: calm-voice" in text
