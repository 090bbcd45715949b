"""Whether a receiver that answered with a good status took the alert: many tell of an error in the body alone. Pure.

Slack's form answers with a word such as ``invalid_payload``; others with ``{"ok": false}``, ``{"status": "error"}``,
``{"errors": [...]}``, ``{"success": false}`` or an ``errcode`` that is not 0, all under HTTP 200.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from actors.webhook.settings import Style

MOST_BYTES = 64 * 1024
"""What is read of an answer; one that is longer tells of no error that anybody could find."""

MOST_REASON = 120
"""Characters of a receiver's own words that are kept."""

UNTOLD = "an error without a reason"

_CODE = re.compile(r"[a-z]+(_[a-z]+)+")
_SAID_TO_FAIL = re.compile(r"\b(error|failed|failure|denied|invalid|refused)\b", re.IGNORECASE)
_PASSING = re.compile(
    r"\b(408|425|429|5\d\d)\b|rate.?limit|too.?many.?requests|throttl|time.?d?.?out|temporar|unavailable|overload|busy|"
    r"try.?again|internal|rollup_error|fatal_error",
    re.IGNORECASE,
)
_FAILED_STATUSES = frozenset({"error", "err", "fail", "failed", "failure", "invalid"})
_WORDS = (
    "error",
    "errors",
    "description",
    "detail",
    "errmsg",
    "message",
    "msg",
    "reason",
    "code",
    "error_code",
    "errcode",
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
    text = body[:MOST_BYTES].decode(errors="replace").strip()
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = text
    if isinstance(told, Mapping):
        if not _tells_of_an_error(told):
            return None
        said = "; ".join(dict.fromkeys(_said(told))) or UNTOLD
    elif isinstance(told, str) and style == "slack" and not told.startswith("<") and _is_an_error(told):
        said = told
    else:
        return None
    return Refusal(_kept(said, secrets), _PASSING.search(said) is not None)


def _tells_of_an_error(told: Mapping[str, Any]) -> bool:
    status, code, errcode = told.get("status"), told.get("code"), told.get("errcode")
    return (
        told.get("ok") is False
        or told.get("success") is False
        or (isinstance(status, str) and status.lower() in _FAILED_STATUSES)
        or any(_number(value) >= _LEAST_FAILED for value in (status, code))
        or _number(errcode) != 0
        or bool(told.get("errors"))
        or bool(told.get("error"))
    )


def _number(value: Any) -> float:
    """Return a number of an answer, 0 for what is none."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _is_an_error(word: str) -> bool:
    return _CODE.fullmatch(word) is not None or _SAID_TO_FAIL.search(word) is not None


def _said(told: Mapping[str, Any]) -> Iterator[str]:
    for name in _WORDS:
        value = told.get(name)
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, Mapping):
            yield from _said(value)
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
