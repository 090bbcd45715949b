"""Lines of CloudEvents."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.bundles import BadLine, from_line, to_line
from events.log import Stored
from tests.each import each
from tests.events.ledger.messages import INPUT, header_names, header_values, stored, wild_text

texts = [b"", b"{}", b'{"a":1}', b'{"a": 1}', b"1e5", b"1.50", b'"\n"', b"[1,\n2]"]
bodies = st.binary(max_size=60) | st.sampled_from(texts)
headers = st.dictionaries(header_names | wild_text | st.sampled_from(["Content-Type", "nx-latency-us"]), header_values)


@given(st.integers(1, 2**63 - 1), st.integers(-(2**62), 2**62), headers, bodies)
def test_any_message_comes_back_to_the_byte(seq: int, time_ns: int, headers: dict[str, str], data: bytes):
    message = Stored(seq, time_ns, "log.0.1.input.received", headers, data)
    line = to_line(message)
    assert b"\n" not in line
    assert from_line(line) == message
    assert to_line(from_line(line)) == line


def test_a_line_is_a_cloud_event():
    message = stored(7, INPUT, exchange="x 1")
    line = msgspec.json.decode(to_line(message))
    assert (line["specversion"], line["type"], line["seq"]) == ("1.0", "forged_id.input.received", "7")
    assert (line["exchange"], line["datacontenttype"]) == ("x 1", "application/json")
    assert line["data"]["topic"] == "forged_id.input.received"


@each("line", [b"", b"[]", b"{}", b'{"seq":7}', b"\xff"])
def test_what_is_no_exported_event_is_refused(line: bytes):
    with pytest.raises(BadLine):
        from_line(line)


def test_a_line_spelled_otherwise_is_refused():
    with pytest.raises(BadLine, match="spelled"):
        from_line(to_line(stored(7, INPUT)) + b" ")


@each(("name", "value"), [("seq", "0"), ("seq", str(2**63)), ("timens", str(2**63))])
def test_a_number_that_no_log_holds_is_refused(name: str, value: str):
    line = msgspec.json.decode(to_line(stored(7, INPUT))) | {name: value}
    with pytest.raises(BadLine, match="out of range"):
        from_line(msgspec.json.encode(line))
