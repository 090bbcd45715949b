"""Recorded effects: each answers one request that stands before it, once; all else is found by the headers alone."""

from collections.abc import Callable, Sequence
from functools import cache

import msgspec
import pytest

from deploy.effects import SERVED
from events.bundles import read_events
from events.effects import EffectReport, Effects
from events.log import Stored
from schemas.event import topic_of
from tests.fixtures import FOLDER

TOPICS = {effector: frozenset(map(topic_of, events)) for effector, events in SERVED.items()}


@cache
def released() -> tuple[Stored, ...]:
    """Return the newest release's log, in which a model was asked by several actors."""
    return tuple(stored for batch in read_events(max(FOLDER.glob("*.nxb"))) for stored in batch)


def checked(log: Sequence[Stored], of: frozenset[str] = frozenset()) -> EffectReport:
    effects = Effects(TOPICS, of)
    for stored in log:
        effects.feed(stored)
    return effects.finish()


def first(topic: str, after: int = 0) -> Stored:
    return next(each for each in released() if each.seq > after and each.subject.endswith(topic))


def changed(stored: Stored, **headers: str) -> list[Stored]:
    """Return the log with other headers of one message."""
    other = msgspec.structs.replace(stored, headers={**stored.headers, **spelled(headers)})
    return [other if each.seq == stored.seq else each for each in released()]


def spelled(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def test_effects_of_a_real_log_answer_their_requests():
    report = checked(released())
    asked = [each for each in released() if each.headers["ce-type"] in TOPICS["llm"]]
    assert (report.counts["llm"].requests, report.counts["llm"].answered) == (len(asked), len(asked))
    assert len(asked) > 5
    assert (report.wrong, report.findings, list(report.counts)) == (0, (), ["llm"])


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        (lambda: {"ce_cause": "0" * 32}, "no_request"),
        (lambda: {"ce_cause": first(".input.received").headers["ce-id"]}, "no_request"),
        (lambda: {"ce_causeseq": "3"}, "place"),
        (lambda: {"ce_index": "1", "ce_count": "2"}, "place"),
        (lambda: {"ce_id": "0" * 32}, "id"),
        (lambda: {"ce_exchange": "0" * 32}, "exchange"),
        (lambda: {"ce_index": "x"}, "unreadable"),
    ],
    ids=["cause", "a cause that asks for nothing", "sequence", "place", "id", "exchange", "headers"],
)
@pytest.mark.parametrize("topic", [".llm.completed", ".llm.failed"])
def test_an_answer_that_is_not_that_of_its_request_is_found(
    topic: str, headers: Callable[[], dict[str, str]], problem: str
):
    answer = first(topic)
    report = checked(changed(answer, **headers()))
    assert [(one.seq, one.problem) for one in report.findings] == [(answer.seq, problem)]
    assert (report.counts["llm"].wrong, report.counts["llm"].open) == (1, 1)


def test_a_request_that_is_answered_again_is_found():
    answer = first(".llm.completed")
    again = msgspec.structs.replace(answer, seq=len(released()) + 1)
    report = checked([*released(), again])
    assert [(one.seq, one.problem) for one in report.findings] == [(again.seq, "answered_twice")]


def test_an_answer_of_an_effector_that_serves_no_such_request_is_found():
    answer = first(".llm.completed")
    report = checked(changed(answer, ce_type="forged_id.delegate.answered"))
    assert [(one.effector, one.problem) for one in report.findings] == [("delegate", "other_request")]


def test_a_request_without_an_answer_is_open_and_no_finding():
    asked = [each for each in released() if each.headers["ce-type"] in TOPICS["llm"]]
    report = checked([each for each in released() if each.seq <= asked[-1].seq])
    assert (report.counts["llm"].open, report.wrong) == (1, 0)


def test_findings_of_chosen_exchanges_are_kept_and_all_are_counted():
    log = [
        msgspec.structs.replace(each, headers={**each.headers, "ce-causeseq": "1"}) if ".llm." in each.subject else each
        for each in released()
    ]
    last = [each.headers["ce-exchange"] for each in log if ".llm." in each.subject][-1]
    report = checked(log, frozenset({last}))
    assert {one.exchange for one in report.findings} == {last}
    assert report.wrong > len(report.findings)
