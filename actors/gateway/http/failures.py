"""Turns errors into responses of one shape: the status says who must act, the message says what to do."""

from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from actors.gateway.external_events import InvalidField, InvalidInput
from actors.gateway.http.bodies import Failure
from actors.gateway.http.check_results import without_locations
from actors.gateway.http.guard.service import NoVerdict
from actors.gateway.http.loops.service import UnknownLoop
from actors.gateway.http.openai.answers import headers_of
from actors.gateway.http.openai.chat_service import ExchangeFailed
from actors.gateway.http.openai.endpoints import UnknownModel
from actors.gateway.http.openai.failures import ApiFailure, failure_of, is_openai
from actors.gateway.http.openai.upstream import UpstreamFailed
from actors.gateway.http.request_errors import NotAccepted, NotReady, NoWorker, Unanswered, Undecided
from actors.gateway.http.scopes import Forbidden, NotFound
from actors.gateway.http.strict_requests import LOOP
from events.errors import LogError, Refused
from events.exhaustion import exhausted
from events.loggers import get_logger

LOOPS = "/orchestrator/"
"""Paths whose errors name the loop that they are about."""

_FORESEEN: dict[type[Exception], tuple[int, str]] = {
    InvalidInput: (400, ""),
    Forbidden: (403, "forbidden"),
    UnknownLoop: (404, "unknown_loop"),
    NotFound: (404, "not_found"),
    UnknownModel: (404, "model_not_found"),
    Refused: (413, ""),
    Undecided: (500, "undecided"),
    LogError: (503, ""),
    NotAccepted: (503, "not_accepted"),
    NotReady: (503, "not_ready"),
    ExchangeFailed: (503, "exchange_failed"),
    UpstreamFailed: (503, ""),
    NoWorker: (503, "no_owner"),
    NoVerdict: (503, "unchecked"),
    Unanswered: (504, "unanswered"),
}
"""Error -> status and code; no code where the error carries one."""

_MESSAGES = {
    404: "nothing is served at this path: /schema lists what is",
    405: "this path does not take this method: /schema lists those it takes",
}
"""Status -> a message that replaces the short one of the framework."""

_FRAMEWORK = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "bad_method",
    408: "too_slow",
    413: "too_large",
    429: "too_many_requests",
}
"""Status -> code, for the framework's exceptions, including those raised here without a class of their own."""

_REFUSED_CALLERS = frozenset({401, 403, 408, 413, 429})
"""Statuses of refused callers, which are logged for the operator."""

_logger = get_logger("neuraxis.gateway")


def error_response(request: Request[Any, Any, Any], error: Exception) -> Response[Failure | ApiFailure]:
    """Return the response to an error of a handler or of the framework."""
    foreseen = next((found for kind, found in _FORESEEN.items() if isinstance(error, kind)), None)
    status, code = foreseen or ((503, "out_of_resources") if exhausted(error) else (500, "failed"))
    message, headers = _message(error, foreseen=foreseen is not None), {}
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        message = _MESSAGES.get(status) or _detail(error)
        code = "bad_value" if isinstance(error, ValidationException) else _FRAMEWORK.get(status, "bad_request")
    elif isinstance(error, UpstreamFailed):
        code = error.reason
    elif isinstance(error, InvalidInput | LogError):
        code = error.code
    if status == 503 and not isinstance(error, HTTPException):
        headers["Retry-After"] = "1"
    if status in _REFUSED_CALLERS:
        _logger.info("request_refused", status=status, method=request.method, reason=message)
    if status >= 500:
        detail = str(error) if isinstance(error, LogError) else None
        fields = {"path": request.url.path, "error": type(error).__name__, "detail": detail}
        _logger.warning("request_failed", **fields, exc_info=foreseen is None)
    if isinstance(error, ExchangeFailed):
        headers |= headers_of(error.decision)
    field = error.field if isinstance(error, InvalidField) else _parameter(error)
    body: Failure | ApiFailure
    if is_openai(request.url.path):
        body = failure_of(status, message, code, field or None)
    else:
        field_named = field or msgspec.UNSET
        body = Failure(code=code, field=field_named, message=without_locations(message), loop_id=_loop(request))
    return Response(body, status_code=status, headers=headers, media_type="application/json")


HANDLERS: Any = {HTTPException: error_response, Exception: error_response}
"""Litestar's ``exception_handlers``."""


def _message(error: Exception, *, foreseen: bool) -> str:
    if isinstance(error, LogError):
        return f"the log: {error}"
    if foreseen:
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


def _loop(request: Request[Any, Any, Any]) -> str | msgspec.UnsetType | None:
    if not request.url.path.startswith(LOOPS):
        return msgspec.UNSET
    named = request.scope.get("path_params", {}).get("loop_id")
    return str(named) if named is not None else request.state.get(LOOP)
