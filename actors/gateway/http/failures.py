"""Turns errors into responses of one shape: the status says who must act, the message says what to do."""

from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from actors.gateway.external_events import InvalidField, InvalidInput
from actors.gateway.http.bodies import Failure
from actors.gateway.http.error_body import error_body
from actors.gateway.http.guard.service import NoVerdict
from actors.gateway.http.loops.service import UnknownLoop
from actors.gateway.http.openai.answers import headers_of
from actors.gateway.http.openai.chat_service import ExchangeFailed
from actors.gateway.http.openai.endpoints import UnknownModel
from actors.gateway.http.openai.failures import ApiFailure
from actors.gateway.http.openai.upstream import UpstreamFailed
from actors.gateway.http.request_errors import NotAccepted, NotReady, NoWorker, Unanswered, Undecided
from actors.gateway.http.scopes import Forbidden, NotFound
from actors.gateway.http.strict_requests import LOOP
from events.errors import LogError, Refused
from events.exhaustion import exhausted
from events.loggers import get_logger

LOOPS = "/orchestrator/"
"""Paths whose errors name the loop that they are about."""

_STATUS: dict[type[Exception], int] = {
    InvalidField: 400,
    InvalidInput: 400,
    Forbidden: 403,
    UnknownLoop: 404,
    NotFound: 404,
    UnknownModel: 404,
    Refused: 413,
    Undecided: 500,
    LogError: 503,
    NotAccepted: 503,
    NotReady: 503,
    ExchangeFailed: 503,
    UpstreamFailed: 503,
    NoWorker: 503,
    NoVerdict: 503,
    Unanswered: 504,
}
_MESSAGES = {
    404: "nothing is served at this path: /schema lists what is",
    405: "this path does not take this method: /schema lists those it takes",
}
"""Status -> a message that replaces the short one of the framework."""

_CODES: dict[type[Exception], str] = {
    UnknownLoop: "unknown_loop",
    NotFound: "not_found",
    UnknownModel: "model_not_found",
    Forbidden: "forbidden",
    Undecided: "undecided",
    NotAccepted: "not_accepted",
    NotReady: "not_ready",
    ExchangeFailed: "exchange_failed",
    NoWorker: "no_owner",
    NoVerdict: "unchecked",
    Unanswered: "unanswered",
}
"""The codes of errors that do not carry one."""

_FRAMEWORK = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "bad_method",
    408: "too_slow",
    413: "too_large",
    429: "too_many_requests",
}
"""The codes of the framework's exceptions, including those raised here without a class of their own."""

_REFUSED_CALLERS = frozenset({401, 403, 408, 413, 429})
"""Statuses of refused callers, which are logged for the operator."""

_logger = get_logger("neuraxis.gateway")


def error_response(request: Request[Any, Any, Any], error: Exception) -> Response[Failure | ApiFailure]:
    """Return the response to an error of a handler or of the framework."""
    status = next((number for kind, number in _STATUS.items() if isinstance(error, kind)), 500)
    if status == 500 and exhausted(error):
        status = 503
    message, headers = _message(error), {}
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        message = _MESSAGES.get(status) or _detail(error)
    elif status == 503:
        headers["Retry-After"] = "1"
    if status in _REFUSED_CALLERS:
        _logger.info("request_refused", status=status, method=request.method, reason=message)
    if status >= 500:
        foreseen = isinstance(error, tuple(_STATUS))
        detail = str(error) if isinstance(error, LogError) else None
        fields = {"path": request.url.path, "error": type(error).__name__, "detail": detail}
        _logger.warning("request_failed", **fields, exc_info=not foreseen)
    if isinstance(error, ExchangeFailed):
        headers |= headers_of(error.decision)
    field = error.field if isinstance(error, InvalidField) else _parameter(error)
    failure = error_body(request.url.path, status, _code(error, status), message, field=field, loop_id=_loop(request))
    return Response(failure, status_code=status, headers=headers, media_type="application/json")


HANDLERS: Any = {HTTPException: error_response, Exception: error_response}
"""Litestar's ``exception_handlers``."""


def _message(error: Exception) -> str:
    if isinstance(error, LogError):
        return f"the log: {error}"
    if isinstance(error, tuple(_STATUS)):
        return str(error.args[0])
    if what := exhausted(error):
        return f"this gateway has run out of {what}"
    return "a bug: see the gateway's log, and report it"


def _detail(error: HTTPException) -> str:
    """Return the framework's description of an error; for a wrong parameter, what is wrong with it."""
    wrong = [f"{each.get('key', 'a parameter')}: {each['message']}" for each in _wrong_in(error)]
    return "; ".join(wrong) or error.detail


def _parameter(error: Exception) -> str:
    """Return the parameter that the framework refuses; empty where it names none."""
    return next((str(each["key"]) for each in _wrong_in(error) if "key" in each), "")


def _wrong_in(error: Exception) -> list[dict[str, str]]:
    return error.extra if isinstance(error, ValidationException) and isinstance(error.extra, list) else []


def _code(error: Exception, status: int) -> str:
    if isinstance(error, UpstreamFailed):
        return error.reason
    if isinstance(error, InvalidInput | LogError):
        return error.code
    if isinstance(error, ValidationException):
        return "bad_value"
    if isinstance(error, HTTPException):
        return _FRAMEWORK.get(status, "bad_request")
    return _CODES.get(type(error), "out_of_resources" if exhausted(error) else "failed")


def _loop(request: Request[Any, Any, Any]) -> str | msgspec.UnsetType | None:
    if not request.url.path.startswith(LOOPS):
        return msgspec.UNSET
    named = request.scope.get("path_params", {}).get("loop_id")
    return str(named) if named is not None else request.state.get(LOOP)
