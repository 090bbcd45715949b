"""What a newer release decided about what this one cannot read is left unverified; a missing failure is not."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
import pytest

from events.log import Stored
from events.replay.replay import Report
from events.replay.verifying.unread_causes import this_release
from schemas.actor import Message
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of
from schemas.versions import UPCASTERS
from schemas.vocabulary.gateway import InputReceived
from tests.actors.scenario import Address
from tests.each import each
from tests.events.recording import PARTITIONS, Recording
from tests.events.replaying import asked, changed, renumbered, verified
from tests.events.small_actors import DIARIST, Diary, blocked, deciding

INPUT = topic_of(InputReceived)
UNREAD = f"unreadable_event: {INPUT} of version 2"
OLDER, NEWER = "0.0.1+abcdef01", "99.0.0+abcdef01"
THIS = f"{this_release()}+abcdef01"


def decided_by(build: str, log: Sequence[Stored]) -> list[Stored]:
    """The log as workers of a release would have written it, as their events say."""
    return [
        msgspec.structs.replace(each, headers={**each.headers, "ce-build": build})
        if each.headers.get("ce-cause")
        else each
        for each in log
    ]


def inputs(log: Sequence[Stored]) -> list[int]:
    return [stored.seq for stored in log if stored.headers["ce-type"] == INPUT]


def later_version(log: Sequence[Stored], number: int) -> list[Stored]:
    """The log with one of its inputs in a version that this release does not know."""
    return changed(log, inputs(log)[number], ce_dataversion="2")


def unverified(report: Report) -> tuple[bool, dict[str, int], dict[str, int]]:
    return report.clean, report.unverified, report.first_unverified


@each("build", ["", NEWER, THIS])
def test_a_decision_that_shows_that_its_message_was_read_is_left_unverified(build: str) -> None:
    log = decided_by(build, later_version(asked("1", "2", apart=True).log, 1))
    report = verified([DIARIST], log)
    assert unverified(report) == (True, {UNREAD: 1}, {UNREAD: inputs(log)[1]})
    assert report.identical == 1
    assert report.unreadable == {"unknown_version": 1}


def blocking(_: Diary, message: Message) -> Iterable[Event]:
    return (blocked(0),) if isinstance(message.event, InputReceived) and message.event.text != "0" else ()


BLOCKER = deciding(blocking)
"""Blocks every input but 0, whatever it has folded before."""


def test_a_decision_of_a_newer_release_that_led_to_nothing_is_left_unverified() -> None:
    log = decided_by(NEWER, later_version(asked("0", "1", actor=BLOCKER).log, 0))
    assert unverified(verified([BLOCKER], log)) == (True, {UNREAD: 1}, {UNREAD: 1})


@each("build", ["", THIS])
def test_a_failure_that_this_release_would_have_recorded_and_that_is_missing_is_a_difference(build: str) -> None:
    recording = Recording([DIARIST])
    recording.send(InputReceived(text="1"), ce_dataversion="2")
    recording.send(InputReceived(text="1"))
    recording.settle()
    failed = next(stored for stored in recording.log if stored.subject.endswith("reflex.failed"))
    whole, lacking = recording.log, renumbered([stored for stored in recording.log if stored is not failed])
    assert unverified(verified([DIARIST], decided_by(build, whole))) == (True, {}, {})
    report = verified([DIARIST], decided_by(build, lacking))
    (difference, *_) = report.differences
    assert (difference.seq, difference.field) == (1, "count")
    assert difference.redecided.startswith(
        "1 events: forged_id.reflex.failed, since forged_id.input.received has version 2"
    )


def test_a_release_that_was_seen_to_read_such_messages_may_decide_that_one_leads_to_nothing() -> None:
    log = asked("1", "0", "1", actor=BLOCKER).log
    log = later_version(later_version(log, 0), 1)
    report = verified([BLOCKER], decided_by(THIS, log))
    assert unverified(report) == (True, {UNREAD: 2}, {UNREAD: 1})


def test_what_is_decided_on_a_state_that_lacks_such_a_message_is_left_unverified_where_it_comes_out_otherwise() -> None:
    log = decided_by(NEWER, later_version(asked("1", "0", "1", apart=True).log, 0))
    report = verified([DIARIST], log)  # its second answer tells how much it has folded
    assert unverified(report) == (True, {UNREAD: 2}, {UNREAD: 1})
    assert report.identical == 1


def test_what_another_session_decided_otherwise_is_a_difference_all_the_same() -> None:
    recording = Recording([DIARIST])
    tokens = {PARTITIONS.session_token(name): name for name in map(str, range(50))}
    first = next(iter(tokens.values()))
    second = next(
        name
        for name in map(str, range(50))
        if name != first and PARTITIONS.session_token(name) == PARTITIONS.session_token(first)
    )
    for number, session in enumerate((first, second)):
        recording.send(InputReceived(text="1"), Address("ann", session, f"exchange-{number}"))
        recording.settle()
    log = later_version(recording.log, 0)
    last = log[-1]
    log = changed(log, last.seq, data=last.data.replace(b"pattern", b"another"))
    report = verified([DIARIST], decided_by(NEWER, log))
    assert [found.exchange for found in report.differences] == ["exchange-1"]


@each("build", ["", NEWER, THIS])
def test_of_such_a_message_at_the_end_nothing_tells_whether_it_was_decided(build: str) -> None:
    log = asked("1", "0", "0", actor=BLOCKER).log
    report = verified([BLOCKER], decided_by(build, later_version(log, 1)))
    assert unverified(report) == (True, {UNREAD: 1}, {UNREAD: inputs(log)[1]})
    assert (report.pending, report.waiting) == (0, ())


def test_the_state_is_the_same_with_and_without_verification() -> None:
    for number in range(3):
        log = decided_by(NEWER, later_version(asked("1", "0", "2", "0").log, number))
        assert verified([DIARIST], log).state_hashes == verified([DIARIST], log, verify=False).state_hashes


@pytest.fixture
def upgraded(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes this release one that knows version 2 of inputs."""

    def upgrade() -> None:
        monkeypatch.setitem(CATALOGUE, INPUT, msgspec.structs.replace(CATALOGUE[INPUT], version=2))
        monkeypatch.setitem(UPCASTERS, (INPUT, 1), lambda body: body)  # type: ignore[arg-type]

    return upgrade


@pytest.mark.parametrize("build", ["", OLDER])
def test_a_failure_of_a_release_that_could_not_read_what_this_one_can_is_left_unverified(
    build: str, upgraded: Callable[[], None]
) -> None:
    log = failed_on_version_2()
    upgraded()
    reason = f"unread_then: {INPUT} (unknown_version)"
    report = verified([BLOCKER], decided_by(build, log))
    assert unverified(report) == (True, {reason: 1}, {reason: inputs(log)[0]})
    assert report.identical == 1


def test_such_a_failure_of_this_very_release_is_a_difference(upgraded: Callable[[], None]) -> None:
    log = failed_on_version_2()
    upgraded()
    (difference,) = verified([BLOCKER], decided_by(THIS, log)).differences
    assert (difference.seq, difference.field) == (1, "subject")


def test_a_failure_to_read_what_every_release_reads_is_a_difference() -> None:
    log = changed(failed_on_version_2(), 1, ce_dataversion="1")
    assert len(verified([BLOCKER], decided_by(OLDER, log)).differences) == 1


@each("build", ["", OLDER, THIS])
def test_a_body_that_an_older_release_could_not_read_is_told_from_one_that_nobody_could(build: str) -> None:
    recording = Recording([BLOCKER])
    recording.send(InputReceived(text="1"), body=b"{")
    recording.send(InputReceived(text="1"))
    recording.settle()
    now_read = changed(recording.log, 1, data=recording.log[1].data)
    report = verified([BLOCKER], decided_by(build, now_read))
    assert report.clean is (build == OLDER)
    assert report.unverified == ({f"unread_then: {INPUT} (undecodable)": 1} if build == OLDER else {})


def failed_on_version_2() -> Sequence[Stored]:
    recording = Recording([BLOCKER])
    recording.send(InputReceived(text="1"), ce_dataversion="2")
    recording.send(InputReceived(text="1"))
    recording.settle()
    assert any(stored.subject.endswith("reflex.failed") for stored in recording.log)
    return recording.log
