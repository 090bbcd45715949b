"""Recorded effects: each answers one request that stands before it, once, and says nothing else of it."""

import tracemalloc
from collections.abc import Callable, Sequence
from functools import cache

import msgspec
import pytest

from deploy.replaying.run_effect_check import REQUESTS_TO
from events.bundles import read_events
from events.log import Stored
from events.replay.verifying.effect_check import EffectCheck, EffectReport, RequestIdReader
from schemas.catalogue import ALERTS, CATALOGUE
from schemas.envelope import Envelope, encode_headers
from schemas.event import Event, encode_event, topic_of
from schemas.identity import event_id
from schemas.versions import UPCASTERS
from schemas.vocabulary.act import ActDelegationRequested
from schemas.vocabulary.delegate import DelegateAnswered, DelegateFailed
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed, WebhookQueued
from tests.each import each
from tests.fixtures import FOLDER

TOPICS = {effector: frozenset(map(topic_of, events)) for effector, events in REQUESTS_TO.items()}


@cache
def released() -> tuple[Stored, ...]:
    """Return the newest release's log, in which a model was asked by several actors."""
    return tuple(stored for batch in read_events(max(FOLDER.glob("*.nxb"))) for stored in batch)


def checked(log: Sequence[Stored], of: frozenset[str] = frozenset()) -> EffectReport:
    reader = RequestIdReader(TOPICS.keys())
    for stored in log:
        reader.feed(stored)
    effects = EffectCheck(TOPICS, reader.finish(), of)
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


@each(
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
    named=["cause", "a cause that asks for nothing", "sequence", "place", "id", "exchange", "headers"],
)
@each("topic", [".llm.completed", ".llm.failed"])
def test_an_answer_that_is_not_that_of_its_request_is_found(
    topic: str, headers: Callable[[], dict[str, str]], problem: str
):
    answer = first(topic)
    report = checked(changed(answer, **headers()))
    assert [(one.seq, one.problem) for one in report.findings] == [(answer.seq, problem)]
    assert (report.counts["llm"].wrong, report.counts["llm"].open) == (1, 1)


def test_an_answer_of_an_older_version_is_held_against_its_request_as_today_s(monkeypatch: pytest.MonkeyPatch):
    entry = CATALOGUE["forged_id.llm.completed"]
    monkeypatch.setitem(CATALOGUE, entry.topic, msgspec.structs.replace(entry, version=2))
    step = (entry.topic, 1)
    monkeypatch.setitem(UPCASTERS, step, lambda body: body | {"purpose": body.pop("aim")})  # type: ignore[arg-type]
    answer = first(".llm.completed")
    older = body(answer, b'"purpose":', b'"aim":')
    assert checked(older).findings[:1] == (), "what it says under its older name is what was asked"
    aim = f'"aim":"{msgspec.json.decode(answer.data)["purpose"]}"'.encode()
    forged = [
        msgspec.structs.replace(each, data=each.data.replace(aim, b'"aim":"other"')) if each.seq == answer.seq else each
        for each in older
    ]
    assert [(one.seq, one.field) for one in checked(forged).findings] == [(answer.seq, "purpose")]


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


def body(stored: Stored, was: bytes, now: bytes) -> list[Stored]:
    """Return the log with something else said in one message."""
    assert was in stored.data
    other = msgspec.structs.replace(stored, data=stored.data.replace(was, now))
    return [other if each.seq == stored.seq else each for each in released()]


@each(
    ("topic", "field"),
    [
        (".llm.completed", "request"),
        (".llm.completed", "purpose"),
        (".llm.failed", "request"),
        (".llm.failed", "purpose"),
        (".llm.failed", "failed_topic"),
    ],
)
def test_an_answer_whose_body_names_another_request_is_found(topic: str, field: str):
    answer = first(topic)
    said = msgspec.json.decode(answer.data)
    report = checked(body(answer, f'"{field}":"{said[field]}"'.encode(), f'"{field}":"other"'.encode()))
    assert [(one.seq, one.problem, one.field) for one in report.findings] == [(answer.seq, "body", field)]
    assert report.counts["llm"].open == 1


class Log:
    """A log of requests and effects, one message after the other."""

    def __init__(self) -> None:
        self.messages: list[Stored] = []

    def store(self, event: Event, id: str, cause: Stored | None = None, index: int = 0, count: int = 1) -> Stored:
        seq = len(self.messages) + 1
        causes = {"cause": cause.headers["ce-id"], "cause_seq": cause.seq} if cause is not None else {}
        places = {"index": index, "count": count} if cause is not None else {}
        envelope = Envelope(
            id=id, topic=topic_of(event), source="test", time="2026-01-01T00:00:00Z", **causes, **places
        )
        stored = Stored(seq, seq, f"log._._.{topic_of(event)}", encode_headers(envelope), encode_event(event))
        self.messages.append(stored)
        return stored

    def answer(self, request: Stored, effector: str, *events: Event) -> list[Stored]:
        return [
            self.store(event, event_id(request.headers["ce-id"], effector, index), request, index, len(events))
            for index, event in enumerate(events)
        ]


ALERT = msgspec.structs.replace(CATALOGUE[topic_of(next(iter(ALERTS.values())))].sample, alert="a" * 16, count=3)
ID = "1" * 32
QUEUED = WebhookQueued(body=msgspec.to_builtins(ALERT), request=ID, stored_ns=1, receiver="ops")
DELIVERED = WebhookDelivered(
    alert=ALERT.alert, status=ALERT.status, count=3, request=ID, receiver="ops", code=200, attempts=1
)
LOST = WebhookFailed(
    reason="receiver_unreachable", error="", failed_seq=2, failed_topic=topic_of(QUEUED), request=ID, receiver="ops"
)
"""A dead letter of a delivery that was abandoned: it names the request, and of the alert nothing."""


def delivered(*queued: WebhookQueued, answer: Event = DELIVERED) -> Log:
    log = Log()
    first_queued, *_ = log.answer(log.store(ALERT, ID), "webhook", *queued)
    log.answer(first_queued, "webhook", answer)
    return log


@pytest.mark.parametrize("answer", [DELIVERED, LOST], ids=["delivered", "lost"])
def test_alerts_that_were_shared_out_and_delivered_are_in_order(answer: Event):
    report = checked(delivered(QUEUED, msgspec.structs.replace(QUEUED, receiver="pager"), answer=answer).messages)
    counts = report.counts["webhook"]
    assert (report.findings, counts.requests, counts.answered, counts.open) == ((), 3, 2, 1)


@each(
    ("event", "change"),
    [
        (DELIVERED, {"request": "2" * 32}),
        (DELIVERED, {"receiver": "pager"}),
        (DELIVERED, {"alert": "b" * 16}),
        (DELIVERED, {"status": "resolved"}),
        (DELIVERED, {"count": 4}),
        (LOST, {"failed_topic": topic_of(ALERT)}),
        (LOST, {"request": "2" * 32}),
        (LOST, {"receiver": "pager"}),
        (LOST, {"alert": "b" * 16, "status": ALERT.status, "count": 3}),
    ],
)
def test_a_delivery_that_tells_of_another_alert_is_found(event: Event, change: dict[str, object]):
    log = delivered(QUEUED, answer=msgspec.structs.replace(event, **change))
    [found] = checked(log.messages).findings
    assert (found.seq, found.problem, found.field) == (3, "body", next(iter(change)))


@each("field", ["alert", "status", "count"])
def test_an_alert_that_is_queued_as_another_is_found(field: str):
    other = {**QUEUED.body, field: {"alert": "b" * 16, "status": "resolved", "count": 4}[field]}
    report = checked(delivered(msgspec.structs.replace(QUEUED, body=other)).messages)
    assert (report.findings[0].seq, report.findings[0].problem, report.findings[0].field) == (2, "body", field)


def test_one_of_several_events_of_an_answer_that_is_recorded_again_is_found_as_such():
    log = delivered(QUEUED, msgspec.structs.replace(QUEUED, receiver="pager"))
    alert, queued, *rest = log.messages
    again = msgspec.structs.replace(queued, seq=3)
    report = checked([alert, queued, again, *rest[:1]])
    assert [(one.seq, one.problem) for one in report.findings] == [(3, "answered_twice")]


DELEGATION = CATALOGUE[topic_of(ActDelegationRequested)].sample
ANSWERED = DelegateAnswered(
    request=ID, index=DELEGATION.action.index, specialist=DELEGATION.action.specialist, answer="42"
)
UNREAD = DelegateFailed(reason="undecodable", error="", failed_seq=1, failed_topic=topic_of(DELEGATION))
"""A dead letter of a request that could not be read: it does not name it."""


def test_a_dead_letter_of_a_request_that_could_not_be_read_contradicts_nothing():
    log = Log()
    log.answer(log.store(DELEGATION, ID), "delegate", UNREAD)
    assert checked(log.messages).findings == ()


@each("change", [{"index": 9}, {"specialist": "oracle"}, {"request": "2" * 32}])
def test_a_specialist_s_answer_to_another_question_is_found(change: dict[str, object]):
    log = Log()
    log.answer(log.store(DELEGATION, ID), "delegate", msgspec.structs.replace(ANSWERED, **change))
    assert [(one.problem, one.field) for one in checked(log.messages).findings] == [("body", next(iter(change)))]


def test_requests_that_nobody_answers_are_counted_and_not_remembered():
    log = delivered(QUEUED)
    reader = RequestIdReader(TOPICS.keys())
    for stored in log.messages:
        reader.feed(stored)
    effects = EffectCheck(TOPICS, reader.finish())
    for stored in log.messages:
        effects.feed(stored)
    tracemalloc.start()
    for number in range(1000):
        alert = log.messages[0]
        ids = {"ce-id": f"{number:032x}"}
        effects.feed(msgspec.structs.replace(alert, seq=10 + number, headers={**alert.headers, **ids}))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert effects.finish().counts["webhook"].open == 1000
    assert held < 20_000


def test_an_answer_to_a_request_of_a_newer_release_is_not_wrong():
    request = next(each for each in released() if each.headers["ce-type"] in TOPICS["llm"])
    other = request.headers | {"ce-type": "forged_id.planner.thought_requested"}
    log = changed(request, **{name.replace("-", "_"): value for name, value in other.items()})
    report = checked(log)
    assert (report.wrong, report.counts["llm"].unread) == (0, 1)
