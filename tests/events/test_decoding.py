"""From what is stored to what is read: everything comes back, and nothing stored makes it raise."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from events.decoding import Recorded, Unreadable, decode, is_spontaneous
from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.event import Event
from tests.actors.scenario import Address
from tests.actors.strategies import events_of, texts
from tests.each import each
from tests.events.recording import Recording

addresses = st.builds(Address, agent=texts, session=texts, exchange=texts)
all_events = st.sampled_from([entry.event for entry in CATALOGUE.values()]).flatmap(events_of)


@given(event=all_events, address=addresses)
def test_what_was_stored_comes_back_as_it_was(event: Event, address: Address) -> None:
    stored = Recording([]).send(event, address)
    found = decode(stored)
    assert isinstance(found, Recorded)
    assert found.stored is stored
    assert type(found.message.event) is type(event)
    assert found.message.event == event
    message = found.message
    assert (message.seq, message.time_ns, message.id) == (stored.seq, stored.time_ns, found.envelope.id)
    assert (message.agent, message.session, message.exchange) == (address.agent, address.session, address.exchange)


def sample(**changed: Any) -> Stored:
    return Recording([]).send(CATALOGUE["forged_id.input.received"].sample, **changed)


@each(
    ("stored", "code", "detail"),
    [
        (sample(body=b"{}"), "undecodable", "forged_id.input.received: "),
        (sample(body=b""), "undecodable", "forged_id.input.received: "),
        (sample(body=b'{"topic":"forged_id.reflex.passed"}'), "undecodable", "forged_id.input.received: "),
        (sample(ce_type="forged_id.reflex.passed"), "undecodable", "on the subject of 'forged_id.input.received'"),
        (sample(ce_count="many"), "undecodable", "not a number"),
        (sample(ce_dataversion="7"), "unknown_version", "version 7"),
        (Stored(1, 0, "log.00.01.input.received", {"ce-id": "x"}, b"{}"), "undecodable", "'ce-type' is missing"),
        (
            Stored(1, 0, "log.00.01.no.such", {"ce-id": "x", "ce-type": "forged_id.no.such"}, b"{}"),
            "unknown_topic",
            "no.such",
        ),
        (Stored(1, 0, "forged_id.input.received.again", {}, b"{}"), "undecodable", "not a stored subject"),
        (Stored(1, 0, "log.00.01", {}, b"{}"), "undecodable", ""),
    ],
)
def test_what_cannot_be_read_says_why(stored: Stored, code: str, detail: str) -> None:
    found = decode(stored)
    assert isinstance(found, Unreadable)
    assert found.stored is stored
    assert found.code == code
    assert detail in found.detail


@given(
    subject=st.sampled_from(
        ["log.00.01.input.received", "log._._.clock.configured", "log.x", "", "log.00.01.", "a.b.c.d.e"]
    )
    | st.text(max_size=20),
    headers=st.dictionaries(
        st.sampled_from(
            ["ce-id", "ce-type", "ce-index", "ce-count", "ce-causeseq", "ce-dataversion", "ce-agent", "Nats-Msg-Id"]
        ),
        st.text(max_size=12) | st.sampled_from(["forged_id.input.received", "1", "-1", "%", "%ff%fe", "9" * 5000]),
    ),
    data=st.binary(max_size=30) | st.sampled_from([b'{"topic":"forged_id.input.received","text":"x"}', b"[" * 5000]),
)
def test_nothing_that_is_stored_makes_it_raise(subject: str, headers: dict[str, str], data: bytes) -> None:
    assert isinstance(decode(Stored(1, 0, subject, headers, data)), Recorded | Unreadable)


def test_events_of_start_and_time_are_the_spontaneous_ones() -> None:
    spontaneous = {topic for topic in CATALOGUE if is_spontaneous(topic)}
    assert {"forged_id.clock.fired", "forged_id.reflex.configured"} <= spontaneous
    assert "forged_id.reflex.passed" not in spontaneous
