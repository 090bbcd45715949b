"""Endpoints differ in every field of the protocol: no answer is lost for that, and none is asked for twice."""

import gzip
import json
import zlib
from typing import Any

import msgspec
import pytest

from schemas.effectors.model_calls import ModelCall
from tests.actors.llm import scripted
from tests.actors.llm.asking import KEY, PLAN, QUICK, Asking, call_of, over
from tests.actors.llm.scripted import ANSWER, EVENT_STREAM, JSON, Reply, fails, says, streams
from tests.each import each

STREAMED = call_of(stream_to="_INBOX.operator.1")
ONCE = msgspec.structs.replace(QUICK, attempts=1)
LIMA = "Lima, à 154 m 🌊."


def answer(**changes: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": LIMA}, "finish_reason": "stop"}
    return {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 12, "completion_tokens": 7}} | changes


def whole(document: Any, **headers: str) -> Reply:
    return Reply(
        (json.dumps(document).encode(),), headers={**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


def says_content(content: Any, **more: Any) -> Reply:
    return whole(
        answer(choices=[{"message": {"role": "assistant", "content": content, **more}, "finish_reason": "stop"}])
    )


def packed(body: bytes, encoding: str) -> Reply:
    return Reply((body,), headers={**JSON, "Content-Encoding": encoding})


def raw_deflate(body: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(body) + engine.flush()


BODY = json.dumps(answer()).encode()
UNESCAPED = json.dumps(answer(), ensure_ascii=False).encode()
TEXTS = {
    "content in parts": says_content([{"type": "text", "text": "Lima, à "}, {"type": "text", "text": "154 m 🌊."}]),
    "content in parts of other names": says_content([{"type": "output_text", "text": {"value": LIMA}}]),
    "content as one part": says_content({"type": "text", "text": LIMA}),
    "a thought among the parts": says_content([{"type": "thinking", "thinking": [{"text": "Peru"}]}, {"text": LIMA}]),
    "a thought in a field of its own": says_content(LIMA, reasoning_content="Peru, so Lima.", reasoning="Peru"),
    "a refusal in a field of its own": says_content(None, refusal=LIMA),
    "a message that is a text": whole(answer(choices=[{"message": LIMA, "finish_reason": "stop"}])),
    "a choice without a message": whole(answer(choices=[{"text": LIMA, "finish_reason": "stop"}])),
    "one choice that is no list": whole(answer(choices=answer()["choices"][0])),
    "an answer in a list": whole([answer()]),
    "a native answer": whole({"model": "m", "message": {"role": "assistant", "content": LIMA}, "done_reason": "stop"}),
    "a number for a model": whole(answer(model=7)),
    "null for a model, an error and its usage": whole(answer(model=None, error=None, usage=None)),
    "an error that says nothing": whole(answer(error={"code": 0, "message": ""})),
    "usage that is a text": whole(answer(usage="12")),
    "a status of 201": Reply((BODY,), 201),
    "a type of plain text": whole(answer(), Content_Type="text/plain"),
    "no type": Reply((BODY,), headers={}),
    "a type of a stream": Reply((BODY,), headers=EVENT_STREAM),
    "a byte order mark": Reply((b"\xef\xbb\xbf" + BODY,)),
    "blanks before it": Reply((b" \r\n\r\n" + BODY,)),
    "UTF-16": Reply((json.dumps(answer(), ensure_ascii=False).encode("utf-16"),)),
    "halves of a character as escapes": Reply((BODY.replace(b"\\ud83c\\udf0a", b"\\ud83c\\udf0a"),)),
    "gzip": packed(gzip.compress(BODY), "gzip"),
    "gzip that no header tells": Reply((gzip.compress(BODY),)),
    "gzip that a header tells of and is none": packed(BODY, "gzip"),
    "gzip in two members": packed(gzip.compress(BODY[:50]) + gzip.compress(BODY[50:]), "gzip"),
    "deflate": packed(zlib.compress(BODY), "deflate"),
    "bare deflate": packed(raw_deflate(BODY), "deflate"),
    "characters split over packets": Reply(tuple(bytes([byte]) for byte in UNESCAPED)),
    "a connection that breaks behind the answer": Reply((BODY,), then="cut"),
    "a connection that hangs behind the answer": Reply((BODY,), then="hang"),
    "NaN in a field of no account": Reply((BODY[:-1] + b', "score": NaN}',)),
}  # fmt: skip


@each("call", [call_of(), STREAMED], named=["whole", "stream"])
def test_an_answer_in_an_odd_form_is_taken_at_the_first_call(call: ModelCall) -> None:
    @over(*TEXTS.values(), settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        found = {name: await asking.ask(call) for name in TEXTS}
        assert {name: getattr(event, "text", event) for name, event in found.items()} == dict.fromkeys(TEXTS, LIMA)
        assert len(endpoint.asked) == len(TEXTS)


def chunk(text: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]} | more


def sse(*chunks: Any, end: str = "\n\n", prefix: str = "data: ", done: bool = True) -> bytes:
    told = [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in chunks]
    return "".join(f"{prefix}{each}{end}" for each in [*told, *(["[DONE]"] if done else [])]).encode()


def stream(body: bytes, *, size: int = 0, then: str = "end", headers: Any = EVENT_STREAM) -> Reply:
    pieces = tuple(body[at : at + size] for at in range(0, len(body), size)) if size else (body,)
    return Reply(pieces, headers=headers, then=then)


USAGE = {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 7}}
TWO = (chunk("Lima, à "), chunk("154 m 🌊."))
CHUNKS = (*TWO, chunk(finish="stop"))
STREAMS = {
    "as OpenAI does": stream(sse(*CHUNKS, USAGE)),
    "byte by byte": stream(sse(*CHUNKS, USAGE), size=1),
    "carriage returns and line feeds": stream(sse(*CHUNKS, end="\r\n\r\n"), size=3),
    "carriage returns alone": stream(sse(*CHUNKS, end="\r\r"), size=5),
    "no blank after the colon": stream(sse(*CHUNKS, prefix="data:")),
    "a line end between field and value": stream(sse(*CHUNKS, prefix="data:\n ")),
    "names, ids and retries": stream(sse(*CHUNKS, prefix="event: message\nid: 7\nretry: 100\ndata: ")),
    "comments": stream(b": OPENROUTER PROCESSING\n\n: \n\n" + sse(*CHUNKS)),
    "signs of life": stream(sse("", "null", "ping", "{}", *CHUNKS)),
    "a byte order mark": stream(b"\xef\xbb\xbf" + sse(*CHUNKS)),
    "data over several lines": stream(sse(*CHUNKS).replace(b'{"model"', b'{\ndata: "model"')),
    "no blank line between events": stream(sse(*CHUNKS, end="\n")),
    "choices that are null": stream(sse({"choices": None, "usage": None}, *CHUNKS, {**USAGE, "choices": None})),
    "no choices at all": stream(sse({"model": "m"}, *CHUNKS, {"usage": {"prompt_tokens": 12}})),
    "data that is null": stream(sse(*CHUNKS).replace(b"data: {", b"data: null\n\ndata: {", 1)),
    "a delta that is null": stream(sse({"choices": [{"delta": None}]}, *CHUNKS)),
    "content in parts": stream(sse(chunk([{"type": "text", "text": "Lima, à "}]), chunk("154 m 🌊.", finish="stop"))),
    "no end but its last word": stream(sse(*TWO)),
    "an end without the last word": stream(sse(*CHUNKS, done=False)),
    "neither end nor last word": stream(sse(*TWO, done=False)),
    "no blank line at the end": stream(sse(*CHUNKS, done=False).rstrip()),
    "a last word with blanks": stream(sse(*CHUNKS, " [DONE] ", done=False)),
    "a stream that never ends": stream(sse(*CHUNKS, done=False), then="hang"),
    "a connection that breaks behind the end": stream(sse(*CHUNKS, done=False), then="cut"),
    "a reason of the end with every piece": stream(sse(chunk("Lima, à ", "stop"), chunk("154 m 🌊.", "stop"))),
    "a reason that is the word null": stream(sse(chunk("Lima, à ", "null"), chunk("154 m 🌊.", "stop"))),
    "an error behind the end": stream(sse(*CHUNKS, {"error": {"message": "usage not available"}})),
    "rubbish behind the last word": stream(sse(*CHUNKS) + b"data: {rubbish\n\n"),
    "a type of JSON": stream(sse(*CHUNKS), headers=JSON),
    "no type": stream(sse(*CHUNKS), headers={}),
    "a message of all that was told at the end": stream(
        sse(*TWO, {"choices": [{"message": {"role": "assistant", "content": LIMA}, "finish_reason": "stop"}]})
    ),
    "a message of all that was told with every piece": stream(
        sse(*({"choices": [{**each["choices"][0], "message": {"content": told}}]}
              for each, told in zip(CHUNKS, ("Lima, à ", LIMA, LIMA), strict=True)))
    ),
    "a last word in small letters": stream(sse(*CHUNKS[:1], chunk("154 m 🌊.", finish="stop"), "[done]", done=False)),
    "lines of JSON": stream("\n".join(json.dumps(each) for each in CHUNKS).encode(), headers=JSON),
    "gzip": Reply((gzip.compress(sse(*CHUNKS)),), headers={**EVENT_STREAM, "Content-Encoding": "gzip"}),
    "halves of a character in two events": stream(
        sse(chunk("Lima, à 154 m "), '{"choices": [{"delta": {"content": "\\ud83c"}}]}',
            '{"choices": [{"delta": {"content": "\\udf0a."}}]}', chunk(finish="stop"))
    ),
    "bytes of a character in two events": stream(
        sse(chunk("Lima, X"), chunk("Y 154 m 🌊."), chunk(finish="stop")).replace(b"X", b"\xc3").replace(b"Y", b"\xa0")
    ),
    "a reason of the end with the text": stream(sse(chunk("Lima, à "), chunk("154 m 🌊.", finish="stop"))),
    "roles and thoughts in fields of their own": stream(
        sse({"choices": [{"delta": {"role": "assistant", "reasoning_content": "Peru"}}]}, *CHUNKS)
    ),
}  # fmt: skip


@pytest.mark.usefixtures("unheld")
def test_a_stream_in_an_odd_form_is_taken_at_the_first_call_and_told_as_it_comes() -> None:
    @over(*STREAMS.values(), settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        found, told = {}, {}
        for name in STREAMS:
            asking.published.clear()
            found[name] = await asking.ask(STREAMED)
            told[name] = "".join(partial["text"] for _, partial in asking.published)
        assert {name: getattr(event, "text", event) for name, event in found.items()} == dict.fromkeys(STREAMS, LIMA)
        assert told == dict.fromkeys(STREAMS, LIMA) | {"lines of JSON": ""}
        unsaid = {name for name, event in found.items() if getattr(event, "ended", "") != "stop"}
        assert unsaid == {"no end but its last word", "neither end nor last word"}
        assert len(endpoint.asked) == len(STREAMS)


COUNTS: tuple[tuple[Any, tuple[int, int]], ...] = (
    ({"prompt_tokens": 12.0, "completion_tokens": 7.9}, (12, 7)),
    ({"prompt_tokens": "12", "completion_tokens": " 7 "}, (12, 7)),
    ({"prompt_tokens": None, "completion_tokens": -3}, (0, 0)),
    ({"prompt_tokens": "many", "completion_tokens": True}, (0, 0)),
    ({"prompt_tokens": {"total": 12}, "completion_tokens": [7]}, (12, 0)),
    ({"input_tokens": 12, "output_tokens": 7}, (12, 7)),
    ({"prompt_tokens": 10**30, "completion_tokens": "1e3"}, (2**53 - 1, 1000)),
    ([12, 7], (0, 0)),
    ({}, (0, 0)),
)


def test_token_counts_are_read_however_they_are_written() -> None:
    told = [counts for counts, _ in COUNTS]
    streamed = [stream(sse(*CHUNKS, {"usage": counts})) for counts in told]

    @over(*(whole(answer(usage=counts)) for counts in told), *streamed, settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        found = [await asking.completed(call) for call in (call_of(), STREAMED) for _ in COUNTS]
        assert [(each.prompt_tokens, each.completion_tokens) for each in found] == [tokens for _, tokens in COUNTS] * 2


ENDS: tuple[tuple[Any, str], ...] = (
    ("stop", "stop"),
    ("length", "length"),
    ("max_tokens", "length"),
    ("MAX_TOKENS", "length"),
    ("model_length", "length"),
    ({"type": "max_tokens"}, "length"),
    ("content_filter", "content_filter"),
    ("SAFETY", "content_filter"),
    ("refusal", "content_filter"),
    ("eos", "stop"),
    ("end_turn", "stop"),
    (3, "stop"),
    ("error", "unknown"),
    ("abort", "unknown"),
    ("cancelled", "unknown"),
    ("insufficient_system_resource", "unknown"),
    (None, "unknown"),
)


def test_how_an_answer_ended_is_told_in_one_set_of_words() -> None:
    replies = [whole(answer(choices=[{"message": {"content": LIMA}, "finish_reason": word}])) for word, _ in ENDS]

    @over(*replies, settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert [(await asking.completed()).ended for _ in ENDS] == [ended for _, ended in ENDS]


def test_an_answer_far_longer_than_was_asked_for_is_cut_and_says_so() -> None:
    @over(says("word " * 1000), settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        found = await asking.completed(call_of(most_tokens=10))
        assert (len(found.text), found.finish_reason, found.ended) == (160, "stop", "length")


@each(
    ("reply", "reason", "said"),
    [
        (says("", finish="content_filter"), "answer_filtered", "finish_reason content_filter"),
        (says("<think>What is", finish="content_filter"), "answer_filtered", "finish_reason content_filter"),
        (says("<think>What is", finish="length"), "answer_invalid", "finish_reason length"),
        (says_content(None, reasoning_content="What is"), "answer_invalid", "finish_reason stop"),
    ],
)
def test_an_answer_that_its_end_left_nothing_of_says_how_it_ended(reply: Reply, reason: str, said: str) -> None:
    @over(reply, settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed()
        assert (failed.reason, failed.error, failed.said) == (reason, "EmptyAnswer", said)


@each("written", ['Here it is:\n```json\n{"skill": "recall"}\n```\nDone.', 'So: {"skill": "recall"}.'])
def test_words_around_the_json_that_was_asked_for_are_taken_off(written: str) -> None:
    @over(says(written), settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.completed(call_of(answer_schema=PLAN))).text == '{"skill": "recall"}'


def test_json_that_was_asked_for_and_is_given_as_a_structure_is_taken() -> None:
    @over(says_content({"skill": "recall"}), settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.completed(call_of(answer_schema=PLAN))).text == '{"skill": "recall"}'


@each(
    ("reply", "attempts"),
    [
        (Reply((sse(*TWO, done=False),), headers=EVENT_STREAM, then="cut"), 2),
        (stream(sse(TWO[0], {"error": {"message": "out of memory"}})), 2),
        (stream(b"event: error\ndata: the model crashed\n\n"), 2),
        (stream(sse({"error": {"message": "overloaded", "code": "503"}})), 2),
        (fails(408), 2),
        (fails(425), 2),
        (Reply((BODY[:-3],), then="cut"), 2),
    ],
    named=["cut", "an error midway", "an error by name", "503", "408", "425", "a body that is cut"],
)
def test_an_answer_that_did_not_come_is_asked_for_again(reply: Reply, attempts: int) -> None:
    @over(reply, says())
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        found = await asking.completed(STREAMED)
        assert (found.text, found.attempts) == (ANSWER, attempts)
        assert {asked.headers["idempotency-key"] for asked in endpoint.asked} == {"request-1"}


def test_a_packed_answer_of_any_size_is_not_unpacked_past_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.llm.wire.response_reading.MOST_BYTES", 100_000)

    @over(packed(gzip.compress(b" " * 50_000_000), "gzip"), settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed()
        assert (failed.reason, failed.error) == ("answer_invalid", "TooLong")


@pytest.mark.usefixtures("unheld")
def test_a_thought_that_the_template_opened_is_taken_back_and_not_told_the_next_time() -> None:
    thought = ("Peru? ", "So Lima.", "</thi", "nk>\n\n", "Li", "ma.")

    @over(streams(*thought))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.completed(STREAMED)).text == "Lima."
        told = [(partial["attempt"], partial["index"], partial["text"]) for _, partial in asking.published]
        assert told[-2:] == [(2, 0, "Li"), (2, 1, "ma.")]
        asking.published.clear()
        assert (await asking.completed(STREAMED)).text == "Lima."
        assert [partial["text"] for _, partial in asking.published] == ["Li", "ma."]


THOUGHTS: tuple[tuple[str, ...], ...] = (
    ("<thin", "king>", "Peru</thinking>", "Lima."),
    ("[TH", "INK]Peru[", "/THINK]", "\nLima."),
    ("◁", "think▷Peru◁/th", "ink▷Lima."),
    ("<reasoning>Peru", "</reasoning>Lima."),
    ("<think>Peru", "</thinking>Lima."),
    ("<thinking>Peru", "</think>Lima."),
    ("<longcat_", "think>Peru", "</longcat_think>Lima."),
    ("<reflection>Peru</reflection>", "Lima."),
    (
        "<|channel|>", "analysis", "<|message|>Peru", "<|end|><|start|>assistant<|chan", "nel|>final<|message|>Li",
        "ma.",
    ),
    ("analysis", "Peru, so.", "assistant", "finalLima."),
    ("<think>never ", "ends"),
)  # fmt: skip


@pytest.mark.usefixtures("unheld")
def test_no_thought_is_told_while_it_is_streamed_whatever_marks_it() -> None:
    @over(*(streams(*pieces) for pieces in THOUGHTS), settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        for pieces in THOUGHTS:
            asking.published.clear()
            await asking.ask(STREAMED)
            told = "".join(partial["text"] for _, partial in asking.published)
            assert told.strip() == ("" if "never " in pieces[0] else "Lima."), pieces


def test_an_endpoint_that_names_the_key_as_its_model_puts_it_into_no_event() -> None:
    @over(whole(answer(model=KEY, choices=[{"message": {"content": LIMA}, "finish_reason": KEY}])), settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert KEY not in repr(await asking.completed())


def test_an_answer_that_came_just_in_time_is_not_lost_by_waiting_for_its_usage() -> None:
    @over(stream(sse(*CHUNKS, done=False), then="hang"), settings=ONCE)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.completed(call_of(stream_to="_INBOX.x.1", timeout_ms=3_000))).text == LIMA


def test_an_error_before_a_connection_that_breaks_is_the_reason() -> None:
    @over(Reply((b'{"error": {"message": "no credit", "code": 402}}',), then="cut"))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert ((await asking.failed()).said, len(endpoint.asked)) == ("no credit; code 402", 1)


def test_a_refusal_whose_reason_never_ends_is_one_by_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.llm.client.REASON_TIMEOUT_S", 0.05)

    @over(Reply((b'{"error"',), 403, then="hang"))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed()).error == "HTTP 403"
