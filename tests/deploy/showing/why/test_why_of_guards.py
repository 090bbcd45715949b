"""What ``why`` tells of the guards: every number that a verdict rests on."""

import msgspec

from schemas.event import Event
from schemas.vocabulary.appraisal import AppraisalCompleted, AppraisalJudged, JudgementRequested, LayerTrust, Risks
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterImmediate
from schemas.vocabulary.breaker import BreakerReset, BreakerTerminated, BreakerTripped, Standing
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from schemas.vocabulary.intuition import IntuitionPassed, IntuitionRejected
from schemas.vocabulary.swarm import SwarmMeasured
from tests.deploy.showing.why.test_why_of_the_mind import sample, told
from tests.each import each


@each(
    ("kind", "parts"),
    [
        (
            IntuitionRejected,
            ["motif in text", "p-1", "0.82 (threshold 0.7)", "severity 0.9", "score 0.41", "0.93"],
        ),
        (IntuitionPassed, ["nearest motif p-1", "similarity 0.31", "score 0.04"]),
        (CoherencePassed, ["entropy 0.285714 within the threshold 0.8", "knowledge 0.5", "swarm 0", "index 1"]),
        (CoherenceRejected, ["entropy 1 above the threshold 0.8", "constitutional 1", "harm", "0 similar precedents"]),
        (BreakerTripped, ["role_confusion in text", "NORMAL → VIOLATED", "trust 0.5 → 0.15", "falsehood 0.75"]),
        (BreakerReset, ["by “ann”", "false alarm"]),
        (ArbiterDenied, ["denied: harmful_precedent, precedent p-1, similarity 0.8"]),
        (ArbiterImmediate, ["answered at once, precedent p-2, similarity 0.95", "Our office opens at nine."]),
        (ArbiterEscalated, ["escalated: no_precedent", "deadline 5 s"]),
        (JudgementRequested, ["1 part left open: calls a model for appraise", "the input goes on meanwhile", "0.410"]),
        (AppraisalJudged, ["falsehood by qwen3:4b", "the model's share", "0.410  0.900  override   0.900", "0.490"]),
        (SwarmMeasured, ["coherence index 0.9475 (healthy)", "delivered share 0.84", "health alignment 0.95"]),
    ],
)
def test_the_numbers_of_a_verdict_are_told(kind: type[Event], parts: list[str]):
    text = told(sample(kind))
    assert [part for part in parts if part not in text] == []


def test_a_word_that_did_not_come_is_told_with_its_reason():
    sample_of = sample(AppraisalJudged)
    silent = msgspec.structs.replace(sample_of, reason="endpoint_overdue", parts=())
    assert "the local numbers stand, since no model's word can be had: endpoint_overdue" in told(silent)


def test_the_breaker_tells_where_a_session_stands_before_and_after():
    standing = Standing(
        state_before="RECOVERY",
        state="TERMINATED",
        trust_before=0.4,
        trust=0.2,
        falsehood=0.9,
        violations=3,
        attempts=2,
        attempt_turns=7,
        stance="terminated",
    )
    ended = BreakerTerminated(reason="breakers_in_session", standing=standing, violation="role_confusion", layer="text")
    lines = told(ended).splitlines()
    assert lines == [
        "terminated: breakers_in_session, role_confusion in text",
        "RECOVERY → TERMINATED, trust 0.4 → 0.2, falsehood 0.9, stance terminated",
        "violations 3, attempts 2, turns of the attempt 7",
    ]


def test_the_appraisal_is_told_layer_by_layer():
    layers = (
        LayerTrust(layer="text", characters=28, truth=0.9, indeterminacy=0.125, falsehood=0.05),
        LayerTrust(layer="document[1]", characters=7000, truth=0.2, indeterminacy=0.3, falsehood=0.75, unread=1024),
    )
    appraisal = msgspec.structs.replace(sample(AppraisalCompleted), layers=layers, risks=Risks(harm=True))
    lines = [line.split() for line in told(appraisal).splitlines()]
    assert ["text", "28", "0.900", "0.125", "0.050", "0"] in lines
    assert ["document[1]", "7000", "0.200", "0.300", "0.750", "1024"] in lines
    assert "risk of harm" in told(appraisal)
    assert "topic topic-1, confidence 0.71" in told(appraisal)


def test_a_precedent_without_a_name_of_its_own_is_told_as_none():
    assert "no motif shares a shingle; scorer off" in told(
        msgspec.structs.replace(sample(IntuitionPassed), nearest="", similarity=0.0, score=None)
    )


def test_nothing_that_a_terminal_obeys_gets_through():
    hostile = msgspec.structs.replace(sample(ArbiterDenied), precedent="p\x1b[2J\u202e")
    assert "\x1b" not in told(hostile)
    assert "\u202e" not in told(hostile)
