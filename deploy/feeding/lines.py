"""What a line of a feed holds: one input, or a conversation whose turns are sent one after another. Pure."""

from codecs import BOM_UTF8
from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec

from actors.gateway.input_parts import InputParts, Name, layers_of, situation_of
from schemas.intake.limits import MOST_LAYERS
from schemas.intake.strict import BadInput, convert, read, read_plain
from schemas.vocabulary.gateway import Layer, Role

Id = str | int | float | None
"""The caller's own id of a line, as it is in the file."""


MOST_TURNS = 10_000
"""Most turns of a conversation: each input holds the layers of all turns before it, in memory of its own."""


class LineFormat(StrEnum):
    """How lines are written."""

    AUTO = "auto"
    JSONL = "jsonl"
    TEXT = "text"


class Turn(msgspec.Struct, frozen=True):
    """An input of a line: what the user says, and what else is in the prompt."""

    text: str
    layers: tuple[Layer, ...] = ()


class LineInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a line, in order: one, or the user's turns of a conversation.

    ``session``, ``agent`` and ``user`` are empty where the line names none. ``turns`` is never empty.
    """

    line: int
    turns: tuple[Turn, ...]
    is_conversation: bool = False
    id: Id = None
    session: str = ""
    agent: str = ""
    user: str = ""
    situation: str = "general"


class BadLine(msgspec.Struct, frozen=True):
    """A line without a valid input: why, and the caller's id if it could be read."""

    line: int
    code: str
    detail: str
    id: Id = None


class _JsonTurn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A turn as it is in the file; its text is called ``text`` or ``content``."""

    role: Literal["user", "assistant", "system", "tool", "document"]
    text: str | None = None
    content: str | None = None


class _JsonId(msgspec.Struct):
    id: Id = None


class _JsonLine(InputParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str | msgspec.UnsetType = msgspec.UNSET
    turns: Annotated[tuple[_JsonTurn, ...], msgspec.Meta(max_length=MOST_TURNS)] | msgspec.UnsetType = msgspec.UNSET
    id: Id = None
    session: Name | None = None
    agent: Name | None = None
    user: Name | None = None


FIELDS = frozenset((*_JsonLine.__struct_fields__, *_JsonTurn.__struct_fields__))
"""The fields that lines and turns have: none of these can be ignored."""

_JSON_IN_TEXT = (
    "the line is JSON, and its file was taken for plain text by its name or first line: say which by --format"
)
_NOT_AN_INPUT = frozenset({"bad_value", "missing_field"})
"""Codes of wrong fields that a bad line reports as ``not_an_input``."""

_LAYER_ROLES: dict[str, Role] = {"tool": "tool", "document": "document"}


def format_of(name: str, first: bytes) -> LineFormat:
    """Return the format of a file, by its name, else by its first line that is not blank."""
    suffix = name.lower().rpartition(".")[2]
    if suffix in ("jsonl", "ndjson", "json"):
        return LineFormat.JSONL
    if suffix == "txt":
        return LineFormat.TEXT
    return LineFormat.JSONL if first.removeprefix(BOM_UTF8).lstrip().startswith(b"{") else LineFormat.TEXT


def parse(
    number: int, raw: bytes, line_format: LineFormat, ignored_fields: Collection[str] = (), *, guessed: bool = False
) -> LineInputs | BadLine | None:
    """Read a line; None for a blank one. ``number`` counts from 1; never raises on the line's content.

    ``ignored_fields`` are fields of lines and turns that are not part of the input. ``guessed``: the format was
    guessed. Then JSON among plain text is refused, since its fields would silently become part of the text.
    """
    if number == 1:
        raw = raw.removeprefix(BOM_UTF8)
    raw = raw.rstrip(b"\r\n")
    if not raw.strip():
        return None
    if line_format is not LineFormat.TEXT:
        return _parse_json(number, raw, ignored_fields)
    if guessed and _is_json(raw):
        return BadLine(number, "not_text", _JSON_IN_TEXT)
    return _parse_text(number, raw)


def _is_json(raw: bytes) -> bool:
    """Whether a line is a mapping or a list of mappings, as no plain text is."""
    try:
        found = msgspec.json.decode(raw) if raw.lstrip()[:1] in (b"{", b"[") else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(found, dict) or (isinstance(found, list) and bool(found) and isinstance(found[0], dict))


def _parse_text(number: int, raw: bytes) -> LineInputs | BadLine:
    if b"\0" in raw:
        return BadLine(number, "binary", "the line holds NUL bytes: this is no text file")
    try:
        return LineInputs(line=number, turns=(Turn(raw.decode()),))
    except UnicodeDecodeError as wrong:
        return BadLine(number, "not_utf8", f"byte {wrong.start + 1} of the line is not UTF-8: convert the file")


def _parse_json(number: int, raw: bytes, ignored_fields: Collection[str]) -> LineInputs | BadLine:
    try:
        json_line = _read(raw, ignored_fields)
        turns = tuple(_turns(json_line))
    except BadInput as wrong:
        code = "not_an_input" if wrong.code in _NOT_AN_INPUT else wrong.code
        remedy = "; or pass it over with --ignore" if wrong.code == "unknown_field" else ""
        return BadLine(number, code, f"{wrong}{remedy}", _id_in(raw))
    return LineInputs(
        line=number,
        turns=turns,
        is_conversation=json_line.turns is not msgspec.UNSET,
        id=json_line.id,
        session=json_line.session or "",
        agent=json_line.agent or "",
        user=json_line.user or "",
        situation=situation_of(json_line),
    )


def _read(raw: bytes, ignored_fields: Collection[str]) -> _JsonLine:
    if not ignored_fields:
        return read(raw, _JsonLine, "the line")
    line = _without(read_plain(raw, "the line"), ignored_fields)
    if isinstance(line, dict) and isinstance(line.get("turns"), list):
        line["turns"] = [_without(turn, ignored_fields) for turn in line["turns"]]
    return convert(line, _JsonLine, "the line")


def _without(value: Any, ignored_fields: Collection[str]) -> Any:
    return (
        {key: inner for key, inner in value.items() if key not in ignored_fields} if isinstance(value, dict) else value
    )


def _turns(json_line: _JsonLine) -> Iterator[Turn]:
    """Yield the inputs of a line; raises BadInput if it has none, or if its fields contradict each other."""
    standing_layers: tuple[Layer, ...] = layers_of(json_line)  # in this input and all later ones
    next_layers: tuple[Layer, ...] = ()  # in the next input alone
    has_turns = json_line.turns is not msgspec.UNSET
    if has_turns == (json_line.text is not msgspec.UNSET):
        problem = "both a text and turns" if has_turns else "neither a text nor turns"
        detail = f'the line has {problem}: write {{"text": ...}} or {{"turns": [...]}}'
        raise BadInput("bad_value" if has_turns else "missing_field", "", detail)
    if isinstance(json_line.text, str):
        yield Turn(json_line.text, standing_layers)
        return
    assert isinstance(json_line.turns, tuple)
    inputs: list[Turn] = []
    for index, turn in enumerate(json_line.turns):
        text = _text_of(index, turn)
        if turn.role == "system":
            standing_layers = (*standing_layers, Layer(role="system", content=text))
        elif turn.role in _LAYER_ROLES:
            next_layers = (*next_layers, Layer(role=_LAYER_ROLES[turn.role], content=text))
        elif turn.role == "user":
            inputs.append(Turn(text, (*standing_layers, *next_layers)))
            next_layers = ()
        if len(standing_layers) + len(next_layers) > MOST_LAYERS:
            where = f"turns[{index}]"
            raise BadInput("bad_value", where, f"{where}: an input has {MOST_LAYERS:,} layers at most: write fewer")
    if not inputs:
        raise BadInput("bad_value", "turns", "turns: no turn has the role user: there is nothing to send")
    # Layers behind the last user turn belong to no later turn, but must be judged, too.
    yield from inputs[:-1]
    yield Turn(inputs[-1].text, (*inputs[-1].layers, *next_layers))


def _text_of(index: int, turn: _JsonTurn) -> str:
    texts = [each for each in (turn.text, turn.content) if each is not None]
    if len(texts) != 1:
        problem = "both text and content: keep one of them" if texts else "neither text nor content: write its text"
        raise BadInput("bad_value", f"turns[{index}]", f"turns[{index}] has {problem}")
    return texts[0]


def _id_in(raw: bytes) -> Id:
    try:
        return msgspec.json.decode(raw, type=_JsonId).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
