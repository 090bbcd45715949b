"""The plain sentence on an exchange: there is one for every stage, action and reason, and it is built from facts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

import actors.llm
from actors.guardrails.loop_judging import _LIMITS, REASONS
from actors.responder.forwarding import UPSTREAM_SILENT
from actors.runtime.effectors import requests
from deploy.cli.rendering import reason_texts
from deploy.cli.rendering.sentences import DETAIL_EVENTS, is_known, sentence_on
from events.make_decision import APPEND_REFUSED
from schemas.availability import Lack
from schemas.catalogue import entry_of
from schemas.errors import VocabularyError
from schemas.input_path import STAGE_OF
from schemas.unread import Unread, layers_left_out
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterImmediate, ArbiterPassed
from schemas.vocabulary.breaker import (
    BreakerState,
    BreakerTerminated,
    BreakerTripped,
    BreakerWithheld,
    Stance,
    Violation,
)
from schemas.vocabulary.coherence import CoherenceRejected
from schemas.vocabulary.gateway import InputAbandoned
from schemas.vocabulary.intuition import IntuitionRejected
from schemas.vocabulary.reflex import AnswerFault, ReflexAnswerBlocked, ReflexBlocked
from schemas.vocabulary.responder import Action, ResponseEmitted, Stage
from schemas.vocabulary.router import Mode, ModeSelected
from tests.each import each

END = entry_of(ResponseEmitted).sample
STAGES: tuple[Stage, ...] = get_args(Stage)


def an_end(stage: str, action: str, reason: str, **more: Any) -> ResponseEmitted:
    changed: ResponseEmitted = msgspec.structs.replace(
        END, **{"stage": stage, "action": action, "reason": reason, "mode": None, "first_mode": None, **more}
    )
    return changed


def literals(event: type, field: str) -> tuple[str, ...]:
    """Return the values of an event's field that takes just some words."""
    return tuple(get_args(event.__annotations__[field]))


def model_failures() -> set[str]:
    """Return why a model may give no answer: what its client says, and what the shell of effectors does."""
    sources = Path(actors.llm.__file__).parent.rglob("*.py")
    named = r'"(no_model|endpoint_\w+|circuit_open)"'
    called = {name for file in sources for name in re.findall(named, file.read_text())}
    assert called >= {"no_model", "endpoint_overdue"}
    shell = {requests.EFFECT_RAISED, requests.EFFECT_TIMED_OUT, requests.EFFECT_ABANDONED, requests.RESULT_INVALID}
    unread = {error.code for error in VocabularyError.__subclasses__()}
    own = {"answer_empty", "answer_filtered", "no_time", "circuit_open", "answer_invalid", "deadline"}
    return called | shell | unread | own | {requests.TEXT_FORGOTTEN, APPEND_REFUSED}


def all_ends() -> Iterator[ResponseEmitted]:
    """Yield an end for every stage, action and reason there is."""
    for stage in STAGES:
        yield an_end(stage, "FAILED", "deadline")
    for actor, stage in STAGE_OF.items():
        yield an_end(stage, "FAILED", f"{actor}_failed")
    yield an_end("DELIBERATIVE", "FAILED", "deliberation_deadline")
    yield an_end("DELIBERATIVE", "FAILED", "mode_not_answerable")
    yield an_end("REFLEX", "BLOCKED", "jailbreak")
    yield from (an_end("INTUITION", "REJECTED", reason) for reason in ("scorer", "p-1"))
    yield from (an_end("COHERENCE", "REJECTED", reason) for reason in ("DISSONANT", "UNREAD"))
    off = (state.lower() for state in get_args(BreakerState) if state != "NORMAL")
    because = (why for why in literals(BreakerWithheld, "because") if why != "state")
    held = (*get_args(Violation), *off, *because, *literals(BreakerTerminated, "reason"))
    yield from (an_end("BREAKER", "WITHHELD", reason) for reason in held)
    yield from (an_end("ARBITER", "REJECTED", reason) for reason in literals(ArbiterDenied, "reason"))
    yield an_end("ARBITER", "EXECUTED", "p-2", backend="precedent")
    yield an_end("ARBITER", "PASSED", "check", response="")
    yield an_end("DELIBERATIVE", "EXECUTED", "forward", backend="upstream", model="their-model")
    for why in (UPSTREAM_SILENT, *literals(InputAbandoned, "reason")):
        yield an_end("DELIBERATIVE", "FAILED", why)
    for fault in get_args(AnswerFault):
        yield an_end("DELIBERATIVE", "WITHHELD", fault)
    unjudged = ("appraisal_failed", "guardrails_failed", "guardrails_silent", "guardrails_repeated")
    forced = sorted(REASONS[limit] for limit in _LIMITS)
    for lack in get_args(Lack):
        for stage in STAGES[:-1]:
            yield an_end(stage, "FAILED", f"{lack}: {'appraisal' if stage == 'BREAKER' else stage.lower()}")
        yield from (an_end("DELIBERATIVE", "FAILED", f"{lack}: {name}") for name in ("memory", "router", "act"))
    for mode in get_args(Mode):
        if mode == "ACT":
            continue  # no answer is given in it
        yield an_end("DELIBERATIVE", "EXECUTED", mode, mode=mode)
        unserved = (f"{lack}: {stage}" for lack in get_args(Lack) for stage in ("appraisal", "guardrails"))
        for why in (*unjudged, *forced, *unserved):
            yield an_end("DELIBERATIVE", "EXECUTED", f"{mode}:{why}", mode=mode, backend="llm", model="m")
        for why in (*sorted(model_failures()), *get_args(Lack)):
            yield an_end("DELIBERATIVE", "EXECUTED", f"llm_failed:{why}", mode=mode)
            yield an_end("DELIBERATIVE", "EXECUTED", f"{mode}:rerun_failed:{why}", mode=mode, backend="llm", model="m")


@each("end", all_ends(), named=lambda end: f"{end.stage} {end.action} {end.reason}")
def test_every_end_has_a_sentence_of_its_own(end: ResponseEmitted) -> None:
    assert is_known(end)
    told = sentence_on(end)
    assert re.match(r"(Answered|Refused|Withheld|Let pass|Not answered)[: ]", told)
    assert told.endswith(".")
    assert "\n" not in told
    assert not re.search(r"\s{2}|\bNone\b|[{}]|: *\.|; *\.|, because \.", told), told


def test_every_stage_action_and_mode_is_explained() -> None:
    assert tuple(reason_texts.STAGES) == STAGES
    assert set(reason_texts.ACTIONS) == set(get_args(Action))
    assert set(reason_texts.MODES) == set(get_args(Mode))
    assert set(reason_texts.UNSERVED) == set(get_args(Lack))
    assert set(reason_texts.STANCES) == set(get_args(Stance))
    ended = {(end.stage, end.action) for end in all_ends()}
    assert {action for _, action in ended} == set(get_args(Action))
    assert {stage for stage, _ in ended} == set(STAGES)


def test_no_explanation_outlives_its_reason() -> None:
    told = {end.reason for end in all_ends()}
    words = {word for reason in told for word in reason.split(":")}
    known = {
        *reason_texts.COHERENCE,
        *reason_texts.UNSERVED,
        *reason_texts.BREAKER,
        *reason_texts.ARBITER,
        *reason_texts.MODEL_FAILURES,
        *reason_texts.GUARDRAILS,
        *reason_texts.ANSWER_FAULTS,
    }
    assert known | set(reason_texts.DELIBERATIVE_FAILURES) <= words


def test_a_reason_of_another_release_is_named_as_it_is() -> None:
    end = an_end("ARBITER", "REJECTED", "moon_phase")
    assert not is_known(end)
    assert sentence_on(end) == "Refused: for the reason moon_phase of ARBITER."
    answered = an_end("DELIBERATIVE", "EXECUTED", "RESPOND:moon_phase", mode="RESPOND")
    assert not is_known(answered)
    assert sentence_on(answered).endswith("because of RESPOND:moon_phase.")


JUNK = Unread(layer="text", what="base64", amount=72_000, why="decoding", share=0.95)
SELECTED = entry_of(ModeSelected).sample


@each(
    ("end", "fact", "told"),
    [
        (
            an_end("ARBITER", "PASSED", "check"),
            ArbiterPassed(nearest="p-3", similarity=0.4),
            "Let pass: no guard objects, the precedent most like it being p-3 (similarity 0.4); "
            "it was sent to be checked only.",
        ),
        (
            an_end("DELIBERATIVE", "EXECUTED", "forward", backend="upstream", model="their-model"),
            ArbiterPassed(nearest="", similarity=0.0),
            "Answered by the model their-model that its sender asked, because no guard objected, and it was to be "
            "forwarded.",
        ),
        (
            an_end("DELIBERATIVE", "WITHHELD", "prompt_leak"),
            ReflexAnswerBlocked(faults=("prompt_leak",), leaked=0.87),
            "Withheld: the model's answer gives the system prompt away; 87% of it.",
        ),
        (
            an_end("REFLEX", "BLOCKED", "jailbreak"),
            entry_of(ReflexBlocked).sample,
            "Refused: it has the phrase “dan mode” of a known attack; pattern set jailbreak.",
        ),
        (
            an_end("INTUITION", "REJECTED", "p-1"),
            entry_of(IntuitionRejected).sample,
            "Refused: it resembles a situation that did harm; precedent p-1, similarity 0.82 above 0.7.",
        ),
        (
            an_end("INTUITION", "REJECTED", "scorer"),
            entry_of(IntuitionRejected).sample,
            "Refused: the learned scorer takes it for an attack; score 0.41, threshold 0.93.",
        ),
        (
            an_end("COHERENCE", "REJECTED", "DISSONANT"),
            entry_of(CoherenceRejected).sample,
            "Refused: answering it could do harm; rule harm.",
        ),
        (
            an_end("COHERENCE", "REJECTED", "DISSONANT"),
            msgspec.structs.replace(entry_of(CoherenceRejected).sample, violations=(), entropy=0.9),
            "Refused: answering it would not fit what this system is bound to, or knows; entropy 0.9 above 0.8.",
        ),
        (
            an_end("COHERENCE", "REJECTED", "UNREAD"),
            msgspec.structs.replace(entry_of(CoherenceRejected).sample, violations=("unread",), unread_of=JUNK),
            "Refused: too much of it could not be looked at within the work that one input may cost; 72,000 "
            "characters of base64 were not.",
        ),
        (
            an_end("COHERENCE", "REJECTED", "UNREAD"),
            msgspec.structs.replace(
                entry_of(CoherenceRejected).sample, violations=("unread",), unread_of=layers_left_out(198_976)[0]
            ),
            "Refused: too much of it could not be looked at within the work that one input may cost; 198,976 layers "
            "were not.",
        ),
        (
            an_end("ARBITER", "FAILED", "no_owner: arbiter"),
            SELECTED,
            "Not answered: it waited for arbiter, and no worker runs it.",
        ),
        (
            an_end("DELIBERATIVE", "EXECUTED", "llm_failed:stalled", mode="RESPOND"),
            SELECTED,
            "Answered by the composer with an answer, because RESPOND scored highest (confidence 0.30), and no model "
            "answered: its worker makes no progress.",
        ),
        (
            an_end("BREAKER", "WITHHELD", "role_confusion"),
            entry_of(BreakerTripped).sample,
            "Withheld: it looks like an attempt to take over the conversation, and broke the session's trust; "
            "trust 0.5 → 0.15.",
        ),
        (
            an_end("ARBITER", "REJECTED", "harmful_precedent"),
            ArbiterDenied(reason="harmful_precedent", precedent="p-1", similarity=0.97),
            "Refused: an earlier input like it did harm; precedent p-1, similarity 0.97.",
        ),
        (
            an_end("ARBITER", "EXECUTED", "p-2", backend="precedent"),
            ArbiterImmediate(precedent="p-2", similarity=0.97, answer="Lima."),
            "Answered at once by precedent p-2, because its answer to nearly the same input was approved "
            "(similarity 0.97).",
        ),
        (
            an_end("DELIBERATIVE", "EXECUTED", "RESPOND", mode="RESPOND"),
            SELECTED,
            "Answered by the composer with an answer, because RESPOND scored highest (confidence 0.30).",
        ),
        (
            an_end("DELIBERATIVE", "EXECUTED", "IGNORE", mode="IGNORE"),
            msgspec.structs.replace(SELECTED, terminal_mode="IGNORE", reason="blank_input"),
            "Answered with no words, because the input is blank.",
        ),
        (
            an_end("DELIBERATIVE", "EXECUTED", "llm_failed:no_model", mode="RESPOND"),
            msgspec.structs.replace(SELECTED, rerouted=True),
            "Answered by the composer with an answer, because RESPOND scored highest after an ACT loop (confidence "
            "0.30), and no model answered: the endpoint has no such model.",
        ),
        (
            an_end(
                "DELIBERATIVE", "EXECUTED", "RESPOND:guardrails_silent", mode="RESPOND", backend="llm", model="qwen3:8b"
            ),
            msgspec.structs.replace(SELECTED, reason="tiebreak", tiebreaker_candidates=("RESPOND", "ACT")),
            "Answered by the model qwen3:8b with an answer, because a model, asked to choose "
            "between RESPOND and ACT, took RESPOND (confidence 0.30); guardrails did not judge it in time.",
        ),
    ],
)
def test_a_sentence_has_the_facts_behind_the_end(end: ResponseEmitted, fact: Any, told: str) -> None:
    assert sentence_on(end, (fact,)) == told
    assert type(fact) in DETAIL_EVENTS


def test_a_long_phrase_is_cut_and_control_characters_are_not_obeyed() -> None:
    blocked = msgspec.structs.replace(entry_of(ReflexBlocked).sample, signature="x\x1b[31m" * 50)
    told = sentence_on(an_end("REFLEX", "BLOCKED", "jailbreak"), (blocked,))
    assert "\x1b" not in told
    assert len(told) < 160
