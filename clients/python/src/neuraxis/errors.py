"""The exceptions of the client: one class for each way in which a caller may react."""

from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuraxis.models import Verdict

_LONGEST_WAIT_S = 3600.0  # that a server may have a client wait before a repeat
_UNANSWERED = "unanswered"  # the server's own code of a 504


class NeuraxisError(Exception):
    """Any failure of a call.

    Attributes:
        code: A stable word for what happened; the server's, if it sent one.
        status: The HTTP status of the answer; 0 if there was none.
        exchange: The exchange that it is about, if the server named one.
    """

    def __init__(self, message: str, *, code: str = "failed", status: int = 0, exchange: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.exchange = exchange


class Misconfigured(NeuraxisError):
    """Nothing says where the server is, or the address or another argument is invalid. Nothing was sent."""


class NotReachable(NeuraxisError):
    """Nobody answered: no connection, one that broke, or no answer in time. What was sent may have arrived."""


class BadInput(NeuraxisError):
    """The server does not accept the request (400, 413); ``field`` names the part that is wrong."""

    def __init__(self, message: str, *, field: str = "", **more: Any) -> None:
        super().__init__(message, **more)
        self.field = field


class Unauthorized(NeuraxisError):
    """The API key is missing or not known (401)."""


class Forbidden(NeuraxisError):
    """The API key does not allow this call, or the server does not serve it to this address (403)."""


class NotFound(NeuraxisError):
    """There is no such exchange, or no such path: the server may be of another release (404)."""


class RateLimited(NeuraxisError):
    """Too many requests (429): nothing was done. ``retry_after`` is in seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0, **more: Any) -> None:
        super().__init__(message, **more)
        self.retry_after = retry_after


class Unavailable(NeuraxisError):
    """The server cannot serve this now (503), such as while its broker is away. ``retry_after`` is in seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0, **more: Any) -> None:
        super().__init__(message, **more)
        self.retry_after = retry_after


class Unanswered(NeuraxisError):
    """The input is in the log, but did not end in time (504). Ask for its exchange later; do not send it again."""


class ServerFailed(NeuraxisError):
    """The server failed unexpectedly (500 and others)."""


class BadAnswer(NeuraxisError):
    """The answer is not that of a Neuraxis release that this client knows. Is the base URL right?"""


class Refused(NeuraxisError):
    """The guards refused an input. Only :meth:`Verdict.require` raises it, no call by itself."""

    def __init__(self, verdict: "Verdict") -> None:
        super().__init__(verdict.sentence or verdict.reason, code=verdict.reason, exchange=verdict.exchange)
        self.verdict = verdict


def failure_of(status: int, body: Any, headers: Mapping[str, str]) -> NeuraxisError:
    """Return the error that an answer with a status above 299 reports; ``body`` is its JSON, or None."""
    whole = body if isinstance(body, dict) else {}
    inner = whole.get("error")
    error = inner if isinstance(inner, dict) else whole  # OpenAI's shape, or the gateway's own
    message = _text(error.get("message")) or f"the server answered with status {status}"
    field = _text(error.get("field")) or _text(error.get("param"))
    more: dict[str, Any] = {
        "code": _text(error.get("code")) or f"status_{status}",
        "status": status,
        "exchange": headers.get("x-neuraxis-exchange", ""),
    }
    match status:
        case 400 | 408 | 413 | 422:
            return BadInput(message, field=field, **more)
        case 401:
            return Unauthorized(message, **more)
        case 403:
            return Forbidden(message, **more)
        case 404 | 405:
            return NotFound(message, **more)
        case 429:
            return RateLimited(message, retry_after=seconds_of(headers), **more)
        case 503:
            return Unavailable(message, retry_after=seconds_of(headers), **more)
        case 504 if more["code"] == _UNANSWERED:
            return Unanswered(message, **more)
        case 504:  # a proxy's, which may have a code of its own: only the server knows what is in its log
            return NotReachable("something before the server, such as a proxy, gave up waiting for it (504)", **more)
        case _ if status < 400:
            return BadAnswer(f"the server sends elsewhere (status {status}): name it by its own address", **more)
        case _:
            return ServerFailed(message, **more)


def seconds_of(headers: Mapping[str, str]) -> float:
    """Return the seconds that ``Retry-After`` asks for, at most an hour; 1 if it names none."""
    try:
        asked = float(headers.get("retry-after", ""))
    except ValueError:
        return 1.0
    return 1.0 if isnan(asked) else min(max(asked, 0.0), _LONGEST_WAIT_S)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
