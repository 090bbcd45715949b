"""The envelope round a decided event."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.runtime.envelopes import to_record, traceparent
from events.make_decision import Cause, address_events
from schemas.envelope import decode_headers
from schemas.event import encode_event
from schemas.identity import event_id
from schemas.intake.timestamps import rfc3339
from schemas.subjects import Partitions
from schemas.vocabulary.reflex import ReflexPassed
from tests.each import each

EXCHANGE = "0197739e0d0000112233445566778899"
NOW_NS = 1_750_000_000_123_456_789
CAUSE = Cause("the-cause", 41, 7, "ann", "morning", EXCHANGE, "00", "03")
[DECIDED] = address_events("reflex", CAUSE, (ReflexPassed(),), Partitions())


def test_a_record_says_who_decided_what_because_of_what() -> None:
    record = to_record(DECIDED, "neuraxis/w/reflex/03", "1.0+abcd", NOW_NS, 250)
    envelope = decode_headers(record.headers)
    assert envelope.id == event_id("the-cause", "reflex", 0)
    assert record.headers["Nats-Msg-Id"] == f"{envelope.id}.41"
    assert (envelope.topic, envelope.source, envelope.build) == (
        "forged_id.reflex.passed",
        "neuraxis/w/reflex/03",
        "1.0+abcd",
    )
    assert (envelope.agent, envelope.session, envelope.exchange) == ("ann", "morning", EXCHANGE)
    assert (envelope.cause, envelope.cause_seq, envelope.index, envelope.count) == ("the-cause", 41, 0, 1)
    assert envelope.time == "2025-06-15T15:06:40.123456Z"
    assert envelope.traceparent == f"00-{EXCHANGE}-{envelope.id[:16]}-01"
    assert record.headers["nx-latency-us"] == "250"
    assert record.data == encode_event(ReflexPassed())


def test_when_and_how_fast_it_was_decided_changes_neither_id_nor_body() -> None:
    slow, fast = (to_record(DECIDED, source, "", now, us) for source, now, us in (("a", 1, 900_000), ("b", 2, 1)))
    assert (slow.subject, slow.data) == (fast.subject, fast.data)
    assert slow.headers["ce-id"] == fast.headers["ce-id"]


def test_an_event_of_no_exchange_belongs_to_no_trace() -> None:
    lonely = msgspec.structs.replace(DECIDED, message=msgspec.structs.replace(DECIDED.message, exchange=""))
    assert "traceparent" not in to_record(lonely, "s", "", NOW_NS, 0).headers


@given(st.integers(0, 4_000_000_000_000_000_000))
def test_timestamps_are_rfc_3339_to_the_microsecond(time_ns: int) -> None:
    expected = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time_ns // 1000)
    spelled = rfc3339(time_ns)
    assert datetime.fromisoformat(spelled) == expected
    assert len(spelled) == len("2025-06-15T15:06:40.123456Z")


@each("exchange", ["line 1", "é", "G" * 32, "0" * 31])
def test_an_exchange_that_is_no_trace_id_still_gives_a_valid_one(exchange: str) -> None:
    version, trace, span, flags = traceparent(exchange, "f" * 32).split("-")
    assert (version, span, flags) == ("00", "f" * 16, "01")
    assert len(trace) == 32
    assert int(trace, 16) > 0
    assert traceparent(exchange, "e" * 32).split("-")[1] == trace
