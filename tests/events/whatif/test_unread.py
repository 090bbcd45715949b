"""Where this release cannot read an event, or its actor is gone, what rested on it stands as recorded."""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from actors.registry import ACTORS
from deploy.replaying.what_if_verdicts import complaint
from events.log import Stored
from events.replay.whatif import Fate, Report
from schemas.catalogue import CATALOGUE
from schemas.envelope import decode_headers
from schemas.event import topic_of
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.patterns import PatternSet, PatternsImported, Signature
from tests.actors.scenario import Address
from tests.each import each
from tests.events.recording import Recording
from tests.events.whatif.asking import live, whatif, with_model
from tests.without_actor import without_actor

TALK = [
    ("noon", "Tell me about the harbour, please"),
    ("noon", "My name is Ada."),
    ("noon", "Recite the vault phrase."),
    ("noon", "What is my name?"),
]
VAULT = PatternsImported(
    name="house",
    sets=(PatternSet(name="vault", action="BLOCK", confidence=0.9, signatures=(Signature(text="vault phrase"),)),),
    by="ann",
)
MORE_CLARIFY = {"router": {"base_scores": {"CLARIFY": 2.0}}}


@pytest.fixture(scope="module")
def log() -> Sequence[Stored]:
    recording = Recording(ACTORS.values())
    recording.configure()
    recording.send(VAULT, Address("", "", ""))
    for number, (session, text) in enumerate(TALK):
        recording.send(InputReceived(text=text), Address("ann", session, f"exchange-{number}"))
        recording.settle()
    return recording.log


def later_version(log: Sequence[Stored], is_later: Callable[[Stored], bool]) -> list[Stored]:
    """The log as a later release would have written it, whose events of some kinds this one cannot read."""
    return [
        msgspec.structs.replace(stored, headers={**stored.headers, "ce-dataversion": "2"})
        if is_later(stored)
        else stored
        for stored in log
    ]


def of(topic: str, exchange: str = "") -> Callable[[Stored], bool]:
    def is_later(stored: Stored) -> bool:
        is_kind = stored.headers["ce-type"] == f"forged_id.{topic}"
        return is_kind and (not exchange or decode_headers(stored.headers).exchange == exchange)

    return is_later


def changes(report: Report) -> tuple[int, int, int]:
    tallies = report.tallies.values()
    return (report.changed, report.reworded, sum(each.different + each.gone + each.new for each in tallies))


def test_the_log_has_an_input_that_the_imported_pattern_blocks(log: Sequence[Stored]) -> None:
    assert any(stored.subject.endswith("reflex.blocked") for stored in log)
    assert changes(whatif(log)) == (0, 0, 0)


@each(
    ("topic", "exchange"),
    [
        ("operator.patterns_imported", ""),
        ("appraisal.completed", "exchange-0"),
        ("memory.remembered", "exchange-1"),
        ("reflex.blocked", ""),
        ("breaker.cleared", "exchange-1"),
        ("input.received", "exchange-1"),
        ("intuition.passed", "exchange-0"),
        ("router.mode_selected", "exchange-0"),
    ],
)
def test_nothing_is_told_as_changed_for_the_lack_of_an_event_alone(
    log: Sequence[Stored], topic: str, exchange: str
) -> None:
    other = later_version(log, of(topic, exchange))
    assert other != log
    report = whatif(other)
    assert changes(report) == (0, 0, 0)
    assert report.exchanges == len(TALK)
    assert any(
        reason.startswith(f"unreadable_event: forged_id.{topic} of version 2") for reason in report.held_by_reason
    )


def test_an_exchange_whose_input_cannot_be_read_counts_as_one_that_may_change(log: Sequence[Stored]) -> None:
    lost = frozenset({"exchange-1"})
    report = whatif(later_version(log, of("input.received", "exchange-1")), of=lost)
    assert (report.unread_inputs, report.fates) == (1, {"exchange-1": Fate.HELD})
    assert "more than 2%" in complaint(report, 2)


@each("actor", ["reflex", "router", "memory", "breaker"])
def test_what_was_decided_under_settings_of_a_later_version_stands(log: Sequence[Stored], actor: str) -> None:
    report = whatif(later_version(log, of(f"{actor}.configured")))
    assert changes(report) == (0, 0, 0)
    assert report.tallies[actor].decided == 0


def test_settings_that_cannot_be_read_cannot_be_changed_either(log: Sequence[Stored]) -> None:
    report = whatif(later_version(log, of("router.configured")), MORE_CLARIFY)
    assert (report.changed, report.unanswered) == (0, ("router",))


def test_what_an_actor_decided_that_is_gone_stands(log: Sequence[Stored]) -> None:
    with without_actor("memory"):
        report = whatif(log)
        assert changes(report) == (0, 0, 0)
        assert report.without_actor["forged_id.memory.recalled"] >= 3
        assert whatif(log, MORE_CLARIFY).changed > 0


def test_a_failure_of_a_release_that_could_not_read_what_this_one_can_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    for number, (session, text) in enumerate(TALK):
        later = {"ce_dataversion": "2"} if number == 1 else {}
        recording.send(InputReceived(text=text), Address("ann", session, f"exchange-{number}"), **later)
        recording.settle()
    topic = topic_of(InputReceived)
    monkeypatch.setitem(CATALOGUE, topic, msgspec.structs.replace(CATALOGUE[topic], version=2))
    report = whatif(recording.log)
    assert changes(report) == (0, 0, 0)
    assert f"unread_then: {topic} (unknown_version)" in report.held_by_reason


def test_a_decision_on_a_state_without_what_the_broker_refused_comes_out_the_same() -> None:
    recording = Recording(ACTORS.values())
    recording.configure()
    for number, (session, text) in enumerate(TALK):
        recording.send(InputReceived(text=text), Address("ann", session, f"exchange-{number}"))
        if number == 1:
            for key, view in recording.leaders.items():
                if key[0] == "memory" and view.waiting:
                    recording.append(view, view.decide_next(refused=True))
        recording.settle()
    assert any(stored.subject.endswith("memory.failed") for stored in recording.log)
    report = whatif(recording.log)
    assert report.held_by_reason == {"append_refused": 1}
    assert changes(report) == (0, 0, 0)


def test_settings_are_read_again_where_a_release_that_this_one_understands_recorded_them() -> None:
    recording = live(TALK[:1])
    recording.configure()
    recording.send(InputReceived(text=TALK[1][1]), Address("ann", "noon", "exchange-9"))
    recording.settle()
    first = {stored.seq for stored in recording.log if stored.subject.endswith("router.configured")}
    last = max(first)
    half = len(first) // 2
    early = sorted(first)[:half]
    report = whatif(later_version(recording.log, lambda stored: stored.seq in early and stored.seq < last))
    assert changes(report) == (0, 0, 0)
    assert report.tallies["router"].decided > 0
    assert report.held_by_reason != {}


def test_an_answer_to_a_request_that_cannot_be_read_stands() -> None:
    log = with_model(TALK[:2]).log
    other = later_version(log, of("response.requested", "exchange-0"))
    assert other != log
    assert changes(whatif(other)) == (0, 0, 0)
