"""A recorded message on its way through an import's stream."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.jetstream.imported import RECORDED_AT, as_recorded, import_record
from events.log import Record, Stored
from tests.each import each
from tests.events.ledger.messages import INPUT, header_names, stored

MESSAGE = stored(3, INPUT)
BROKERS = ["Nats-Msg-Id", "Nats-Batch-Id", "nats-rollup", "Nats-Expected-Last-Sequence", "Nats-Schedule"]
LOOKALIKES = [RECORDED_AT, "nx-recorded-Nats-TTL", "nx-recorded-", "NX-Recorded-at"]


def came_back(record: Record, through: int = MESSAGE.seq) -> Stored:
    """Read a message as the broker gives it: stamped with its own time, with headers of its own."""
    headers: Mapping[str, str] = {**record.headers, "Nats-Batch-Id": "the import's", "Nats-Batch-Sequence": "1"}
    subject = record.subject.replace("nx-import.", "log.", 1)
    return as_recorded(MESSAGE.seq, MESSAGE.time_ns + 10**18, subject, headers, record.data, through)


@given(st.dictionaries(header_names | st.sampled_from(BROKERS + LOOKALIKES), st.text(max_size=8)))
def test_any_headers_come_back_as_they_were(headers: dict[str, str]):
    message = msgspec.structs.replace(MESSAGE, headers=headers)
    assert came_back(import_record(message)) == message


@given(st.sampled_from(BROKERS))
def test_the_broker_acts_on_no_recorded_header(name: str):
    sent = import_record(msgspec.structs.replace(MESSAGE, headers={name: "7"})).headers
    assert not any(header.lower().startswith("nats-") for header in sent)


def test_a_message_behind_the_import_cannot_claim_a_time():
    later = came_back(import_record(MESSAGE), through=MESSAGE.seq - 1)
    assert later.time_ns == MESSAGE.time_ns + 10**18
    assert later.headers[RECORDED_AT] == str(MESSAGE.time_ns)


@each("subject", ["log.0.1", "log", "public.0.1.x", "log.0..x", "log.0.1.>", "log.0.1.a b"])
def test_a_subject_of_no_log_is_refused(subject: str):
    with pytest.raises(ValueError, match="no subject of a log"):
        import_record(msgspec.structs.replace(MESSAGE, subject=subject))
