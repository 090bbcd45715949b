"""What an edge lets in, and what it says of what it keeps out."""

import re
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.gateway import InvalidInput, new_input
from actors.gateway.external_events import MAX_NAME, WrappedEvent
from actors.gateway.inputs import NothingSaid
from events.decoding import Recorded, decode
from events.log import Stored
from schemas.identity import event_id
from schemas.intake.limits import InputLimits
from schemas.names import MAX_NAME_BYTES, MAX_NAME_CHARACTERS, wrong_with_name
from schemas.subjects import Partitions
from schemas.vocabulary.gateway import InputReceived, Layer, Purpose
from tests.actors.strategies import texts
from tests.each import each

PARTITIONS = Partitions(agents=4, sessions=16)
NOW_NS = 1_767_323_045_678_900_000
EMPTY = Layer(role="user", content="")
THIRTY_DAYS_MS = 30 * 24 * 3600 * 1000


def an_input(text: str = "Hello", **more: Any) -> WrappedEvent:
    usual: dict[str, Any] = {"agent": "ann", "session": "morning", "partitions": PARTITIONS, "now_ns": NOW_NS}
    return new_input(text, **(usual | more))


@each(("agent", "session"), [("ann", "morning"), ("Zoë", "chat:7"), ("a", "b")])
def test_a_publisher_finds_the_partition_as_the_documentation_says(agent: str, session: str) -> None:
    def token(name: str, count: int) -> str:
        found = 2_166_136_261
        for byte in name.encode():
            found = (found ^ byte) * 16_777_619 % 2**32
        return f"{found % count:02d}"

    subject = f"log.{token(agent, PARTITIONS.agents)}.{token(session, PARTITIONS.sessions)}.input.received"
    assert an_input(agent=agent, session=session).record.subject == subject


def read_back(addressed: WrappedEvent) -> Recorded:
    record = addressed.record
    found = decode(Stored(1, NOW_NS, record.subject, record.headers, record.data))
    assert isinstance(found, Recorded)
    return found


def received(addressed: WrappedEvent) -> InputReceived:
    event = read_back(addressed).message.event
    assert isinstance(event, InputReceived)
    return event


def complaint(text: str = "Hello", **more: Any) -> str:
    with pytest.raises(InvalidInput) as refused:
        an_input(text, **more)
    assert refused.value.code == "invalid_input"
    return str(refused.value)


def test_an_input_comes_back_as_it_was_given() -> None:
    layers = (Layer(role="system", content="Be brief."), Layer(role="document", content="Once upon a time"))
    addressed = an_input(
        "Well?", layers=layers, situation="chat", label="line-7", reply_to="_INBOX.edge.7", deadline_after_ms=1_500
    )
    assert received(addressed) == InputReceived(
        text="Well?",
        layers=layers,
        situation="chat",
        label="line-7",
        reply_to="_INBOX.edge.7",
        deadline_after_ms=1_500,
    )


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=128)


@given(text=texts, agent=names, session=names)
def test_any_unicode_text_and_names_survive_the_way_into_the_log(text: str, agent: str, session: str) -> None:
    found = read_back(an_input(text, agent=agent, session=session)).message
    assert isinstance(found.event, InputReceived)
    assert (found.event.text, found.agent, found.session) == (text, agent, session)


def test_its_envelope_begins_an_exchange() -> None:
    addressed = an_input(exchange="chosen")
    envelope = read_back(addressed).envelope
    assert (addressed.exchange, envelope.exchange) == ("chosen", "chosen")
    assert envelope.id == addressed.record.headers["Nats-Msg-Id"] == event_id("chosen", "gateway", 0)
    assert (envelope.cause, envelope.cause_seq, envelope.index, envelope.count) == ("", 0, 0, 1)
    assert (envelope.source, envelope.time) == ("neuraxis/gateway", "2026-01-02T03:04:05.678900Z")


def test_exchanges_that_are_not_given_are_made_up_in_the_order_of_time() -> None:
    made = [an_input(now_ns=NOW_NS + step * 1_000_000).exchange for step in range(50)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {len(exchange) for exchange in made} == {32}


def test_the_same_exchange_has_the_same_message_id_whenever_it_is_sent() -> None:
    first, again = (an_input(exchange="chosen", now_ns=now).record.headers for now in (NOW_NS, 2 * NOW_NS))
    assert first["Nats-Msg-Id"] == again["Nats-Msg-Id"] != an_input().record.headers["Nats-Msg-Id"]


@given(agent=names, session=names)
def test_its_subject_lies_in_the_partitions_of_its_agent_and_session(agent: str, session: str) -> None:
    expected = f"log.{PARTITIONS.agent_token(agent)}.{PARTITIONS.session_token(session)}.input.received"
    assert an_input(agent=agent, session=session).record.subject == expected


def test_a_text_may_be_empty_beside_words_that_are_judged_and_nul_is_text() -> None:
    for role in ("user", "assistant", "tool", "document"):
        assert received(an_input("", layers=[Layer(role=role, content="21 degrees")])).text == ""
    assert received(an_input("a\0b")).text == "a\0b"
    assert received(an_input("", wordless=True)).text == ""


def test_an_input_in_which_nothing_is_judged_is_ignored_where_it_is_to_be_answered_and_else_refused() -> None:
    beside = ((), (EMPTY,), (Layer(role="system", content="Be brief."),), (Layer(role="tool", content=" \n"),))
    assert received(an_input("", layers=beside[2])).text == ""
    for purpose in set(get_args(Purpose)) - {"answer"}:
        for text in ("", " \n\t", "\u200b", "\ufeff \u2060", "\u2800", "\u3164", "\ufe0f\U000e0041"):
            for layers in beside:
                with pytest.raises(NothingSaid, match="nothing else to check or answer"):
                    an_input(text, layers=layers, purpose=purpose)


def test_signs_that_could_spell_words_unseen_are_left_to_the_guards() -> None:
    assert received(an_input("\u200b\u200c" * 40)).text


LIMITS = InputLimits(text_bytes=300, layer_bytes=600, layers=3, input_bytes=900)


def document(size: int) -> Layer:
    return Layer(role="document", content="x" * size)


def test_every_part_may_have_exactly_what_its_limit_says() -> None:
    an_input("x" * 300, layers=[document(600)], limits=LIMITS)
    an_input("", layers=[document(300)] * 3, limits=LIMITS)


@each(
    ("text", "sizes", "said"),
    [
        ("x" * 301, [], "the text has 301 bytes: at most 300 (gateway.limits.text_bytes); send less, or raise it"),
        (
            "",
            [10, 1_601],
            "layer 1 (document) has 1,601 bytes: at most 600 (gateway.limits.layer_bytes); send less, or raise it",
        ),
        (
            "x" * 300,
            [500, 101],
            "text and layers have 901 bytes: at most 900 (gateway.limits.input_bytes); send less, or raise it",
        ),
        ("", [1] * 4, "the input has 4 layers: at most 3 (gateway.limits.layers); join some of them"),
    ],
    named=["text", "layer", "total", "layers"],
)
def test_a_refusal_says_which_part_is_how_large_and_which_setting_limits_it(
    text: str, sizes: list[int], said: str
) -> None:
    assert complaint(text, layers=[document(size) for size in sizes], limits=LIMITS) == said


def test_bytes_are_counted_and_not_characters() -> None:
    an_input("語" * 100, limits=LIMITS)
    assert "303 bytes" in complaint("語" * 101, limits=LIMITS)


def test_by_default_a_document_of_300_kb_may_come_in_and_what_no_message_could_hold_may_not_be_set() -> None:
    an_input("Summarise this.", layers=[document(300_000)])
    assert "gateway.limits.text_bytes" in complaint("x" * 300_000)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"input_bytes": 1024 * 1024 + 1}, InputLimits)


@each(
    ("given", "said"),
    [
        ({"text": "ab\ud800c"}, "the text holds a lone surrogate at character 2"),
        ({"layers": [EMPTY, Layer(role="user", content="\udfff")]}, "the layer 1 holds a lone surrogate"),
        ({"agent": "a\ud800"}, "the agent holds a lone surrogate at character 1"),
        ({"session": "\ud800"}, "the session holds a lone surrogate at character 0"),
        ({"label": "\ud800"}, "the label holds a lone surrogate"),
        ({"situation": "\ud800"}, "the situation holds a lone surrogate"),
        ({"exchange": "\ud800"}, "the exchange holds a lone surrogate"),
    ],
)  # fmt: skip
def test_a_lone_surrogate_is_named_with_its_place(given: dict[str, Any], said: str) -> None:
    complained = complaint(**given)
    assert complained.startswith(said)
    assert complained.endswith("it is no Unicode text; repair or drop it")


@each("name", ["agent", "session"])
def test_an_input_without_agent_or_session_is_refused(name: str) -> None:
    for blank in ("", " ", "\u00a0", "\u200b", "\u3164"):
        assert complaint(**{name: blank}) == f"the {name} is empty: name the {name} this input belongs to"


@each("blank", ["", " ", "\u00a0", "\u2800"])
def test_a_blank_situation_is_refused(blank: str) -> None:
    assert "is blank: name one, or leave it out" in complaint(situation=blank)


@each("name", ["agent", "session"])
@each(
    ("control", "code"),
    [
        ("\n", "000A"),
        ("\r", "000D"),
        ("\0", "0000"),
        ("\t", "0009"),
        ("\x7f", "007F"),
        ("\x85", "0085"),
        ("\u2028", "2028"),
    ],
)
def test_a_control_character_in_a_name_is_refused_with_its_place(name: str, control: str, code: str) -> None:
    said = f"the {name} holds a control character (U+{code}) at character 2: drop it"
    assert complaint(**{name: f"an{control}n"}) == said


@each("name", ["agent", "session"])
def test_an_agent_or_session_may_be_named_at_exactly_such_length(name: str) -> None:
    an_input(**{name: "x" * MAX_NAME_CHARACTERS})
    an_input(**{name: "é" * (MAX_NAME_BYTES // 2)})
    assert complaint(**{name: "x" * 257}) == f"the {name} has 257 characters: at most 256"
    assert complaint(**{name: "語" * 171}) == f"the {name} has 513 bytes of UTF-8: at most 512"


@each("name", ["label", "situation", "exchange"])
def test_a_name_may_have_exactly_so_many_characters(name: str) -> None:
    an_input(**{name: "語" * MAX_NAME})
    assert complaint(**{name: "x" * 201}) == f"the {name} has 201 characters: at most 200"


@each("inbox", ["_INBOX.a", "_INBOX.gateway.Xy_9-z.17"])
def test_an_inbox_is_a_literal_subject_below_the_root_of_inboxes(inbox: str) -> None:
    assert received(an_input(reply_to=inbox)).reply_to == inbox


@each(
    "inbox",
    ["log.00.01.input.received", "forged_id.alert", "_INBOX", "_INBOX.", "_INBOX.a..b", "_INBOX.a.", "_INBOXES.a",
     "_INBOX.*", "_INBOX.>", "_INBOX.a b", "_INBOX.a\r\nPUB x 0", "_INBOX.a\t", "_INBOX.a\0",
     "_INBOX.\ud800", "_inbox.a", " "],
)  # fmt: skip
def test_anything_else_is_no_inbox(inbox: str) -> None:
    assert complaint(reply_to=inbox).endswith("is no inbox: it must be a literal subject below _INBOX")


@each("deadline", [1, THIRTY_DAYS_MS])
def test_a_deadline_lies_between_a_millisecond_and_thirty_days(deadline: int) -> None:
    assert received(an_input(deadline_after_ms=deadline)).deadline_after_ms == deadline


@each("deadline", [0, -1, THIRTY_DAYS_MS + 1, 2**63, 2**64, 10**30])
def test_any_other_deadline_is_refused(deadline: int) -> None:
    assert "deadline_after_ms" in complaint(deadline_after_ms=deadline)


def test_a_layer_of_an_unknown_role_is_refused() -> None:
    assert "Invalid enum value 'oracle'" in complaint(layers=[Layer(role="oracle", content="")])  # type: ignore[arg-type]


anything = st.text(st.characters(), max_size=9)


@given(text=anything, agent=anything, session=anything, reply_to=anything)
def test_whatever_is_accepted_can_be_read_back(text: str, agent: str, session: str, reply_to: str) -> None:
    try:
        addressed = an_input(text, agent=agent, session=session, reply_to=reply_to)
    except InvalidInput:
        addressed = None
    named = all(each and wrong_with_name(each) is None for each in (agent, session))
    assert (addressed is not None) == (named and not re.search("[\ud800-\udfff]", text) and not reply_to)
    if addressed is not None:
        assert received(addressed).text == text
