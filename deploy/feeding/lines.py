"""What a line of a feed says: one input, or a conversation whose turns follow each other. Pure."""

import json
from enum import StrEnum

import msgspec

from schemas.choices import with_choices
from schemas.vocabulary.gateway import Layer

Id = str | int | float | None
"""The caller's own id of a line, as it was given."""


class LineFormat(StrEnum):
    """How lines are written."""

    AUTO = "auto"
    JSONL = "jsonl"
    TEXT = "text"


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a line, in order: one, or the user's turns of a conversation.

    ``session``, ``agent`` and ``user`` are empty where the line names none. ``turns`` is never empty; ``many`` says
    that the line is a conversation.
    """

    line: int
    turns: tuple[str, ...]
    many: bool = False
    id: Id = None
    session: str = ""
    agent: str = ""
    user: str = ""
    situation: str = "general"
    layers: tuple[Layer, ...] = ()


class BadLine(msgspec.Struct, frozen=True):
    """A line that says no input: why, and the caller's id where it could be read."""

    line: int
    code: str
    detail: str
    id: Id = None


class _Turn(msgspec.Struct):
    role: str
    text: str | None = None
    content: str | None = None


class _Context(msgspec.Struct):
    situation: str = "general"


class _OnlyId(msgspec.Struct):
    id: Id = None


class _Written(msgspec.Struct):
    text: str | msgspec.UnsetType = msgspec.UNSET
    turns: tuple[_Turn, ...] | msgspec.UnsetType = msgspec.UNSET
    id: Id = None
    session: str | None = None
    agent: str | None = None
    user: str | None = None
    context: str | _Context | None = None
    layers: tuple[Layer, ...] | None = None


_decoder = msgspec.json.Decoder(_Written)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def format_of(name: str, first: bytes) -> LineFormat:
    """Return how a file is written, from its name, else from its first line with anything on it."""
    suffix = name.lower().rpartition(".")[2]
    if suffix in ("jsonl", "ndjson", "json"):
        return LineFormat.JSONL
    if suffix == "txt":
        return LineFormat.TEXT
    return LineFormat.JSONL if first.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith(b"{") else LineFormat.TEXT


def parse(number: int, raw: bytes, form: LineFormat) -> Talk | BadLine | None:
    """Read a line; None for a blank one. ``number`` counts from 1; never raises on the line's content."""
    if number == 1:
        raw = raw.removeprefix(_BYTE_ORDER_MARK)
    raw = raw.rstrip(b"\r\n")
    if not raw.strip():
        return None
    return _parse_text(number, raw) if form is LineFormat.TEXT else _parse_json(number, raw)


def _parse_text(number: int, raw: bytes) -> Talk | BadLine:
    if b"\0" in raw:
        return BadLine(number, "binary", "the line holds NUL bytes: this is no text file")
    try:
        return Talk(line=number, turns=(raw.decode(),))
    except UnicodeDecodeError as wrong:
        return BadLine(number, "not_utf8", f"byte {wrong.start + 1} of the line is not UTF-8: convert the file")


def _parse_json(number: int, raw: bytes) -> Talk | BadLine:
    try:
        written = _decoder.decode(raw)
    except msgspec.ValidationError as wrong:
        return BadLine(number, "not_an_input", _detail(with_choices(_Written, str(wrong))), _id_in(raw))
    except UnicodeDecodeError:
        return BadLine(number, "not_utf8", "the line is not UTF-8: convert the file")
    except RecursionError:
        return BadLine(number, "too_deep", "the line is nested too deeply")
    except msgspec.DecodeError as wrong:
        return _why_not_json(number, raw, wrong)
    said = written.turns is not msgspec.UNSET
    if said == (written.text is not msgspec.UNSET):
        both = "both a text and turns" if said else "neither a text nor turns"
        return BadLine(number, "not_an_input", f'the line has {both}: write {{"text": ...}} or {{"turns": [...]}}')
    turns = _user_turns(written)
    if not turns:
        return BadLine(number, "not_an_input", "no turn has the role user: there is nothing to send", written.id)
    return Talk(
        line=number,
        turns=turns,
        many=said,
        id=written.id,
        session=written.session or "",
        agent=written.agent or "",
        user=written.user or "",
        situation=_situation(written.context),
        layers=written.layers or (),
    )


def _user_turns(written: _Written) -> tuple[str, ...]:
    if isinstance(written.text, str):
        return (written.text,)
    assert isinstance(written.turns, tuple)
    return tuple(turn.text or turn.content or "" for turn in written.turns if turn.role == "user")


def _situation(context: str | _Context | None) -> str:
    return (context.situation if isinstance(context, _Context) else context) or "general"


def _why_not_json(number: int, raw: bytes, wrong: msgspec.DecodeError) -> BadLine:
    if b"\\ud" in raw.lower():
        try:
            # msgspec calls half of a surrogate pair a truncated input; the standard library reads it.
            json.dumps(json.loads(raw), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            detail = "a lone surrogate (\\ud800 to \\udfff) is no Unicode text: repair or drop it"
            return BadLine(number, "lone_surrogate", detail)
        except (ValueError, RecursionError):
            return BadLine(number, "not_json", str(wrong))
    return BadLine(number, "not_json", str(wrong))


def _id_in(raw: bytes) -> Id:
    try:
        return msgspec.json.decode(raw, type=_OnlyId).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _detail(message: str) -> str:
    what, _, where = message.partition(" - at `$")
    return f"{where.strip('.`')}: {what}" if where else what
