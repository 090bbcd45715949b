"""A log that was recorded before a field was added verifies, and what the field says today is told apart."""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from actors.registry import ACTORS
from events.log import Stored
from events.replay.body_comparison import _NOT_RECORDED, _note_fields, _projected
from events.replay.replay import Report
from schemas.catalogue import CATALOGUE
from schemas.entry import Entry
from schemas.vocabulary.memory import Familiarity, MemoryRecalled
from tests.each import each
from tests.events.releases import LaterRelease, later
from tests.events.replaying import verified
from tests.events.whatif.asking import live, whatif

__all__ = ["later"]

TALK = [("noon", "Hello!"), ("noon", "What is the capital of Peru?"), ("evening", "Thanks!")]
RECALLED = "forged_id.memory.recalled"
PASSED = "forged_id.reflex.passed"


def again(log: Sequence[Stored]) -> Report:
    return verified(ACTORS.values(), log)


def rewritten(log: Sequence[Stored], topic: str, change: Callable[[dict], dict], which: int = 0) -> list[Stored]:
    """Return a log in which one body on a subject was changed."""
    seqs = [each.seq for each in log if each.subject.endswith(topic.removeprefix("forged_id"))]
    return [
        msgspec.structs.replace(each, data=msgspec.json.encode(change(msgspec.json.decode(each.data))))
        if each.seq == seqs[which]
        else each
        for each in log
    ]


def without(*names: str) -> Callable[[dict], dict]:
    return lambda body: {name: value for name, value in body.items() if name not in names}


def with_language(later: LaterRelease) -> None:
    later.event(MemoryRecalled, [("language", str, "")], lambda body: body | {"language": "en"})


def test_a_field_that_is_added_with_a_default_leaves_old_logs_verified(later: LaterRelease) -> None:
    log = live(TALK).log
    before = again(log)
    with_language(later)
    report = again(log)
    assert report.clean, report.differences
    assert (report.identical, report.unverified) == (before.identical, {})
    assert report.coverage["memory"].new_fields == {f"{RECALLED}.language": 3}
    assert before.coverage["memory"].new_fields == {}


def test_a_field_that_is_added_deeper_is_new_there_and_no_difference(later: LaterRelease) -> None:
    sharper = msgspec.defstruct(
        "Familiarity", [("sharpness", float, 1.0)], bases=(Familiarity,), frozen=True, kw_only=True
    )
    log = live(TALK).log
    later.event(
        MemoryRecalled,
        [("familiarity", sharper)],
        lambda body: body | {"familiarity": body["familiarity"] | {"sharpness": 2.0}},
    )
    report = again(log)
    assert report.clean, report.differences
    assert report.coverage["memory"].new_fields == {f"{RECALLED}.familiarity.sharpness": 3}


def test_settings_of_an_older_version_verify_though_an_upcaster_changes_them(later: LaterRelease) -> None:
    log = live(TALK).log
    before = again(log)
    for actor in list(ACTORS.values()):
        later.version(actor.configured, lambda body: body | {"settings": body["settings"] | {"renamed": "since"}})
    report = again(log)
    assert report.clean, report.differences
    assert {name: each.facts for name, each in report.coverage.items()} == {
        name: each.facts for name, each in before.coverage.items()
    }
    forged = again(rewritten(log, "forged_id.router.configured", lambda body: body | {"settings": {"pr": "zen"}}))
    (found,) = forged.differences
    assert (found.actor, found.field) == ("router", "settings_hash")


def test_nothing_changes_in_a_what_if_with_the_recorded_settings_when_a_field_was_added(later: LaterRelease) -> None:
    log = live(TALK).log
    with_language(later)
    report = whatif(log)
    assert (report.changed, report.reworded, report.held) == (0, 0, 0)
    assert all((one.different, one.gone, one.new) == (0, 0, 0) for one in report.tallies.values())
    assert report.tallies["memory"].new_fields == {f"{RECALLED}.language": 3}


def test_a_body_that_today_s_release_wrote_is_compared_with_the_added_field(later: LaterRelease) -> None:
    with_language(later)
    forged = rewritten(live(TALK).log, RECALLED, lambda body: body | {"language": "de"})
    [difference] = again(forged).differences
    assert (difference.field, difference.actor) == ("body", "memory")
    assert '"language":"de"' in difference.recorded
    assert '"language":"en"' in difference.redecided


@pytest.mark.parametrize("change", [
    lambda body: body | {"familiarity": {**body["familiarity"], "context_warmth": 0.123}},
    lambda body: body | {"nobody_knows": 1},
    lambda body: body | {"familiarity": {**body["familiarity"], "nobody_knows": 1}},
], ids=["forged", "extra", "extra_deeper"])  # fmt: skip
def test_a_recorded_field_that_is_forged_or_too_many_is_found_beside_a_new_one(
    later: LaterRelease, change: Callable[[dict], dict]
) -> None:
    forged = rewritten(live(TALK).log, RECALLED, change)
    with_language(later)
    report = again(forged)
    difference = next(one for one in report.differences if one.actor == "memory")
    assert difference.field == "body"
    assert "language" not in difference.recorded + difference.redecided, "what is new is told apart"


def test_a_required_field_that_is_missing_is_found() -> None:
    report = again(rewritten(live(TALK).log, RECALLED, without("familiarity")))
    assert any(one.actor == "memory" and "cannot be read" in one.redecided for one in report.differences)


def test_a_field_with_a_default_that_its_writer_has_written_before_is_missing_and_not_new() -> None:
    log = live([("noon", "Hello!"), ("noon", "Hello again!")]).log
    [difference] = again(rewritten(log, PASSED, without("unread"), which=1)).differences
    assert (difference.field, difference.seq > 0) == ("body", True)
    assert "unread" not in difference.recorded
    assert '"unread":[]' in difference.redecided


def test_a_field_that_nobody_was_seen_to_write_is_counted_as_new_and_not_passed_over_in_silence() -> None:
    report = again(rewritten(live([("noon", "Hello!")]).log, PASSED, without("unread")))
    assert report.clean
    assert report.coverage["reflex"].new_fields == {f"{PASSED}.unread": 1}


def test_an_upcast_event_verifies_and_changes_nothing(later: LaterRelease) -> None:
    log = live(TALK).log

    def count(body: dict) -> dict:
        return body | {"found": len(body["recollections"])}

    later.version(MemoryRecalled, count, [("found", int)])
    report = again(log)
    assert report.clean, report.differences
    assert (report.unverified, report.coverage["memory"].new_fields) == ({}, {})
    unchanged = whatif(log)
    assert (unchanged.changed, unchanged.reworded, unchanged.held) == (0, 0, 0)
    forged = again(rewritten(log, RECALLED, lambda body: body | {"found": 9})).differences
    assert forged == (), "what the step makes of a body counts, not what an older writer put there"
    forged = again(rewritten(log, RECALLED, lambda body: body | {"nobody_knows": 9})).differences
    assert ("memory", "body") in {(one.actor, one.field) for one in forged}


def test_how_a_body_is_written_down_says_nothing(later: LaterRelease) -> None:
    log = live(TALK).log
    spaced = rewritten(log, RECALLED, lambda body: dict(reversed(body.items())))
    assert again(spaced).clean


@each("entry", CATALOGUE.values(), named=lambda entry: entry.topic)
def test_a_body_that_came_out_the_same_is_noted_with_all_fields_that_a_comparison_finds(entry: Entry) -> None:
    compared: set[str] = set()
    _projected(_NOT_RECORDED, entry.sample, "", compared, set())
    noted: set[str] = set()
    _note_fields(entry.sample, "", noted)
    assert noted == compared
