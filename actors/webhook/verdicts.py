"""Whether a receiver that answered with a good status took the alert: many tell of an error in the body alone. Pure.

Slack's form answers with a word such as ``invalid_payload``; others with ``{"ok": false}``, ``{"status": "error"}``,
``{"errors": [...]}``, ``{"success": false}`` or an ``errcode`` that is not 0, all under HTTP 200. Names are read
whatever their case and joints (``Success``, ``error_code``), numbers and flags also as words (``"500"``, ``"false"``),
and a list item by item.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from actors.webhook.settings import Style

MOST_BYTES = 64 * 1024
"""What is read of an answer; one that is longer tells of no error that anybody could find."""

MOST_REASON = 120
"""Characters of a receiver's own words that are kept."""

UNTOLD = "an error without a reason"

_DIGITS = re.compile(r"-?[0-9]{1,9}")
_CODE = re.compile(r"[a-z]+(_[a-z]+)+")
_SAID_TO_FAIL = re.compile(r"\b(error|failed|failure|denied|invalid|refused)\b", re.IGNORECASE)
_PASSING = re.compile(
    r"\b(408|425|429|5\d\d)\b|rate.?limit|too.?many.?requests|throttl|time.?d?.?out|temporar|unavailable|overload|busy|"
    r"try.?again|internal|rollup_error|fatal_error",
    re.IGNORECASE,
)
_FLAGS = ("ok", "success", "issuccess")
_STATUSES = ("status", "result")
_FAILED_STATUSES = frozenset(
    {"error", "err", "fail", "failed", "failure", "invalid", "rejected", "denied", "nok", "false"}
)
_CODES = ("status", "code", "statuscode")
_ERROR_CODES = ("errcode", "errorcode", "errno", "retcode")
_ERRORS = ("error", "errors", "err", "iserror", "exception")
_NO_ERROR = frozenset({"", "0", "no", "none", "null", "nil", "false", "ok"})
_WORDS = (
    *_ERRORS,
    "description",
    "detail",
    "errmsg",
    "message",
    "msg",
    "reason",
    "statusmessage",
    "code",
    "statuscode",
    *_ERROR_CODES,
)
_ADDRESS = re.compile(r"\S*(?:://|hooks\.)\S*", re.IGNORECASE)
_LONG = re.compile(r"(?=\S*\d)[\w+/=.~-]{16,}")
_HIDDEN = "[hidden]"
_LEAST_FAILED = 400


class Refusal(msgspec.Struct, frozen=True):
    """Why an alert was not taken, in the receiver's words, cut; and whether another call may fare better."""

    reason: str
    passing: bool


def refusal(body: bytes, style: Style, secrets: tuple[str, ...] = ()) -> Refusal | None:
    """Return the refusal that an answer with a good status holds, None where it holds none.

    Args:
        body: The answer, or its first :data:`MOST_BYTES` bytes.
        style: The receiver's form: words alone are an answer of Slack's.
        secrets: What must not be kept, should the receiver repeat it: its address, its token.
    """
    text = body[:MOST_BYTES].decode("utf-8-sig", errors="replace").strip()
    try:
        told = msgspec.json.decode(body.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = text
    if isinstance(told, Mapping | list):
        items = [_plain(each) for each in (told if isinstance(told, list) else [told]) if isinstance(each, Mapping)]
        wrong = next(filter(_tells_of_an_error, items), None)
        if wrong is None:
            return None
        said = "; ".join(dict.fromkeys(_said(wrong))) or UNTOLD
    elif isinstance(told, str) and style == "slack" and not told.startswith("<") and _is_an_error(told):
        said = told
    else:
        return None
    return Refusal(_kept(said, secrets), _PASSING.search(said) is not None)


def _plain(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer by its names in one spelling."""
    return {re.sub(r"[_\W]", "", name).lower(): value for name, value in told.items()}


def _tells_of_an_error(told: Mapping[str, Any]) -> bool:
    return (
        any(_word(told.get(name)) == "false" for name in _FLAGS)
        or any(_word(told.get(name)) in _FAILED_STATUSES for name in _STATUSES)
        or any(_number(told.get(name)) >= _LEAST_FAILED for name in _CODES)
        or any(_number(told.get(name)) != 0 for name in _ERROR_CODES)
        or any(told.get(name) and _word(told.get(name)) not in _NO_ERROR for name in _ERRORS)
    )


def _word(value: Any) -> str | None:
    """Return a word or a flag of an answer in lower case, None for what is neither."""
    return str(value).strip().lower() if isinstance(value, str | bool) else None


def _number(value: Any) -> float:
    """Return a number of an answer, 0 for what is none."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _is_an_error(word: str) -> bool:
    return _CODE.fullmatch(word) is not None or _SAID_TO_FAIL.search(word) is not None


def _said(told: Mapping[str, Any]) -> Iterator[str]:
    for name in _WORDS:
        value = told.get(name)
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, Mapping):
            yield from _said(_plain(value))
        elif isinstance(value, str) and value:
            yield value
        elif _number(value):
            yield f"{name} {value}"


def _kept(said: str, secrets: tuple[str, ...]) -> str:
    for secret in filter(None, secrets):
        said = said.replace(secret, _HIDDEN)
    said = _LONG.sub(_HIDDEN, _ADDRESS.sub(_HIDDEN, said))
    said = " ".join("".join(sign if sign.isprintable() else " " for sign in said).split())
    return said if len(said) <= MOST_REASON else f"{said[: MOST_REASON - 1]}…"
