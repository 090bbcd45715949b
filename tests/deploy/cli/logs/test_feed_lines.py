"""What lines of a feed say, whatever is in them."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.feeding import BadLine, LineFormat, LineInputs, Turn, format_of, parse
from schemas.vocabulary.gateway import Layer
from tests.each import each

JSONL, TEXT = LineFormat.JSONL, LineFormat.TEXT


def said(line: Any, number: int = 1) -> LineInputs | BadLine | None:
    raw = line if isinstance(line, bytes) else json.dumps(line).encode()
    return parse(number, raw, JSONL)


def complaint(line: Any) -> tuple[str, str]:
    found = said(line)
    assert isinstance(found, BadLine), found
    return found.code, found.detail


def test_a_text_is_one_input() -> None:
    assert said({"text": "Hello"}, 4) == LineInputs(line=4, turns=(Turn("Hello"),))


def test_an_empty_text_is_an_input_too() -> None:
    assert said({"text": ""}) == LineInputs(line=1, turns=(Turn(""),))


def test_a_line_may_name_itself_its_session_its_agent_its_context_and_its_layers() -> None:
    line = {
        "id": 7,
        "text": "Hello",
        "session": "s",
        "agent": "a",
        "context": "travel",
        "layers": [{"role": "document", "content": "page"}],
    }
    assert said(line) == LineInputs(
        line=1,
        turns=(Turn("Hello", (Layer(role="document", content="page"),)),),
        id=7,
        session="s",
        agent="a",
        situation="travel",
    )


def test_a_context_may_be_an_object_that_names_the_situation() -> None:
    found = said({"text": "x", "context": {"situation": "travel"}})
    assert isinstance(found, LineInputs)
    assert found.situation == "travel"


def test_absent_and_null_fields_are_the_same() -> None:
    bare = said({"text": "x"})
    nothing = dict.fromkeys(["session", "agent", "context", "layers", "documents", "tool_results"])
    assert said({"text": "x", **nothing}) == bare


def test_only_the_user_s_turns_are_inputs() -> None:
    turns = [{"role": "assistant", "text": "a"}, {"role": "user", "text": "b"}, {"role": "user", "content": "c"}]
    assert said({"id": "t", "turns": turns}) == LineInputs(
        line=1, turns=(Turn("b"), Turn("c")), is_conversation=True, id="t"
    )


def layers(*pairs: tuple[Any, str]) -> tuple[Layer, ...]:
    return tuple(Layer(role=role, content=content) for role, content in pairs)


def test_documents_and_tool_results_are_layers_of_their_roles_behind_those_that_are_written_as_layers() -> None:
    line = {
        "text": "Summarise.",
        "documents": ["page", {"content": "other page"}],
        "tool_results": ["21 degrees"],
        "layers": [{"role": "system", "content": "Be brief."}],
    }
    found = said(line)
    assert isinstance(found, LineInputs)
    assert found.turns[0].layers == layers(
        ("system", "Be brief."), ("document", "page"), ("document", "other page"), ("tool", "21 degrees")
    )


def test_what_tools_and_documents_say_between_turns_goes_with_the_user_turn_behind_it() -> None:
    turns = [
        {"role": "system", "text": "Be brief."},
        {"role": "user", "text": "one"},
        {"role": "tool", "text": "found"},
        {"role": "assistant", "text": "well"},
        {"role": "user", "text": "two"},
        {"role": "document", "text": "behind the last"},
    ]
    found = said({"turns": turns})
    assert isinstance(found, LineInputs)
    system = layers(("system", "Be brief."))
    assert found.turns == (
        Turn("one", system),
        Turn("two", (*system, *layers(("tool", "found"), ("document", "behind the last")))),
    )


def test_a_line_s_layers_go_with_every_turn_of_it() -> None:
    found = said({"turns": [{"role": "user", "text": "one"}, {"role": "user", "text": "two"}], "documents": ["page"]})
    assert isinstance(found, LineInputs)
    assert [turn.layers for turn in found.turns] == [layers(("document", "page"))] * 2


@each(
    ("line", "where"),
    [
        ({"text": "x", "documnets": ["page"]}, "there is no field 'documnets': did you mean 'documents'?"),
        ({"text": "x", "Documents": ["page"]}, "there is no field 'Documents': did you mean 'documents'?"),
        ({"text": "x", "toolResults": ["page"]}, "there is no field 'toolResults': did you mean 'tool_results'?"),
        ({"text": "x", "layers": [{"role": "tool", "contents": ""}]}, "layers[0]: there is no field 'contents'"),
        ({"text": "x", "context": {"situaton": "travel"}}, "context: there is no field 'situaton': did you mean"),
        ({"text": "x", "documents": [{"text": "page"}]}, "documents[0]: there is no field 'text'"),
        ({"turns": [{"role": "user", "txt": "x"}]}, "turns[0]: there is no field 'txt': did you mean 'text'?"),
        ({"text": "x", "kind": 3}, "there is no field 'kind': there are context, layers, documents, tool_results"),
    ],
)
def test_a_field_that_is_not_known_is_refused_with_the_nearest_one(line: Any, where: str) -> None:
    code, detail = complaint(line)
    assert code == "unknown_field"
    assert detail.startswith(where)
    assert detail.endswith("; or pass it over with --ignore")


def test_fields_that_are_named_as_no_input_s_are_passed_over_in_lines_and_turns() -> None:
    line = {"label": "bad", "turns": [{"role": "user", "text": "x", "tag": 1}]}
    found = parse(1, json.dumps(line).encode(), JSONL, {"label", "tag"})
    assert found == LineInputs(line=1, turns=(Turn("x"),), is_conversation=True)


@pytest.mark.parametrize(
    "line", ['{"text": "x", "text": "y"}', '{"text": "x", "layers": [{"role": "tool", "content": "", "content": "x"}]}']
)
def test_a_key_that_stands_twice_is_refused(line: str) -> None:
    assert complaint(line.encode())[0] == "key_twice"


@each("raw", [b"", b"\n", b"  \r\n", b"\xef\xbb\xbf\n"])
def test_a_blank_line_says_nothing(raw: bytes) -> None:
    assert parse(1, raw, JSONL) is None
    assert parse(1, raw, TEXT) is None


@each(
    ("line", "code", "detail"),
    [
        (b"hello", "not_json", "malformed"),
        (b'["text"]', "not_an_input", "Expected `object`"),
        ({"txet": "x"}, "unknown_field", "there is no field 'txet': did you mean 'text'?"),
        ({}, "not_an_input", "neither a text nor turns"),
        ({"text": "x", "session": ""}, "not_an_input", "session: Expected `str` of length >= 1"),
        ({"text": "x", "context": {"situation": ""}}, "not_an_input", "context.situation: Expected `str` of length"),
        ({"turns": [{"role": "User", "text": "x"}]}, "not_an_input", "turns[0].role: Invalid enum value 'User'"),
        ({"turns": [{"role": "user"}]}, "not_an_input", "turns[0] has neither text nor content"),
        ({"turns": [{"role": "user", "text": "a", "content": "b"}]}, "not_an_input", "turns[0] has both text and"),
        ({"turns": [{"text": "a"}]}, "not_an_input", "turns[0].role is missing: turns[0] needs role"),
        (b'{"text": "x", "id": 1e999}', "not_an_input", "Number out of range"),
        ({"text": "x", "turns": []}, "not_an_input", "both a text and turns"),
        ({"turns": [{"role": "assistant", "text": "x"}]}, "not_an_input", "no turn has the role user"),
        ({"text": 5}, "not_an_input", "text: Expected `str`, got `int`"),
        ({"text": "x", "layers": [{"role": "boss", "content": ""}]}, "not_an_input", "layers[0].role: Invalid enum"),
        (b'{"text": "\\ud800 x"}', "lone_surrogate", "no Unicode text"),
        (b'{"text": "\\ud83d"}', "lone_surrogate", "no Unicode text"),
        (b'{"text": "\xff"}', "not_utf8", "not UTF-8"),
        (b'{"text": "a\x00b"}', "not_json", "invalid"),
        (b'{"text":' + b"[" * 100_000, "not_an_input", "text: Expected"),
        (b'{"text": "x", "deep":' + b"[" * 100_000, "unknown_field", "there is no field 'deep'"),
    ],
)
def test_a_line_that_says_no_input_is_told_why(line: Any, code: str, detail: str) -> None:
    found, told = complaint(line)
    assert found == code
    assert detail in told


def test_a_pair_of_surrogates_is_a_character() -> None:
    found = said(b'{"text": "\\ud83d\\ude00"}')
    assert isinstance(found, LineInputs)
    assert found.turns == (Turn("😀"),)


def test_a_complaint_names_the_line_by_its_own_id_where_that_can_be_read() -> None:
    found = said({"id": "seven", "text": 5}, 3)
    assert isinstance(found, BadLine)
    assert (found.line, found.id) == (3, "seven")


def test_plain_text_is_taken_as_it_is() -> None:
    assert parse(2, b'  {"text": "no JSON here"}  \r\n', TEXT) == LineInputs(
        line=2, turns=(Turn('  {"text": "no JSON here"}  '),)
    )


@each(
    ("name", "first", "form"),
    [
        ("a.jsonl", b"hello", JSONL),
        ("a.JSON", b"hello", JSONL),
        ("a.ndjson", b"", JSONL),
        ("a.txt", b'{"text": ""}', TEXT),
        ("-", b'{"text": ""}', JSONL),
        ("-", b'\xef\xbb\xbf {"text": ""}', JSONL),
        ("-", b"hello", TEXT),
        ("inputs", b"[hello]", TEXT),
    ],
)
def test_a_file_s_form_is_told_by_its_name_or_its_first_line(name: str, first: bytes, form: LineFormat) -> None:
    assert format_of(name, first) is form


@each("line", [b'{"text": "a", "documnets": ["b"]}', b'[{"text": "a"}, {"text": "b"}]', b" {}"])
def test_json_in_a_file_that_was_taken_for_plain_text_is_refused(line: bytes) -> None:
    found = parse(2, line, TEXT, guessed=True)
    assert isinstance(found, BadLine)
    assert found.code == "not_text"
    assert "--format" in found.detail
    assert isinstance(parse(2, line, TEXT), LineInputs), "whoever says that it is text is believed"


@each("line", [b"{not json}", b"[1] is a footnote", b"[]", b"12", b'"quoted"', b"null"])
def test_plain_text_may_begin_as_json_does(line: bytes) -> None:
    assert isinstance(parse(2, line, TEXT, guessed=True), LineInputs)


def test_a_line_cannot_make_more_layers_of_itself_than_an_input_may_have() -> None:
    turns = [{"role": role, "text": "x"} for _ in range(2_000) for role in ("system", "user")]
    tracemalloc.start()
    found = parse(1, json.dumps({"turns": turns}).encode(), JSONL)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(found, BadLine)
    assert found.detail == "turns[2048]: an input has 1,024 layers at most: write fewer"
    assert most < 16 * 1024**2, "each turn has all layers before it: twice as many take four times as much"


def test_a_line_has_so_many_turns_and_no_more() -> None:
    turns = [{"role": "user", "text": "x"}] * 10_000
    assert isinstance(parse(1, json.dumps({"turns": turns}).encode(), JSONL), LineInputs)
    found = parse(1, json.dumps({"turns": [*turns, turns[0]]}).encode(), JSONL)
    assert isinstance(found, BadLine)
    assert "turns" in found.detail


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
near_lines = st.dictionaries(
    st.sampled_from(["text", "turns", "id", "session", "agent", "context", "layers", "role", "x"]), json_values
)


@given(st.binary(max_size=200) | near_lines.map(lambda line: json.dumps(line).encode()), st.sampled_from(LineFormat))
def test_no_line_is_too_strange_to_be_read(raw: bytes, form: LineFormat) -> None:
    found = parse(1, raw, form)
    if isinstance(found, LineInputs):
        assert found.turns
        "".join(turn.text for turn in found.turns).encode()  # what passes is Unicode text
    elif found is not None:
        assert found.detail
