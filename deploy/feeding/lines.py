"""What a line of a feed holds: one input, or a conversation whose turns are sent one after another. Pure."""

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Any, Literal

import msgspec

from actors.gateway.input_parts import InputParts, Name, layers_of, situation_of
from schemas.intake.strict import BadInput, convert, read, read_plain
from schemas.vocabulary.gateway import Layer, Role

Id = str | int | float | None
"""The caller's own id of a line, as it was given."""


class LineFormat(StrEnum):
    """How lines are written."""

    AUTO = "auto"
    JSONL = "jsonl"
    TEXT = "text"


class Turn(msgspec.Struct, frozen=True):
    """An input of a line: what the user says, and what else is in the prompt."""

    text: str
    layers: tuple[Layer, ...] = ()


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a line, in order: one, or the user's turns of a conversation.

    ``session``, ``agent`` and ``user`` are empty where the line names none. ``turns`` is never empty; ``many`` says
    that the line is a conversation.
    """

    line: int
    turns: tuple[Turn, ...]
    many: bool = False
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


class _Turn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A turn as it is written; its text may have either of two names."""

    role: Literal["user", "assistant", "system", "tool", "document"]
    text: str | None = None
    content: str | None = None


class _OnlyId(msgspec.Struct):
    id: Id = None


class _Written(InputParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str | msgspec.UnsetType = msgspec.UNSET
    turns: tuple[_Turn, ...] | msgspec.UnsetType = msgspec.UNSET
    id: Id = None
    session: Name | None = None
    agent: Name | None = None
    user: Name | None = None


FIELDS = frozenset((*_Written.__struct_fields__, *_Turn.__struct_fields__))
"""The fields that lines and turns have: none of these can be ignored."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_JSON_IN_TEXT = (
    "the line is JSON, and its file was taken for plain text by its name or first line: say which by --format"
)
_NOT_AN_INPUT = frozenset({"bad_value", "missing_field"})
_ASIDES: dict[str, Role] = {"tool": "tool", "document": "document"}


def format_of(name: str, first: bytes) -> LineFormat:
    """Return the format of a file, by its name, else by its first line that is not blank."""
    suffix = name.lower().rpartition(".")[2]
    if suffix in ("jsonl", "ndjson", "json"):
        return LineFormat.JSONL
    if suffix == "txt":
        return LineFormat.TEXT
    return LineFormat.JSONL if first.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith(b"{") else LineFormat.TEXT


def parse(
    number: int, raw: bytes, form: LineFormat, unread: Collection[str] = (), *, guessed: bool = False
) -> Talk | BadLine | None:
    """Read a line; None for a blank one. ``number`` counts from 1; never raises on the line's content.

    ``unread`` names fields of lines and turns that are not part of the input, and are ignored. ``guessed``: the format
    was guessed. Then JSON among plain text is refused, since its fields would silently become part of the text.
    """
    if number == 1:
        raw = raw.removeprefix(_BYTE_ORDER_MARK)
    raw = raw.rstrip(b"\r\n")
    if not raw.strip():
        return None
    if form is not LineFormat.TEXT:
        return _parse_json(number, raw, unread)
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


def _parse_text(number: int, raw: bytes) -> Talk | BadLine:
    if b"\0" in raw:
        return BadLine(number, "binary", "the line holds NUL bytes: this is no text file")
    try:
        return Talk(line=number, turns=(Turn(raw.decode()),))
    except UnicodeDecodeError as wrong:
        return BadLine(number, "not_utf8", f"byte {wrong.start + 1} of the line is not UTF-8: convert the file")


def _parse_json(number: int, raw: bytes, unread: Collection[str]) -> Talk | BadLine:
    try:
        written = _read(raw, unread)
        turns = tuple(_turns(written))
    except BadInput as wrong:
        code = "not_an_input" if wrong.code in _NOT_AN_INPUT else wrong.code
        remedy = "; or pass it over with --ignore" if wrong.code == "unknown_field" else ""
        return BadLine(number, code, f"{wrong}{remedy}", _id_in(raw))
    return Talk(
        line=number,
        turns=turns,
        many=written.turns is not msgspec.UNSET,
        id=written.id,
        session=written.session or "",
        agent=written.agent or "",
        user=written.user or "",
        situation=situation_of(written),
    )


def _read(raw: bytes, unread: Collection[str]) -> _Written:
    if not unread:
        return read(raw, _Written, "the line")
    line = _without(read_plain(raw, "the line"), unread)
    if isinstance(line, dict) and isinstance(line.get("turns"), list):
        line["turns"] = [_without(turn, unread) for turn in line["turns"]]
    return convert(line, _Written, "the line")


def _without(value: Any, unread: Collection[str]) -> Any:
    return {key: inner for key, inner in value.items() if key not in unread} if isinstance(value, dict) else value


def _turns(written: _Written) -> Iterator[Turn]:
    """Yield the inputs of a line; raises BadInput if it has none, or if its fields contradict each other."""
    beside: tuple[Layer, ...] = layers_of(written)
    asides: tuple[Layer, ...] = ()
    said = written.turns is not msgspec.UNSET
    if said == (written.text is not msgspec.UNSET):
        both = "both a text and turns" if said else "neither a text nor turns"
        what = f'the line has {both}: write {{"text": ...}} or {{"turns": [...]}}'
        raise BadInput("bad_value" if said else "missing_field", "", what)
    if isinstance(written.text, str):
        yield Turn(written.text, beside)
        return
    assert isinstance(written.turns, tuple)
    inputs: list[Turn] = []
    for place, turn in enumerate(written.turns):
        words = _words(place, turn)
        if turn.role == "system":
            beside = (*beside, Layer(role="system", content=words))
        elif turn.role in _ASIDES:
            asides = (*asides, Layer(role=_ASIDES[turn.role], content=words))
        elif turn.role == "user":
            inputs.append(Turn(words, (*beside, *asides)))
            asides = ()
    if not inputs:
        raise BadInput("bad_value", "turns", "turns: no turn has the role user: there is nothing to send")
    # Layers behind the last user turn belong to no later turn, but must be judged, too.
    yield from inputs[:-1]
    yield Turn(inputs[-1].text, (*inputs[-1].layers, *asides))


def _words(place: int, turn: _Turn) -> str:
    said = [each for each in (turn.text, turn.content) if each is not None]
    if len(said) != 1:
        both = "both text and content: keep one of them" if said else "neither text nor content: write its text"
        raise BadInput("bad_value", f"turns[{place}]", f"turns[{place}] has {both}")
    return said[0]


def _id_in(raw: bytes) -> Id:
    try:
        return msgspec.json.decode(raw, type=_OnlyId).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
