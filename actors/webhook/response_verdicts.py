"""Whether a receiver that answered with a good status accepted the alert: many report errors only in the body. Pure.

Slack-style receivers answer with a word such as ``invalid_payload``. Others answer with ``{"status": "error"}``,
``{"ok": false}``, ``{"errors": [...]}``, ``{"success": false}`` or an ``errcode`` that is not 0, all under HTTP 200.
Names are compared without case and separators (``Success``, ``error_code``); numbers and flags may be words (``"500"``,
``"false"``). Lists are read item by item, JSON lines line by line, and wrapped answers (``result``, ``data``,
``responses``, ...) at every depth. A single refusal among the results counts as a refusal. An HTML page comes from a
login, a proxy or a site's start page, and not from what takes alerts: it counts as a refusal, as an XML error does.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import unescape
from typing import Any

import msgspec

from actors.webhook.settings import Style
from actors.webhook.wrapped_answers import form_in, objects_in, text_of

MOST_BYTES = 64 * 1024
"""Most bytes of an answer that are read; a longer one is taken to report no error."""

_MOST_SEARCHED = 1_000
"""Characters of a reason in which addresses and tokens are looked for; the rest of it is not kept."""

MOST_REASON = 120
"""Most characters of a receiver's own message that are kept."""

NO_REASON = "an error without a reason"

_DIGITS = re.compile(r"-?[0-9]{1,9}")
_FIRST_WORD = re.compile(r"[a-z]*")
# An error code such as ``invalid_payload``.
_CODE_WORD = re.compile(r"[a-z]+(_[a-z]+)+")
_FAILURE_WORDS = re.compile(
    r"\b(error|failed|failure|denied|invalid|refused|rejected|forbidden|unauthori[sz]ed|bad.request|not.found)\b",
    re.IGNORECASE,
)
# Rate limits are worded differently: "too many request", "frequency limited" (Feishu), "api freq out of limit" (WeCom),
# "send too fast" (DingTalk).
_RETRY_PATTERN = (
    r"rate.?limit|\bfreq(?:uency)?\b.{0,20}limit|too.?many|too.?fast|throttl|time.?d?.?out|unavailable|overload"
    r"|try.?again"
)
_RETRY_WORDS = re.compile(_RETRY_PATTERN, re.IGNORECASE)
_TEMPORARY = re.compile(
    rf"\b(408|425|429|5\d\d)\b|{_RETRY_PATTERN}|temporar|busy|maintenance|internal|rollup_error|fatal_error",
    re.IGNORECASE,
)
# Fields, in one spelling, in which an answer says whether it succeeded: by a flag, and by a word or number.
_FLAG_FIELDS = (
    *("ok", "isok", "success", "issuccess", "succeeded", "successful", "issuccessful", "requestsuccess"),
    *("accepted", "ack", "acknowledged", "valid"),
)
_STATUS_FIELDS = (
    *("status", "result", "outcome", "stat", "state", "type", "code", "response"),
    *("messagestatus", "deliverystatus", "delivery", "statustext", "returncode", "resultcode", "responsecode"),
)
_NEGATIVE_FLAGS = frozenset({"false", "no", "n", "0"})
_FAILED_STATUSES = frozenset(
    {
        *("error", "err", "exception", "fail", "failed", "failure", "invalid", "rejected", "refused", "denied"),
        *("unauthorized", "unauthenticated", "forbidden", "nok", "ko", "false", "notok", "undelivered", "bounced"),
        *("undeliverable", "unavailable", "aborted", "throttled", "timeout"),
    }
)
# A status of which the first word alone says nothing: "NOT_OK", "not found", "internal_error", "rate limited".
_NOT_DONE = re.compile(
    r"not[ _-]?(ok|found|delivered|sent|accepted|allowed|authori[sz]ed)"
    r"|((internal|server|client)[ _-]?(server[ _-]?)?error|permission[ _-]?denied|bad[ _-]?(request|gateway)"
    r"|partial(ly)?[ _-]?fail(ed|ure)|rate[ _-]?limit(ed|[ _-]?exceeded)|timed[ _-]?out|resource[ _-]?exhausted)\b",
    re.IGNORECASE,
)
_CODE_FIELDS = ("status", "code", "statuscode", "httpcode", "httpstatus", "httpstatuscode", "responsecode")
_RESULT_FIELDS = ("result", "ret", "resultcode", *_CODE_FIELDS)
"""Fields whose number is a failure where it is negative."""

_SUCCESS_CODES = frozenset({0, 200, 201, 202, 204})
"""Error codes that report a success: Kafka's REST proxy writes ``"error_code": 200`` of a stored record."""

_ERROR_CODE_FIELDS = ("errcode", "errorcode", "errno", "errorno", "retcode")
_ERROR_FIELDS = (
    *("error", "errors", "err", "iserror", "haserror", "haserrors", "usererrors", "errormessage", "exception"),
    *("fault", "faults", "errortext", "errordescription", "exc", "errorresponse"),
)
_MESSAGE_FIELDS = ("message", "msg")
_FAILURE_FIELDS = (
    *("failure", "failures", "failed", "failedcount", "errorcount", "rejected"),
    *("failedentrycount", "failedrecordcount", "failedputcount"),
)
"""Fields with the number or names of failed items; the reason is in other fields."""

_WELL = frozenset({"ok", "success", "succeeded", "successful"})
_NO_ERROR_VALUES = frozenset(
    {
        *("", "0", "no", "none", "null", "nil", "false", "n/a", "not set", "no error", "no errors"),
        *_WELL,
    }
)
"""What an error's field may say where there is none: ServerChan writes ``"error": "SUCCESS"``."""

_WRAPPER_FIELDS = frozenset(
    {
        *("result", "results", "response", "responses", "reply", "output", "outcome", "return", "returnvalue"),
        *("data", "body", "items", "entries", "meta", "status", "details"),
        *("messages", "offsets", "records", "requestresponses", "responsestatus", "shards", "ocs", "header", "d"),
    }
)
"""Names of fields that hold an answer within an answer. Other fields may hold a copy of the alert."""

_REASON_FIELDS = (
    *_ERROR_FIELDS,
    "description",
    "detail",
    "errmsg",
    "faultstring",
    *_MESSAGE_FIELDS,
    "reason",
    "statusmessage",
    "code",
    "statuscode",
    *_ERROR_CODE_FIELDS,
)
# What may be an address, and what may be a token: sixteen characters or more with a digit. Both are hidden.
_ADDRESS = re.compile(r"\S*(?:://|hooks\.)\S*", re.IGNORECASE)
_TOKEN_LIKE = re.compile(r"(?=\S*\d)[\w+/=.~-]{16,}")
_HIDDEN = "[hidden]"

# The first element of XML or HTML, after white space, declarations and comments. Atomic groups keep the time linear:
# otherwise each later ``-->`` would be tried as the end of a comment.
_FIRST_ELEMENT = re.compile(r"(?is)(?>\s+|<\?.*?\?>|<!--.*?-->)*+<(?:!doctype\s+)?(?:\w+:)?(\w+)")
_PAGES = frozenset({"html", "head", "body", "title", "script", "center", "frameset"})
_XML_ERRORS = frozenset({"error", "errors", "errorresponse", "exception", "fault", "restexception"})
# An error within another element (SOAP, Twilio); a status or a flag that reports one; PHP's error of a broken script.
_INNER_ERROR = re.compile(
    r"(?i)<(?:\w+:)?(?:fault|restexception)[\s>]"
    r"|<(?:\w+:)?(?:status|result|state)>\s*(?:error|fail|failed|failure)\s*<"
    r"|<(?:\w+:)?(?:ok|success)>\s*(?:false|0)\s*<|\s(?:ok|success)=[\"'](?:false|0)[\"']"
    r"|\s(?:stat|status|result)=[\"'](?:error|fail|failed|failure)[\"']"
    r"|<b>(?:fatal|parse) error</b>:"
)
# What an error within another element says, itself or in its message.
_ERROR_ELEMENT = re.compile(r"(?i)<(?:\w+:)?error>\s*+(?:<(?:message|description)>)?([^<]{1,400})<")
# The text of the first element that says what the page, or the error, is.
_HEADLINE = re.compile(r"(?is)<(?:\w+:)?(?:title|h1|message|faultstring|code)(?:\s[^<>]*)?>([^<]{1,400})")
_LEAST_ERROR_STATUS, _LEAST_OWN_CODE = 400, 600
"""HTTP's errors begin at the first; from the second on, a code is not HTTP's but the service's own."""


class Refusal(msgspec.Struct, frozen=True):
    """Why an alert was refused, in the receiver's words, cut; and whether another call may succeed."""

    reason: str
    temporary: bool


def refusal(body: bytes, style: Style, secrets: tuple[str, ...] = ()) -> Refusal | None:
    """Return the refusal in an answer with a good status; None where there is none.

    Args:
        body: The answer, or its first :data:`MOST_BYTES` bytes.
        style: The receiver's format: only Slack-style receivers answer with plain words.
        secrets: Text that must not be kept if the receiver repeats it: its address, its token.
    """
    text = text_of(body[:MOST_BYTES])
    answer = _read(text)
    found = (objects_in(answer) or form_in(answer)) if isinstance(answer, str) else answer
    failed = [each for each in _answers(found) if _reports_error(each)]
    if failed:
        # An outer answer may only say that there are errors, and an inner one which.
        reason = next(filter(None, ("; ".join(dict.fromkeys(_messages_in(each))) for each in failed)), NO_REASON)
    elif answer is False:
        reason = NO_REASON
    elif isinstance(answer, str) and (markup := _markup_refusal(answer)):
        reason = markup
    elif isinstance(answer, str) and style == "slack" and not answer.startswith("<") and _is_an_error(answer):
        reason = answer
    else:
        return None
    return Refusal(_redacted(reason, secrets), _TEMPORARY.search(reason) is not None)


def _read(text: str) -> Any:
    """Return a text parsed as JSON, as a list if it is JSON lines; the text itself if it is neither.

    JSON nested more deeply than can be parsed counts as neither.
    """
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(text)
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]
    return text


def _markup_refusal(text: str) -> str | None:
    """Return what a page, or an XML error, says in its headline; None for other texts and other markup."""
    first = _FIRST_ELEMENT.match(text)
    name = first[1].lower() if first else ""
    if name not in _PAGES and name not in _XML_ERRORS and not (first and _has_inner_error(text)):
        return None
    headline = _HEADLINE.search(text)
    kind = "an HTML page" if name in _PAGES else "an XML error"
    return f"{kind}: {unescape(headline[1])}" if headline and headline[1].strip() else kind


def _has_inner_error(text: str) -> bool:
    said = (found[1].strip().lower() for found in _ERROR_ELEMENT.finditer(text))
    told = any(any(map(str.isalpha, each)) and each not in _NO_ERROR_VALUES for each in said)
    return told or _INNER_ERROR.search(text) is not None


def _answers(body: Any) -> Iterator[dict[str, Any]]:
    """Yield an answer's objects with plain field names, the outermost first; inner ones of ``_WRAPPER_FIELDS`` too."""
    level = [(body, False)]
    while level:
        below: list[tuple[Any, bool]] = []
        for value, wrapped in level:
            if wrapped and isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
                below.append((_read(value), True))
            elif isinstance(value, list):
                below += [(each, wrapped) for each in value]
            elif isinstance(value, Mapping):
                plain = _with_plain_names(value)
                yield plain
                below += [(inner, True) for name, inner in plain.items() if wrapped or name in _WRAPPER_FIELDS]
        level = below


def _with_plain_names(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer by its names in one spelling."""
    return {re.sub(r"[_\W]", "", name).lower(): value for name, value in body.items()}


def _reports_error(body: Mapping[str, Any]) -> bool:
    return (
        any(_word(body.get(name)) in _NEGATIVE_FLAGS | _FAILED_STATUSES for name in _FLAG_FIELDS)
        or any(_is_failed_status(body.get(name)) for name in _STATUS_FIELDS)
        or (any(_number(body.get(name)) >= _LEAST_ERROR_STATUS for name in _CODE_FIELDS) and not _is_own_success(body))
        or any(_number(body.get(name)) < 0 for name in _RESULT_FIELDS)
        or any(_is_error_code(body.get(name)) for name in _ERROR_CODE_FIELDS)
        or any(
            body.get(name) and _word(body.get(name)) not in _NO_ERROR_VALUES
            for name in (*_ERROR_FIELDS, *_FAILURE_FIELDS)
        )
        or any(_word(body.get(name)) in _FAILED_STATUSES for name in _MESSAGE_FIELDS)
    )


def _is_own_success(body: Mapping[str, Any]) -> bool:
    """Return whether an answer's codes are its own, beyond those of HTTP, and its message says that all is well.

    Many services write ``{"code": 20000, "message": "success"}``.
    """
    numbers = [_number(body.get(name)) for name in _CODE_FIELDS]
    return not any(_LEAST_ERROR_STATUS <= number < _LEAST_OWN_CODE for number in numbers) and any(
        _word(body.get(name)) in _WELL for name in (*_MESSAGE_FIELDS, "errmsg")
    )


def _word(value: Any) -> str | None:
    """Return a word, a flag or a count of an answer in lower case, None for what is neither."""
    return str(value).strip().lower() if isinstance(value, str | bool | int) else None


def _first_word(value: Any) -> str | None:
    """Return the first word of a status: ``invalid`` of "invalid event"."""
    word = _word(value)
    return _FIRST_WORD.findall(word)[0] if word is not None else None


def _is_failed_status(value: Any) -> bool:
    return _first_word(value) in _FAILED_STATUSES or _NOT_DONE.match(_word(value) or "") is not None


def _number(value: Any) -> float:
    """Return a value of an answer as a number; 0 if it is none."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _is_error_code(value: Any) -> bool:
    """Return whether an error code reports an error: any number but a success code, or a word such as ``Throttled``."""
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        return _word(value) not in _NO_ERROR_VALUES
    return _number(value) not in _SUCCESS_CODES


def _is_an_error(word: str) -> bool:
    searched = _FAILURE_WORDS.search(word) or _RETRY_WORDS.search(word)
    return searched is not None or _CODE_WORD.fullmatch(word) is not None


def _messages_in(body: Mapping[str, Any]) -> Iterator[str]:
    for name in _REASON_FIELDS:
        value = body.get(name)
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, Mapping):
            yield from _messages_in(_with_plain_names(value))
        elif isinstance(value, str) and value:
            yield value
        elif _number(value):
            yield f"{name} {value}"
    for name in _STATUS_FIELDS:
        value = body.get(name)
        # Most statuses of one word say that it failed, and no more; a small number may say that all is well.
        if isinstance(value, str) and (" " in value.strip() or (_TEMPORARY.search(value) and not _number(value))):
            yield value
        elif name not in _REASON_FIELDS and _number(value) >= _LEAST_ERROR_STATUS:
            yield f"{name} {value}"


def _redacted(reason: str, secrets: tuple[str, ...]) -> str:
    for secret in filter(None, secrets):
        reason = reason.replace(secret, _HIDDEN)
    # The searches below take quadratic time for a long word.
    reason = reason[:_MOST_SEARCHED]
    reason = _TOKEN_LIKE.sub(_HIDDEN, _ADDRESS.sub(_HIDDEN, reason))
    reason = " ".join("".join(char if char.isprintable() else " " for char in reason).split())
    return reason if len(reason) <= MOST_REASON else f"{reason[: MOST_REASON - 1]}…"
