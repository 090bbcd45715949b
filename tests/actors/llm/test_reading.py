"""What is read of a model's words, whole or in pieces."""

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.llm.answer_text import AnswerInvalid, read_answer_text
from actors.llm.wire.refusals import overflow_in, reason_of, without_secrets
from actors.llm.wire.response_parsing import (
    MOST_NAME,
    MOST_TOKENS,
    NotTheProtocol,
    Refused,
    SurrogateJoiner,
    join_surrogates,
    read_answer,
    read_models,
)
from actors.llm.wire.thought_filter import ThoughtFilter, without_thoughts
from schemas.intake.sse import Events
from tests.each import each

ANALYSIS = "<|channel|>analysis<|message|>"


@each(
    ("written", "said"),
    [
        ("Lima.", "Lima."),
        ("  Lima.\n", "Lima."),
        ("<think>Peru</think>Lima.", "Lima."),
        ("\n<think>\n\n</think>\n\nLima.", "Lima."),
        ("<think>a</think><think>b</think>Lima.", "Lima."),
        ("<think>never ends", ""),
        ("opened by the template</think>\nLima.", "Lima."),
        ("The tag <think> opens a thought.", "The tag <think> opens a thought."),
        ("It writes <think>a</think> so.", "It writes <think>a</think> so."),
        ("<thinking>never ends", ""),
        ("<THINKING>Peru</THINKING>Lima.", "Lima."),
        ("<reasoning>\nPeru\n</reasoning>\n\nLima.", "Lima."),
        ("[THINK]Peru[/THINK]Lima.", "Lima."),
        ("◁think▷Peru◁/think▷Lima.", "Lima."),
        ("Peru◁/think▷Lima.", "Lima."),
        ("Peru[/THINK]\n\nLima.", "Lima."),
        ("<think>a<think>b</think>c</think>Lima.", "Lima."),
        ("<seed:think>Peru</seed:think>Lima.", "Lima."),
        ("<mm:think>Peru</mm:think>Lima.", "Lima."),
        ("<|begin_of_thought|>Peru<|end_of_thought|>Lima.", "Lima."),
        ("<|START_THINKING|>Peru<|END_THINKING|>Lima.", "Lima."),
        ("<|channel>thought\nPeru<channel|>Lima.", "Lima."),
        ("Here is my thought process:\nPeru.\nHere is my response:\nLima.", "Lima."),
        (
            "<|channel|>analysis<|message|>Peru<|end|><|start|>assistant<|channel|>final<|message|>Lima.<|return|>",
            "Lima.",
        ),
        ("<|start|>assistant<|channel|>final<|message|>Lima.", "Lima."),
        (f"{ANALYSIS}Peru, so", ""),
        (
            "<|channel|>commentary to=functions.find <|constrain|>json<|message|>{}<|call|>"
            "<|start|>assistant<|channel|>final <|constrain|>text<|message|>Lima.<|end|>",
            "Lima.",
        ),
        ("analysisWe need the capital.assistantfinalLima.", "Lima."),
        ("analysisWe need the capital", ""),
        ("Analysis of Peru: Lima.", "Analysis of Peru: Lima."),
        ("analysis is what I do.", "analysis is what I do."),
        ("Lima.<|im_end|>", "Lima."),
        ("Lima.</s>\n", "Lima."),
        ("Lima.\n<think>Is it?</think>\nYes.", "Lima.\nYes."),
        ("Write\n```\n<think>\n</think>\n```\nso.", "Write\n```\n<think>\n</think>\n```\nso."),
        ("The tag `</think>` closes one.", "The tag `</think>` closes one."),
        ("Here is my answer: Lima.", "Here is my answer: Lima."),
    ],
)
def test_thoughts_at_the_front_are_left_out(written: str, said: str) -> None:
    assert without_thoughts(written) == said


PARTS = "<think> </think> < th ink> Lima </ ` ``` [THI NK] [/THINK] ◁ W analysis final assistantfinal " + (
    "<|channel|> <|message|> <|end|> <|start|>"
)
pieces = st.lists(st.sampled_from([*PARTS.split(), " ", "\n"]), max_size=14)


def told_of(spoken: ThoughtFilter, parts: Iterable[str]) -> str:
    """Return what stands of a text that was told part by part, since its telling last began anew."""
    told, restarts = "", 0
    for part in parts:
        piece = spoken.take(part)
        told = piece if spoken.restarts != restarts else told + piece
        restarts = spoken.restarts
    return told + spoken.end()


@given(pieces, st.lists(st.integers(0, 60), max_size=8))
def test_a_stream_is_told_alike_however_it_is_cut(written: list[str], cuts: list[int]) -> None:
    text = "".join(written)
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    told = told_of(ThoughtFilter(), [text[start:end] for start, end in pairwise(bounds)])
    assert told_of(ThoughtFilter(), [text]) == told


@given(st.lists(st.text("ab <>", min_size=1), min_size=1))
def test_what_was_streamed_is_the_front_of_the_answer_where_the_model_opens_its_own_thoughts(parts: list[str]) -> None:
    spoken = ThoughtFilter()
    told = "".join(spoken.take(part) for part in parts)
    assert without_thoughts("".join(parts)).startswith(told.strip())


events = st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"").replace(b"\r", b"")), max_size=5)


@given(events, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(0, 200), max_size=8))
def test_a_stream_of_events_is_read_alike_however_it_is_cut(datas: list[bytes], line: bytes, cuts: list[int]) -> None:
    stream = b": a comment" + line + b"".join(b"event: x" + line + b"data: " + data + line + line for data in datas)
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    reading = Events()
    found = [event for start, end in pairwise(bounds) for event in reading.feed(stream[start:end])]
    assert [event.data for event in (*found, *reading.end())] == [data for data in datas if data.strip()]


def test_the_lines_of_one_event_are_one_text() -> None:
    assert [event.data for event in Events().feed(b"data: a\ndata:b\n\n")] == [b"a\nb"]


def test_the_last_event_needs_no_closing_line() -> None:
    reading = Events()
    assert list(reading.feed(b"data: [DONE]")) == []
    assert [event.data for event in reading.end()] == [b"[DONE]"]


@given(st.binary(max_size=60))
def test_bytes_that_are_no_answer_are_refused_and_nothing_else_is_raised(body: bytes) -> None:
    for read in (read_answer, read_models):
        try:
            read(body)
        except (NotTheProtocol, Refused):
            continue


def test_fields_of_others_are_passed_over_and_missing_ones_are_none() -> None:
    answer = read_answer(b'{"choices": [{"message": {"content": null, "tool_calls": []}}], "usage": null, "x": 1}')
    assert (answer.text, answer.finish_reason, answer.prompt_tokens) == ("", "", 0)
    assert read_answer(b'{"choices": [{"delta": null}], "error": null}').text == ""
    assert read_models(b'{"object": "list", "data": null}') == ()


def test_a_fence_round_the_json_is_taken_off() -> None:
    assert read_answer_text('```json\n{"a": 1}\n```', {"type": "object"}, 512) == '{"a": 1}'


WITHOUT_MARKS = re.compile(r"(?![\s\S]*[<\[◁])(?!analysis)(?!\s*here)", re.IGNORECASE)


@given(st.text(max_size=40).filter(lambda text: WITHOUT_MARKS.match(text) is not None))
def test_a_text_without_tags_is_the_answer_and_a_blank_one_is_none(text: str) -> None:
    if not text.strip():
        with pytest.raises(AnswerInvalid, match="EmptyAnswer"):
            read_answer_text(text, None, 512)
    else:
        assert read_answer_text(text, None, 100_000) == text.strip()


class Counted(str):
    """A text that counts how often its characters are copied by slicing."""

    copied = 0

    def __getitem__(self, key: Any) -> str:
        part = str.__getitem__(self, key)
        Counted.copied += len(part)
        return part


def test_a_thousand_thoughts_are_passed_over_without_copying_what_follows() -> None:
    text = Counted("<think></think>" * 1000 + "Lima.")
    assert without_thoughts(text) == "Lima."
    assert Counted.copied <= len(text)


def test_of_an_unfinished_thought_no_more_is_held_than_the_beginning_of_its_end() -> None:
    spoken = ThoughtFilter()
    assert "".join(spoken.take(part) for part in ["<think>", *["well, "] * 10_000]) == ""
    assert len(spoken._held) < len("</thinking>")
    assert spoken.take("</thi") + spoken.take("nk> Lima.") == "Lima."


def test_what_an_endpoint_calls_itself_is_cut() -> None:
    choice = {"message": {"content": "Lima."}, "finish_reason": "f" * 100_000}
    usage = {"prompt_tokens": 10**26, "completion_tokens": -1}
    told = read_answer(json.dumps({"model": "m" * 100_000, "choices": [choice], "usage": usage}).encode())
    assert (len(told.model), len(told.finish_reason)) == (MOST_NAME, MOST_NAME)
    assert (told.prompt_tokens, told.completion_tokens) == (MOST_TOKENS, 0)


def test_an_answer_far_longer_than_was_asked_for_is_cut():
    assert read_answer_text("word " * 1000, None, 10) == ("word " * 1000)[:160]


def test_a_structure_far_longer_than_was_asked_for_is_none():
    with pytest.raises(AnswerInvalid, match="TooLong"):
        read_answer_text('{"a": "' + "word " * 1000 + '"}', {"type": "object"}, 10)


FIELDS = "choices message delta content text type error code usage model finish_reason data id".split()  # noqa: SIM905
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
documents = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


@given(documents)
def test_no_document_is_too_odd_to_be_read_or_refused(document: Any) -> None:
    body = json.dumps(document).encode()
    for read in (read_answer, read_models):
        try:
            found = read(body)
        except (NotTheProtocol, Refused):
            continue
        json.dumps(msgspec.to_builtins(found))


@given(st.text(max_size=80), st.binary(max_size=80))
def test_no_reason_is_too_odd_to_be_kept(said: str, body: bytes) -> None:
    assert len(without_secrets(said, "sk-a-key-of-some-length")) <= 300
    reason_of(body)
    overflow_in(said)


@each("long", ["a" * 20_000, "*" * 20_000, " " * 200_000, "max tokens " * 2_000, "<" * 20_000])
def test_long_texts_are_read_in_a_moment(long: str) -> None:
    """Each of these took seconds to minutes with patterns that go back and forth."""
    without_secrets(long, "sk-a-key-of-some-length")
    overflow_in(long)
    without_thoughts(f"Lima.{long}.")
    reason_of(long.encode())


@given(st.text(max_size=30), st.integers(1, 8))
def test_halves_of_characters_are_put_together_however_they_are_cut(text: str, size: int) -> None:
    halves = text.encode("utf-8", "surrogatepass").decode("ascii", "surrogateescape")
    mending = SurrogateJoiner()
    told = "".join(mending.take(halves[at : at + size]) for at in range(0, len(halves), size))
    whole = join_surrogates(halves)
    assert whole == text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    assert told + mending.end() == whole
