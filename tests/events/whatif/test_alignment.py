"""One event more or less in a decision: those beside it keep the ids, and all that follows from them, of the record."""

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.registry import ACTORS
from actors.runtime.envelopes import to_record
from deploy.replaying.what_if import changes_of
from events.log import Stored
from events.make_decision import Cause, NewEvent, address_events
from events.replay.whatif import RecordIndex, RecordIndexer, Report
from events.replay.whatif.alignment import with_recorded_ids
from schemas.event import Event, topic_of
from schemas.vocabulary.patterns import PatternSet, PatternsImported
from schemas.vocabulary.reflex import ReflexLibraryChanged, ReflexPassed
from tests.events.recording import PARTITIONS
from tests.events.whatif.asking import whatif, with_model

TALK = [
    ("morning", "Tell me about the harbour, please"),
    ("evening", "What is the capital of Peru?"),
    ("evening", "Where does the ferry go?"),
]
INERT = PatternSet(name="inert", action="BLOCK", confidence=0.9, signatures=("quartz marmalade",))
PERU = PatternSet(name="peru", action="BLOCK", confidence=0.9, signatures=("the capital of peru",))


def with_library(log: Sequence[Stored], *sets: PatternSet) -> Report:
    """Decide a log anew with these imported patterns instead of the recorded ones."""
    changes = changes_of({}, PARTITIONS, patterns=sets)
    return whatif(log, dropped=changes.dropped, added=changes.added)


def assert_only_notices_differ(report: Report) -> None:
    assert (report.changed, report.reworded, report.held, report.without_end) == (0, 0, 0, {})
    assert set(report.effects) == {"reused"}
    for name, tally in report.tallies.items():
        assert (tally.different, tally.gone, tally.new) == (0, 0, 0) or name == "reflex"


def test_a_library_that_matches_nothing_changes_nothing():
    report = with_library(with_model(TALK).log, INERT)
    assert_only_notices_differ(report)
    assert (report.tallies["reflex"].new, report.tallies["reflex"].identical) == (2, 2 * len(TALK)), (
        "a notice a session"
    )


def test_taking_out_a_library_that_matched_nothing_changes_nothing():
    log = with_model(TALK, orders=[PatternsImported(name="house", sets=(INERT,))]).log
    report = whatif(log, dropped=frozenset({topic_of(PatternsImported)}))
    assert_only_notices_differ(report)
    assert (report.tallies["reflex"].gone, report.tallies["reflex"].identical) == (2, 2 * len(TALK))


def test_a_library_that_matches_nothing_changes_nothing_beside_decisions_of_another_behaviour():
    older = [
        msgspec.structs.replace(each, data=each.data.replace(b'"behaviour":', b'"behaviour":9'))
        if each.subject.endswith(".arbiter.configured")
        else each
        for each in with_model(TALK).log
    ]
    assert_only_notices_differ(with_library(older, INERT))


def test_a_library_that_blocks_is_told_by_the_verdict_and_not_by_its_notice():
    report = with_library(with_model(TALK[:2]).log, PERU)
    (example,) = report.examples
    assert example.fields["topic"] == ("forged_id.reflex.passed", "forged_id.reflex.blocked")


EVENTS: dict[str, Event] = {
    "a": ReflexPassed(),
    "b": ReflexLibraryChanged(profile="seed", imports=(), signatures=1, fingerprint=""),
}
CAUSE = Cause("cause", 1, 0, "ann", "morning", "exchange-0", "00", "00")


def test_events_beside_one_more_take_the_places_they_have_on_record():
    assert places("ab", recorded="b") == [1, 0]
    assert places("ba", recorded="a") == [1, 0]


def test_events_behind_one_less_take_the_places_they_have_on_record():
    assert places("a", recorded="ba") == [1]


def test_an_event_of_another_kind_takes_the_place_of_the_one_in_whose_stead_it_was_decided():
    assert places("b", recorded="a") == [0]
    assert places("bb", recorded="aa") == [0, 1]


@given(decided=st.text("ab", max_size=5), recorded=st.text("ab", max_size=5))
def test_every_event_has_a_place_of_its_own_and_its_kinds_first_as_far_as_there_are_any(decided: str, recorded: str):
    found = places(decided, recorded)
    assert len(set(found)) == len(decided)
    behind = sorted(place for place in found if place >= len(recorded))
    assert behind == list(range(len(recorded), len(recorded) + len(behind)))
    alike = sum(place < len(recorded) and recorded[place] == kind for kind, place in zip(decided, found, strict=True))
    assert alike == sum(min(decided.count(kind), recorded.count(kind)) for kind in "ab")


def places(decided: str, recorded: str) -> list[int]:
    """Return the places among recorded events that decided ones are given, both by letter."""
    past = past_of(address_events("reflex", CAUSE, [EVENTS[each] for each in recorded], PARTITIONS))
    made = address_events("reflex", CAUSE, [EVENTS[each] for each in decided], PARTITIONS)
    found = with_recorded_ids(made, ("reflex",), past)
    ids = [each.message.id for each in address_events("reflex", CAUSE, [EVENTS["a"]] * 10, PARTITIONS)]
    return [ids.index(each.message.id) for each in found]


def past_of(recorded: Sequence[NewEvent]) -> RecordIndex:
    reader = RecordIndexer([ACTORS["reflex"]], PARTITIONS)
    for seq, one in enumerate(recorded, 2):
        record = to_record(one, "test", "", 0, 7)
        reader.feed(Stored(seq, 0, record.subject, dict(record.headers), record.data))
    return reader.finish()
