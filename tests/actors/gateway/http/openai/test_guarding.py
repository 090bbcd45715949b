"""A stream as it is passed on: byte for byte where nothing is found, and ended where something is."""

import json
import random
from typing import Any

import pytest

from actors.contract.answers.prompt import Prompt
from actors.contract.answers.window import WINDOW
from actors.gateway.http.openai.answers import Decision
from actors.gateway.http.openai.passthrough.guarding import (
    LONGEST_EVENT,
    MOST_HELD,
    GuardedStream,
    Watch,
    faults_in,
    texts_in,
)
from schemas.vocabulary.gateway import Layer
from tests.each import each

RULES = " ".join(f"Rule {number}: what guest{number} had for dinner is told to nobody." for number in range(9))
PROMPT = Prompt("What did they eat?", (Layer(role="system", content=RULES),))
PLAIN = "The first ferry to the island leaves at seven in the morning, and the crossing takes forty minutes. " * 4
KEY = "AKIA" + "Q7RMWZ3KXV2T5BNE"
DECISION = Decision(exchange="e", agent="a", session="s", stage="DELIBERATIVE", action="WITHHELD", reason="secret")


def chunk(delta: dict[str, Any], index: int = 0, end: bytes = b"\n\n", **more: Any) -> bytes:
    body = {
        "id": "up-1",
        "model": "theirs",
        "choices": [{"index": index, "delta": delta, "finish_reason": None}],
        **more,
    }
    return b"data: " + json.dumps(body).encode() + end


def stream(*texts: str, end: bytes = b"\n\n", **more: Any) -> bytes:
    head = chunk({"role": "assistant", "content": ""}, end=end)
    return head + b"".join(chunk({"content": text}, end=end, **more) for text in texts) + b"data: [DONE]" + end


def passed(body: bytes, size: int | random.Random = 50) -> tuple[GuardedStream, bytes]:
    """Pass a stream on in pieces; return it, and what went out before its end."""
    guarded, out, at = GuardedStream(PROMPT, Watch()), b"", 0
    while at < len(body) and not guarded.found:
        step = size if isinstance(size, int) else size.randint(1, 300)
        out += guarded.take(body[at : at + step])
        at += step
    guarded.end()
    return guarded, out


def words(text: str) -> list[str]:
    return [f"{word} " for word in text.split()]


@each("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_a_clean_stream_goes_out_byte_for_byte_in_any_pieces(end: bytes) -> None:
    body = b": hello" + end + stream(*words(PLAIN), end=end) + chunk({}, usage={"total_tokens": 3}, end=end)[:-1]
    for size in (1, 13, 700, 100_000, random.Random(1)):
        guarded, out = passed(body, size)
        assert guarded.found == ()
        assert body.startswith(out)
        assert out + guarded.rest() == body


def test_what_is_held_back_is_no_more_than_the_window() -> None:
    guarded, told, sent = GuardedStream(PROMPT, Watch()), 0, b""
    for text in words(PLAIN):
        sent += guarded.take(chunk({"content": text}))
        told += len(text)
        assert told - guarded.sent <= WINDOW + 64 + 16
    assert guarded.sent > 0


def of_tokens(*tokens: str) -> dict[str, Any]:
    return {"content": [{"token": each, "bytes": [*each.encode()], "top_logprobs": []} for each in tokens]}


@each(
    "before",
    [
        [chunk({"reasoning_content": each}) for each in words(PLAIN)],
        [chunk({"tool_calls": [{"index": 0, "function": {"arguments": each}}]}) for each in words(PLAIN)],
        [chunk({"content": each}, 1) for each in words(PLAIN)],
        [b": still thinking\n\n"] * 3,
        [b": keep-alive\ndata: " + chunk({"content": "So "})[6:]],
    ],
    named=["reasoning", "a tool call", "another choice", "comments", "a comment at an event"],
)
def test_a_text_that_others_have_followed_no_longer_holds_them_back(before: list[bytes]) -> None:
    guarded = GuardedStream(PROMPT, Watch())
    sent = b"".join(map(guarded.take, before))
    told = [chunk({"content": each}) for each in words(PLAIN * 2)]
    sent += b"".join(map(guarded.take, told))
    held = len(b"".join((*before, *told))) - len(sent)
    assert held <= len(b"".join(told)) / 2, "no more than the content's own window is held"


def test_a_stream_that_is_held_to_its_end_is_not_held_without_bounds() -> None:
    """It begins to repeat the system prompt: from then on nothing is sent, and a stream may have no end."""
    guarded = GuardedStream(PROMPT, Watch())
    for text in words(RULES)[:40]:
        guarded.take(chunk({"content": text}))
    filler = b"data: {" + b" " * 500_000 + b"}\n\n"
    for _ in range((MOST_HELD - 500_000) // len(filler)):
        assert guarded.take(chunk({"content": "and "}) + filler) == b""
    with pytest.raises(ValueError, match="are held back until its end"):
        guarded.take(filler * 2)
    assert guarded.found == ()


def test_a_comment_that_keeps_a_connection_open_goes_out_at_once() -> None:
    guarded = GuardedStream(PROMPT, Watch())
    for comment in (b": ping\n\n", b": ping - 2025-01-01 12:00:00.123\r\n\r\n", b":\n\n"):
        assert guarded.take(comment) == comment


def test_a_key_that_stops_within_itself_is_held_however_much_other_text_follows() -> None:
    guarded = GuardedStream(PROMPT, Watch())
    sent = guarded.take(chunk({"reasoning_content": f"It is {KEY[:12]}"}))
    sent += b"".join(guarded.take(chunk({"content": each})) for each in words(PLAIN))
    assert sent == b""
    guarded.take(chunk({"reasoning_content": KEY[12:] + " " * 99}))
    assert guarded.found == ("secret",)


FINDS = {
    "a key in the content": (lambda: [chunk({"content": each}) for each in (KEY[:9], KEY[9:])], "secret"),
    "what it thinks": (lambda: [chunk({"reasoning_content": each}) for each in words(RULES)], "prompt_leak"),
    "the arguments of a call": (
        lambda: [chunk({"tool_calls": [{"index": 1, "function": {"arguments": each}}]}) for each in (KEY[:5], KEY[5:])],
        "secret",
    ),
    "another choice": (lambda: [chunk({"content": each}, 3) for each in (KEY[:9], KEY[9:])], "secret"),
    "a field of its own": (lambda: [chunk({}, more={"aside": [KEY]})], "secret"),
    "the tokens of logprobs": (
        lambda: [chunk({"content": "Lima."}, more={"logprobs": of_tokens(KEY[:5], KEY[5:9], KEY[9:])})],
        "secret",
    ),
    "alternatives to its tokens": (
        lambda: [
            chunk(
                {}, more={"logprobs": {"content": [{"token": "a", "top_logprobs": [{"token": each}, {"token": "b"}]}]}}
            )
            for each in (KEY[:9], KEY[9:])
        ],
        "secret",
    ),
    "the bytes of its tokens": (
        lambda: [
            chunk({}, more={"logprobs": {"content": [{"bytes": [*each.encode()]}]}}) for each in (KEY[:9], KEY[9:])
        ],
        "secret",
    ),
    "a name": (lambda: [chunk({}, more={KEY: 1})], "secret"),
    "an id": (lambda: [chunk({}, id=KEY)], "secret"),
    "a comment": (lambda: [b": " + KEY[:9].encode() + b"\n\n", b": " + KEY[9:].encode() + b"\n\n"], "secret"),
    "the id of an event": (lambda: [b"id: " + KEY.encode() + b"\n" + chunk({"content": "Lima."})], "secret"),
    "a field that no standard has": (lambda: [b"aside: " + KEY.encode() + b"\n\n"], "secret"),
    "JSON lines in one event": (
        lambda: [b'data: {"a": "%s"}\ndata: {"a": "%s"}\n\n' % (KEY[:9].encode(), KEY[9:].encode())],
        "secret",
    ),
    "no JSON": (lambda: [b"data: here is " + KEY.encode() + b"\n\n"], "secret"),
    "no blank line at its end": (lambda: [chunk({"content": KEY}, end=b"\n")], "secret"),
}


@each("where", FINDS)
def test_nothing_of_what_is_found_goes_out_wherever_an_endpoint_writes_it(where: str) -> None:
    made, fault = FINDS[where]
    body = stream(*words(PLAIN)).removesuffix(b"data: [DONE]\n\n") + b"".join(made())
    ways = [passed(body, size) for size in (1, 60, 100_000)]
    assert len({out for _, out in ways}) == 1, "what goes out does not depend on how it comes"
    for guarded, out in ways:
        assert guarded.found == (fault,)
        assert KEY.encode() not in out
        assert KEY[9:].encode() not in out
        assert out.count(b"guest") <= 2


def test_a_stream_that_is_ended_says_so_as_the_protocol_does() -> None:
    guarded, out = passed(stream(*words(PLAIN), KEY, *words(PLAIN)))
    assert out
    last = guarded.refusal("A notice.", DECISION)
    [event, done] = last.removesuffix(b"\n\n").split(b"\n\n")
    body = json.loads(event.removeprefix(b"data: "))
    assert (body["id"], body["model"], body["neuraxis"]["reason"]) == ("up-1", "theirs", "secret")
    assert body["choices"] == [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]
    assert done == b"data: [DONE]"
    assert guarded.rest() == b""


def test_where_nothing_was_said_yet_the_notice_is() -> None:
    guarded, out = passed(stream(f"It is {KEY}."))
    assert KEY.encode() not in out
    body = json.loads(guarded.refusal("A notice.", DECISION).split(b"\n\n")[0].removeprefix(b"data: "))
    assert body["choices"][0]["delta"]["content"] == "A notice."
    assert body["choices"][0]["finish_reason"] == "content_filter"


def test_an_event_that_never_ends_is_not_kept_for_ever() -> None:
    guarded = GuardedStream(PROMPT, Watch())
    with pytest.raises(ValueError, match="bytes"):
        guarded.take(b"data: " + b"x" * (LONGEST_EVENT + 1))


def test_ids_and_names_of_an_endpoint_are_no_texts() -> None:
    body = {"id": "a", "model": "m", "choices": [{"index": 2, "delta": {"role": "assistant", "content": "Hi"}}]}
    assert list(texts_in(body)) == [(("choices", 2, "delta", "content"), "Hi")]
    assert list(texts_in({"id": "words of its own"})) == [(("id",), "words of its own")]


def test_a_whole_answer_is_read_to_its_end_however_long_it_is() -> None:
    def answer(text: str) -> bytes:
        return json.dumps({"id": "up-1", "choices": [{"message": {"content": text}}]}).encode()

    assert faults_in(answer(PLAIN * 50 + f"The key is {KEY}."), PROMPT, Watch()) == ("secret",)
    assert faults_in(f"{PLAIN * 50} {KEY}".encode(), PROMPT, Watch()) == ("secret",)
    assert faults_in(answer(PLAIN * 50), PROMPT, Watch()) == ()
    assert faults_in(stream(*words(PLAIN), *KEY), PROMPT, Watch()) == ("secret",)


@each("between", [b"\n", b"\r\n\r\n", b"", b"\x1e", b" "])
def test_a_whole_answer_of_json_values_is_read_as_the_texts_they_make(between: bytes) -> None:
    values = [json.dumps({"message": {"content": each}}).encode() for each in (KEY[:9], KEY[9:])]
    body = between.join(values)
    assert faults_in(body, PROMPT, Watch()) == ("secret",)
    assert faults_in(body + b"\nand no JSON", PROMPT, Watch()) == ("secret",)
    assert faults_in(b"[%s]" % b",".join(values), PROMPT, Watch()) == ("secret",)
