"""Whatever was changed in a recorded log is found by its replay, and found first."""

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from actors.registry import ACTORS
from events.errors import Misconfigured
from events.log import Stored
from tests.each import each
from tests.events.plans import conversations, few
from tests.events.recording import Recording
from tests.events.replaying import HERE, asked, changed, consumed, first_difference, renumbered, replaced, verified


@each(
    ("change", "field", "recorded", "redecided"),
    [
        ({"ce_id": "forged"}, "id", "forged", ""),
        ({"ce_cause": "another"}, "cause", "another", ""),
        ({"ce_exchange": "another"}, "address", "exchange 'another'", "exchange 'exchange-1'"),
        ({"ce_agent": "another"}, "address", "agent 'another'", "agent 'agent'"),
        ({"ce_index": "0", "ce_count": "1"}, "place", "0/1 behind 2", "1/2 behind 2"),
        ({"ce_causeseq": "1"}, "place", "1/2 behind 1", "1/2 behind 2"),
    ],
    named=["id", "cause", "exchange", "agent", "index", "cause_seq"],
)
def test_a_changed_header_is_found(change: dict[str, Any], field: str, recorded: str, redecided: str) -> None:
    recording = asked("0", "2")
    [_, second] = [stored.seq for stored, own in recording.of(HERE) if own]
    log = changed(recording.log, second, **change)
    if field == "cause":  # of the whole decision: one event of it would no longer be taken for a part
        log = changed(log, second - 1, **change)
    difference = first_difference(recording, log)
    assert (difference.seq, difference.exchange, difference.field) == (2, "exchange-1", field)
    assert recorded in difference.recorded
    assert redecided in difference.redecided


@pytest.mark.parametrize("was", [b'"cooldown_ms":', b'"settings_hash":"'], ids=["a setting", "the hash"])
def test_recorded_settings_that_do_not_fit_their_hash_are_found(was: bytes) -> None:
    recording = Recording([ACTORS["drift"]])
    recording.configure()
    assert verified(recording.actors, recording.log).clean
    log = changed(recording.log, 1, data=recording.log[0].data.replace(was, was + b"1"))
    report = verified(recording.actors, log)
    [difference] = report.differences
    assert (difference.actor, difference.seq, difference.field) == ("drift", 1, "settings_hash")
    assert (report.coverage["drift"].different, report.coverage["drift"].facts) == (1, len(log) - 1)


def test_a_moved_event_is_found() -> None:
    recording = asked("1")
    was = recording.log[1]
    elsewhere = was.subject.replace("log.00.", "log._.")
    log = [recording.log[0], msgspec.structs.replace(was, subject=elsewhere)]
    difference = first_difference(recording, log)
    assert (difference.field, difference.recorded, difference.redecided) == ("subject", elsewhere, was.subject)


BODIES = asked("1", "0", "2", "1")


def _is_same_document(one: bytes, other: bytes) -> bool:
    try:
        return bool(msgspec.json.decode(one) == msgspec.json.decode(other))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


OWN = [stored.seq for stored, own in BODIES.of(HERE) if own]


@each(
    ("was", "now"),
    [(b'"topic"', b'" opic"'), (b'"topic"', b'"\x80opic"'), (b"1.0", b"110"), (b'"span"', b'"view"')],
    named=["no topic", "no text", "another number", "a field twice"],
)
def test_a_body_that_was_changed_is_shown_as_it_is(was: bytes, now: bytes) -> None:
    for seq in OWN:
        before = BODIES.log[seq - 1].data
        if was in before:
            body = before.replace(was, now, 1)
            difference = first_difference(BODIES, changed(BODIES.log, seq, data=body))
            assert (difference.field, difference.recorded) == ("body", body.decode(errors="replace"))


@given(seq=st.sampled_from(OWN), data=st.data())
@few
def test_any_changed_byte_of_a_recorded_body_is_found(seq: int, data: st.DataObject) -> None:
    was = BODIES.log[seq - 1].data
    place = data.draw(st.integers(0, len(was) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != was[place]))
    now = was[:place] + bytes([byte]) + was[place + 1 :]
    assume(not _is_same_document(was, now))  # 1.0 is 1e0: it says the same
    difference = first_difference(BODIES, changed(BODIES.log, seq, data=now))
    assert difference.field == "body"
    assert difference.recorded == now.decode(errors="replace")
    assert difference.seq in (int(BODIES.log[seq - 1].headers["ce-causeseq"]), seq)


def test_a_changed_number_in_a_body_is_shown_beside_the_true_one() -> None:
    recording = asked("0", "1")
    log = changed(recording.log, 3, data=recording.log[2].data.replace(b'"pattern 1"', b'"pattern 7"'))
    difference = first_difference(recording, log)
    assert (difference.seq, difference.exchange, difference.field) == (2, "exchange-1", "body")
    assert difference.recorded.replace("pattern 7", "pattern 1") == difference.redecided


def test_a_body_damaged_past_reading_is_a_difference_of_its_own() -> None:
    recording = asked("1", "1", apart=True)
    report = verified(recording.actors, changed(recording.log, 2, data=b"{"))
    assert [(one.seq, one.topic, one.field) for one in report.differences[:2]] == [
        (2, "forged_id.reflex.blocked", "body"),
        (1, "forged_id.input.received", "count"),
    ]
    assert report.differences[0].redecided.startswith("it cannot be read: ")
    assert report.unreadable == {"undecodable": 1}


def test_without_verification_a_damaged_own_event_stops_the_replay() -> None:
    recording = asked("1")
    with pytest.raises(Misconfigured, match="its own event at sequence 2 cannot be read"):
        verified(recording.actors, changed(recording.log, 2, data=b"{"), verify=False)


@pytest.mark.parametrize("verify", [False, True])
def test_an_own_event_of_a_newer_release_stops_any_replay(verify: bool) -> None:
    recording = asked("1")
    with pytest.raises(Misconfigured, match="run that release or a later one"):
        verified(recording.actors, changed(recording.log, 2, ce_dataversion="2"), verify=verify)


@each("apart", [False, True])
@each("missing", range(5))
def test_a_missing_own_event_is_found_unless_it_is_the_end_of_the_log(missing: int, apart: bool) -> None:
    recording = asked("1", "0", "3", "1", apart=apart)
    own = [stored for stored, own in recording.of(HERE) if own]
    lost = own[missing]
    log = [stored for stored in recording.log if stored is not lost]
    report = verified(recording.actors, renumbered(log))
    if lost is recording.log[-1]:
        assert report.clean
        assert report.coverage["reflex"].pending == 1
        return
    difference = report.differences[0]
    assert difference.field == "count"
    assert difference.exchange == lost.headers["ce-exchange"]
    assert difference.recorded.startswith(f"{int(lost.headers.get('ce-count', 1)) - 1} events")


@pytest.mark.parametrize("lost", [1, 2])
def test_a_decision_without_its_end_is_found_even_where_no_other_follows(lost: int) -> None:
    recording = asked("3", "0")
    log = [stored for stored in recording.log if stored.headers.get("ce-index", "0") < str(lost)]
    log = renumbered([*log[:1], *log[2:], log[1]])  # the second input after what is left of the first one's answer
    assert log[-1].subject.endswith("input.received")
    report = verified(recording.actors, log)
    [difference] = report.differences
    assert (difference.seq, difference.field) == (1, "count")
    assert difference.recorded.startswith(f"{lost} events")


def test_a_log_that_ends_within_a_decision_leaves_it_pending() -> None:
    recording = asked("0", "3")
    report = verified(recording.actors, recording.log[:-1])
    assert report.clean
    assert (report.coverage["reflex"].identical, report.coverage["reflex"].pending) == (1, 1)


def extra(recording: Recording, like: Stored, **headers: Any) -> list[Stored]:
    """Return the log with another event behind it, made in the image of one that it holds."""
    last = Stored(len(recording.log) + 1, like.time_ns, like.subject, like.headers, like.data)
    return changed([*recording.log, last], last.seq, **headers)


def test_an_extra_event_of_a_decided_message_is_found() -> None:
    recording = asked("1", "1", apart=True)
    report = verified(recording.actors, extra(recording, recording.log[1], ce_id="extra"))
    [difference] = report.differences
    assert (difference.seq, difference.topic, difference.field) == (5, "forged_id.reflex.blocked", "count")
    assert (difference.recorded, difference.redecided) == ("1 events: forged_id.reflex.blocked", "0 events: ")
    assert difference.exchange == "exchange-0"


def test_an_extra_event_of_a_message_that_leads_to_nothing_is_found() -> None:
    recording = asked("1", "0", apart=True)
    report = verified(recording.actors, extra(recording, recording.log[1], ce_id="extra", ce_causeseq="3"))
    [difference] = report.differences
    assert (difference.seq, difference.topic, difference.field) == (3, "forged_id.input.received", "count")
    assert difference.redecided == "0 events: "


def test_an_event_of_no_message_is_found() -> None:
    recording = asked("1")
    report = verified(recording.actors, extra(recording, recording.log[1], ce_id="extra", ce_causeseq="77"))
    assert [(one.seq, one.field) for one in report.differences] == [(3, "count")]


def test_a_second_copy_of_an_event_is_found() -> None:
    recording = asked("2")
    report = verified(recording.actors, extra(recording, recording.log[2]))
    assert [(one.seq, one.field) for one in report.differences] == [(4, "count")]


def test_swapped_events_of_two_decisions_are_found() -> None:
    recording = asked("1", "1")
    first, second = recording.log[2:]
    log = [*recording.log[:2], replaced(second, 3), replaced(first, 4)]
    report = verified(recording.actors, log)
    assert [(one.seq, one.field) for one in report.differences] == [(1, "count"), (2, "body"), (4, "count")]
    assert report.differences[0].recorded == "0 events: "


def test_swapped_events_of_one_decision_are_found() -> None:
    recording = asked("3")
    second, third = recording.log[2:]
    log = [*recording.log[:2], replaced(third, 3), replaced(second, 4)]
    assert first_difference(recording, log).field == "count"


@pytest.mark.parametrize("seq", [3, 4])
def test_an_event_under_another_cause_is_missing_from_its_decision(seq: int) -> None:
    recording = asked("3")
    found = first_difference(recording, changed(recording.log, seq, ce_cause="forged"))
    assert (found.seq, found.field) == (1, "count")


@given(recording=conversations(), data=st.data())
@few
def test_any_change_to_an_events_identity_in_a_conversation_is_found(recording: Recording, data: st.DataObject) -> None:
    decided = [
        (key[0], stored)
        for key in recording.leaders
        for stored, own in recording.of(key)
        if own and not stored.subject.endswith((".configured", ".fired"))
    ]
    name, stored = data.draw(st.sampled_from(decided))
    header = data.draw(st.sampled_from(["ce_id", "ce_cause", "ce_exchange", "ce_session"]))
    forged: dict[str, Any] = {header: "forged"}
    report = verified([ACTORS[name]], changed(recording.log, stored.seq, **forged))
    difference = report.differences[0]
    # One of several events with another cause is none of that decision, which then lacks it.
    cause = "cause" if int(stored.headers.get("ce-count", 1)) == 1 else "count"
    expected = {"ce_id": "id", "ce_cause": cause, "ce_exchange": "address", "ce_session": "address"}[header]
    assert (difference.actor, difference.field) == (name, expected)
    assert difference.seq == int(stored.headers["ce-causeseq"])


@given(recording=conversations(), data=st.data())
@few
def test_a_damaged_log_still_accounts_for_every_message(recording: Recording, data: st.DataObject) -> None:
    seq = data.draw(st.integers(1, len(recording.log)))
    body = data.draw(st.binary(max_size=4) | st.just(recording.log[seq - 1].data))
    log = changed(recording.log, seq, data=body, ce_exchange=data.draw(st.sampled_from(["forged", "exchange-0"])))
    report = verified(recording.actors, log)
    for actor in recording.actors:
        coverage = report.coverage[actor.name]
        settled = coverage.identical + coverage.different + coverage.pending + sum(coverage.unverified.values())
        assert settled >= consumed(recording, actor)
        assert settled <= consumed(recording, actor) + len(recording.log)
