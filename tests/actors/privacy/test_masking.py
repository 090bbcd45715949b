"""People's data and keys: what is recognised, what a model is shown of it, and that it is back in what it answers."""

import json
import random
import time
from typing import Any

import pytest

from actors.contract.privacy import recognising
from actors.contract.privacy.masking import MOST_PUT_BACK, Masks, StreamRestorer
from actors.contract.privacy.recognising import MOST_EXAMINED, found_in, missing_packages, recogniser, why_not_masked
from actors.contract.privacy.settings import PrivacySettings
from actors.gateway.external_events import InvalidInput
from actors.gateway.http.openai.passthrough.guarding import LONGEST_EVENT, MOST_TEXTS, split
from actors.gateway.http.openai.passthrough.masking import MaskedRequest
from actors.llm.endpoint import BadEndpoint
from deploy.config.settings import UpstreamSettings
from deploy.config.upstream_settings import upstream_of
from schemas.effectors.model_calls import Masked
from tests.each import each

KEY = "AKIA" + "Q7RMWZ3KXV2T5BNE"
PEM = "-----BEGIN RSA PRIVATE " + "KEY-----\n%s-----END RSA PRIVATE KEY-----" % (
    "MIIEowIBAAKCAQEAy8Dbv8prpJ0kKhlGeJYozo2t\n" * 9
)
WEB_TOKEN = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0"
DATA = {
    "email": ("ada.lovelace+bank@example.co.uk", "grüße@münchen.example.de"),
    "phone": ("+49 30 901820", "+1 212-555-2368", "+44 20 7946 0958"),
    "card": ("4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"),
    "iban": ("DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"),
    "ssn": ("536-90-4399",),
    "ip": ("203.0.113.77", "2001:db8:85a3:0:0:8a2e:370:7334"),
    "key": (KEY, PEM, PEM.replace("\n", "\\n"), f"{WEB_TOKEN}.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV"),
}
NONE = (
    "Version 1.2.3 of 2026-11-29 has 12345678 rows and 4111 1111 1111 1112 ids.",
    "Call me at five, or write to me at home.",
    "The order 2026-0001-7788 came on 03.04.2026 at 12:30:45 for 1,234,567.89 euro.",
    "Localhost is 127.0.0.1, and a chapter is 3.4.5.6.7 here.",
    "A UUID is 123e4567-e89b-12d3-a456-426614174000.",
)
ALL = {"mask": True}


def masks(*texts: str) -> Masks:
    return Masks(found_in, iter(texts))


@each("kind", DATA)
def test_data_of_every_kind_is_recognised_in_a_sentence(kind: str) -> None:
    for value in DATA[kind]:
        text = f"Please note {value}, and tell nobody. THE END."
        assert [(each.kind, text[each.start : each.end]) for each in found_in(text)] == [(kind, value)]


def test_what_only_looks_like_it_is_left_alone() -> None:
    assert [(text, found_in(text)) for text in NONE if found_in(text)] == []


def test_national_numbers_are_telephone_numbers_where_a_region_says_so() -> None:
    text = "Ring 030 901820 tomorrow."
    assert found_in(text) == ()
    assert [each.kind for each in found_in(text, ("DE",))] == ["phone"]


def test_a_telephone_number_behind_any_number_of_others_is_masked() -> None:
    """The library gives up after a number of tries, and says nothing."""
    number = "+49 30 901820"
    for row, count in (("17,4,2026,8\n", 600), ("12345678; ", MOST_EXAMINED // 8 + 9)):
        text = f"{row * count}Ann: {number}."
        found = [text[each.start : each.end] for each in found_in(text)]
        assert found[-1] == number, (row, count)
        assert len(found) == 1 + max(0, count - MOST_EXAMINED // 8), (row, count)


def test_every_telephone_number_of_a_row_is_masked_with_its_extension() -> None:
    rows = (
        " ".join(f"650-253-{n:04}" for n in range(40)),
        " ".join(f"(650) 253-{n:04}" for n in range(8)),
        "/".join(f"650-253-{n:04}" for n in range(12)),
        "+1 650-253-0000 ext. 12345",
    )
    for row in rows:
        found = found_in(row, ("US",))
        rest = "".join(row[at] for at in range(len(row)) if not any(each.start <= at < each.end for each in found))
        assert not any(map(str.isdigit, rest)), (row, rest)


def test_the_same_value_has_the_same_placeholder_and_the_same_prompt_the_same_mask() -> None:
    text = "From ada@example.org to bob@example.org, copy to ada@example.org."
    shown = masks(text).mask(text)
    assert shown == "From [EMAIL_1] to [EMAIL_2], copy to [EMAIL_1]."
    assert masks(text).mask(text) == shown


def test_what_was_masked_is_counted_by_kind_and_without_words() -> None:
    of = masks()
    of.mask(f"ada@example.org, bob@example.org, ada@example.org, {KEY}")
    assert of.counts == (Masked(kind="email", count=2), Masked(kind="key", count=1))


def test_a_placeholder_that_the_prompt_has_already_stands_for_nothing_else() -> None:
    text = "I was told [EMAIL_1] before; now it is ada@example.org."
    of = masks(text)
    assert of.mask(text) == "I was told [EMAIL_1] before; now it is [EMAIL_2]."
    assert of.restore("[EMAIL_1] or [EMAIL_2] or [EMAIL_7]") == "[EMAIL_1] or ada@example.org or [EMAIL_7]"


def test_values_are_put_back_into_text_that_comes_in_any_pieces() -> None:
    of = masks()
    of.mask("ada@example.org +1 212-555-2368")
    said = "Write to [EMAIL_1] [not to [EMAIL_9]], or ring [PHONE_1]. [EMAIL_"
    chance = random.Random(7)
    for _ in range(50):
        restoring, out, at = StreamRestorer(of), "", 0
        while at < len(said):
            step = chance.randint(1, 9)
            out += restoring.take(said[at : at + step])
            at += step
        assert out + restoring.end() == of.restore(said)


def body(*texts: str, **more: Any) -> bytes:
    messages = [{"role": "user", "content": text} for text in texts]
    return json.dumps({"model": "theirs", "messages": messages, **more}, indent=1).encode()


def private(raw: bytes) -> MaskedRequest:
    return MaskedRequest(raw, PrivacySettings(mask=True))


def test_a_request_without_such_data_goes_out_byte_for_byte() -> None:
    raw = body("Hello", user="ada@example.org", metadata={"by": "ada@example.org"})
    assert not private(raw)
    assert private(raw).body == raw


def test_a_request_that_is_nested_too_deeply_to_be_masked_is_refused() -> None:
    flat = body("Write to ada@example.org", further=json.loads('{"a":' * 100 + '"ada@example.org"' + "}" * 100))
    assert b"ada@" not in private(flat).body
    deep = b'{"model": "x", "further": %s"ada@example.org"%s}' % (b"[" * 900, b"]" * 900)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        private(deep)


def test_the_numbers_of_placeholders_may_be_long() -> None:
    asked = masks("")
    values = [f"{number}@example.org" for number in range(10_001)]
    masked = asked.mask(" ".join(values)).split()
    assert masked[-1] == "[EMAIL_10001]"
    assert asked.restore(masked[-1]) == values[-1]
    restorer = StreamRestorer(asked)
    assert "".join(map(restorer.take, ("to [EMAIL_1000", "1]."))) + restorer.end() == f"to {values[-1]}."


def test_every_text_that_a_model_is_shown_is_masked_and_nothing_else() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/ada@example.org.png"}}
    raw = body(
        "I am ada@example.org", tools=[{"function": {"description": "mails ada@example.org"}}], seed=4111111111111111
    )
    document = json.loads(raw)
    document["messages"].append({"role": "user", "content": [{"type": "text", "text": "+1 212-555-2368"}, picture]})
    sent = json.loads(private(json.dumps(document).encode()).body)
    assert sent["messages"][0]["content"] == "I am [EMAIL_1]"
    assert sent["messages"][1]["content"] == [{"type": "text", "text": "[PHONE_1]"}, picture]
    assert sent["tools"][0]["function"]["description"] == "mails [EMAIL_1]"
    assert sent["seed"] == 4111111111111111


def test_a_whole_answer_has_the_data_again_in_tools_arguments_too() -> None:
    of = private(body("I am ada@example.org"))
    call = {"function": {"name": "mail", "arguments": json.dumps({"to": "[EMAIL_1]"})}}
    answer = json.dumps({"choices": [{"message": {"content": "Hello [EMAIL_1]", "tool_calls": [call]}}]}, indent=2)
    found = of.restored(answer.encode()).decode()
    assert found == answer.replace("[EMAIL_1]", "ada@example.org")
    assert json.loads(json.loads(found)["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])


def chunk(content: str | None, finish: str | None = None) -> bytes:
    delta = {} if content is None else {"content": content}
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"id": "up-1", "choices": choices}).encode() + b"\n\n"


def texts(stream: bytes) -> str:
    events = [
        json.loads(each.removeprefix(b"data: ")) for each in split(stream) if each.strip() and b"DONE" not in each
    ]
    return "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])


@each("size", [1, 17, 10_000])
def test_a_stream_has_the_data_again_wherever_it_is_cut(size: int) -> None:
    of = private(body("I am ada@example.org"))
    said = ("Hello ", "[EM", "AIL", "_1", "], ", "and [", "that] is", " [EMAIL_1", "]. [")
    raw = b"".join(map(chunk, said)) + chunk(None, "stop") + b"data: [DONE]\n\n"
    out = b"".join(of.take(raw[at : at + size]) for at in range(0, len(raw), size)) + of.end()
    assert texts(out) == "Hello ada@example.org, and [that] is ada@example.org. ["
    *_, last, done, rest = split(out)
    assert (b'"stop"' in last, done, rest) == (True, b"data: [DONE]\n\n", b"")


def test_events_without_a_placeholder_come_back_byte_for_byte() -> None:
    of = private(body("I am ada@example.org"))
    raw = b": ping\r\n\r\n" + chunk("Hello [there]") + chunk(" you") + chunk(None, "stop") + b"data: [DONE]\n\n"
    assert of.take(raw) + of.end() == raw


def test_an_event_without_an_end_is_not_gathered_without_bounds() -> None:
    of = private(body("I am ada@example.org"))
    begun = chunk("x" * 1_000)[:-2]
    for _ in range(LONGEST_EVENT // len(begun)):
        assert of.take(begun) == b""
    with pytest.raises(ValueError, match="an event of the upstream's answer has more than"):
        of.take(begun)


def test_a_long_event_in_many_pieces_costs_no_more_than_its_length() -> None:
    """It was searched from its beginning with each piece: as the square of its length."""

    def spent(characters: int) -> float:
        of, raw = private(body("I am ada@example.org")), chunk("x" * characters)
        begin = time.process_time()
        assert b"".join(of.take(raw[at : at + 200]) for at in range(0, len(raw), 200)) == raw
        return time.process_time() - begin

    spent(10_000)
    assert spent(2_000_000) < 40 * max(spent(200_000), 0.005)


def test_texts_in_which_nothing_has_begun_are_not_kept() -> None:
    """A stream may have a text of its own in every event, and all of them were looked through for each event."""
    of = private(body("I am ada@example.org"))
    raw = [chunk("to [EMAIL_1]: [x] ").replace(b'"index": 0', b'"index": %d' % index) for index in range(1_000)]
    assert b"".join(map(of.take, raw)).count(b"ada@example.org") == 1_000
    assert len(of._restoring) == 0
    held = [chunk("[EMAIL").replace(b'"index": 0', b'"index": %d' % index) for index in range(1_000)]
    out = b"".join(map(of.take, held))
    assert len(of._restoring) <= MOST_TEXTS
    assert texts(out + of.end()).count("[EMAIL") == 1_000, "what is held by too many texts goes out as it is"


def test_a_placeholder_that_is_repeated_does_not_make_an_answer_without_bounds() -> None:
    block = "-----BEGIN PRIVATE " + "KEY----- " + "a1B2c3D4" * 2_000 + "-----END PRIVATE KEY-----"
    of = private(body(f"Keep {block}"))
    assert block.encode() not in of.body
    said = "[KEY_1] " * 1_000
    for out in (of.take(chunk(said)) + of.end(), private(body(f"Keep {block}")).restored(chunk(said))):
        found = texts(out)
        assert found.count(block) == MOST_PUT_BACK // len(block)
        assert found.count(block) + found.count("[KEY_1]") == 1_000
    shown = masks(block)
    shown.mask(block)
    assert len(shown.restore(said)) < MOST_PUT_BACK + len(said)


def test_a_setting_is_by_agent() -> None:
    some = PrivacySettings(agents={"clerk": True})
    assert (some.is_on, some.masks("clerk"), some.masks("other")) == (True, True, False)
    others = PrivacySettings(mask=True, agents={"clerk": False})
    assert (others.masks("clerk"), others.masks("other")) == (False, True)
    assert not PrivacySettings().is_on


def test_what_is_not_installed_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_packages() == ""
    assert "phonenumberslite-" in recogniser()
    monkeypatch.setattr(recognising, "find_spec", lambda name: None)
    assert "pip install 'neuraxis[privacy]'" in missing_packages()


@each(
    ("region", "hint"),
    [
        ("UK", "did you mean 'GB'?"),
        ("de", "did you mean 'DE'?"),
        ("Germany", "write codes such as DE, GB or US"),
        ("", ""),
    ],
)
def test_a_region_whose_numbers_would_not_be_found_is_refused(region: str, hint: str) -> None:
    """Its telephone numbers went to the models, and nothing said so."""
    settings = PrivacySettings(mask=True, regions=("US", region))
    fault = why_not_masked(settings)
    assert "which is no country's code: " in fault
    assert hint in fault
    assert why_not_masked(PrivacySettings(regions=(region,))) == "", "nothing is masked"
    assert why_not_masked(PrivacySettings(mask=True, regions=("US", "DE", "GB"))) == ""
    upstream = UpstreamSettings(url="https://llm.example/v1", privacy=settings)
    with pytest.raises(BadEndpoint, match=r"gateway\.upstream\.privacy is on, and its regions have"):
        upstream_of(upstream, {})
