"""Events that only time led to are checked against the deadlines that were pending."""

from dataclasses import replace
from typing import Any

from actors.registry import ACTORS
from schemas.actor import Emission
from schemas.event import encode_event
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from tests.actors.scenario import Address
from tests.each import each
from tests.events.recording import Recording, own_cause
from tests.events.replaying import changed, replaced, verified

CLOCK = ("clock", "all")


def with_deadline(ms: int = 10) -> Recording:
    recording = Recording([ACTORS["clock"]])
    recording.send(InputReceived(text="?", deadline_after_ms=ms), Address("ann", "morning", "first"))
    recording.settle()
    return recording


def test_a_deadline_that_fired_is_checked_against_those_pending() -> None:
    recording = with_deadline()
    recording.advance(20)
    report = verified(recording.actors, recording.log)
    assert report.clean
    assert (report.coverage["clock"].timers, report.coverage["clock"].facts) == (1, 0)


@each(
    ("change", "field"),
    [
        ({"ce_id": "forged"}, "id"),
        ({"ce_cause": "forged"}, "cause"),
        ({"ce_causeseq": "0"}, "count"),
        ({"ce_exchange": "second"}, "address"),
        ({"ce_session": "evening"}, "address"),
        ({"data": encode_event(ClockFired(set_by="forged_id.input.received", due_ns=7))}, "body"),
        ({"data": encode_event(ClockFired(set_by="forged_id.reflex.passed", due_ns=7))}, "body"),
    ],
    named=["id", "cause", "place", "exchange", "session", "time", "setter"],
)
def test_a_forged_deadline_is_a_difference(change: dict[str, Any], field: str) -> None:
    recording = with_deadline()
    recording.advance(20)
    report = verified(recording.actors, changed(recording.log, 2, **change))
    [difference] = report.differences
    assert (difference.actor, difference.partition, difference.seq) == ("clock", "all", 2)
    assert (difference.topic, difference.field) == ("forged_id.clock.fired", field)
    assert report.coverage["clock"].timers == 0


def test_a_deadline_that_fires_where_none_is_pending_is_a_difference() -> None:
    recording = with_deadline()
    view = recording.leaders[CLOCK]
    forged = Emission(ClockFired(set_by="forged_id.input.received", due_ns=7), "ann", "morning", "second")
    recording.advance(20)
    recording.append(view, view.spontaneous_event(own_cause(view, "nothing"), forged))
    report = verified(recording.actors, recording.log)
    [difference] = report.differences
    assert (difference.seq, difference.field, difference.redecided) == (3, "count", "0 events: ")
    assert report.coverage["clock"].timers == 1


def test_deadlines_out_of_order_are_a_difference() -> None:
    recording = Recording([ACTORS["clock"]])
    for number, ms in enumerate((10, 20)):
        recording.send(InputReceived(text="?", deadline_after_ms=ms), Address(exchange=f"exchange-{number}"))
    recording.settle()
    recording.advance(50)
    first, second = recording.log[2:]
    log = [*recording.log[:2], replaced(second, 3), replaced(first, 4)]
    assert verified(recording.actors, recording.log).coverage["clock"].timers == 2
    assert verified(recording.actors, log).differences[0].seq == 3


def test_deadlines_of_another_behaviour_are_left_unverified() -> None:
    recording = Recording([ACTORS["clock"]])
    recording.configure()
    recording.send(InputReceived(text="?", deadline_after_ms=10), Address(exchange="first"))
    recording.settle()
    recording.advance(20)
    report = verified([replace(ACTORS["clock"], behaviour=2, oldest=2, timer=lambda state: None)], recording.log)
    assert report.clean
    assert report.coverage["clock"].unverified == {"behaviour_1": 2}
