"""Describes every call: the request, how its answer is read, and when it may be sent again. No I/O."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar
from uuid import uuid4

import httpx

from neuraxis.errors import (
    BadAnswer,
    BadInput,
    Misconfigured,
    NeuraxisError,
    NotReachable,
    RateLimited,
    Unavailable,
    failure_of,
)
from neuraxis.models import (
    Answer,
    Explanation,
    Feedback,
    Input,
    Page,
    Verdict,
    read,
    read_answer,
    read_explanation,
    read_page,
    read_verdicts,
)
from neuraxis.server import Server

MODEL = "neuraxis"
"""The model name of Neuraxis itself."""

MOST_INPUTS = 128
"""Most inputs of one request."""

MOST_BYTES = 64 * 1024 * 1024
"""Most bytes of an answer that are read; a Neuraxis server never sends as many."""

MOST_ERROR_BYTES = 64 * 1024
"""Bytes of the body of an error after which no more of it is read, where a stream was asked for."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """A request and how its answer is read.

    ``repeatable``: sending it twice has the same effect as sending it once, so it may always be sent again. Any other
    call is sent again only if the first was certainly not accepted.
    """

    method: str
    path: str
    read: Callable[[Any], T]
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False

    def content(self) -> bytes | None:
        """Return the body as it is sent, None if there is none; raises BadInput if it cannot be JSON."""
        if self.body is None:
            return None
        try:
            return json.dumps(self.body, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as wrong:
            raise BadInput(f"the request cannot be written as JSON: {wrong}", code="bad_value") from wrong


def check(one: Input, user: str) -> Call[Verdict]:
    """A check of one input."""
    return Call(
        method="POST",
        path="/v1/guard",
        body=one.body(),
        headers=_header("x-neuraxis-user", user),
        read=lambda body: read_verdicts(body, 1)[0],
    )


def check_all(inputs: Sequence[Input], user: str) -> Call[tuple[Verdict, ...]]:
    """A check of several inputs."""
    if not 1 <= len(inputs) <= MOST_INPUTS:
        raise BadInput(f"{len(inputs)} inputs: a request takes 1 to {MOST_INPUTS}", field="inputs", code="bad_value")
    return Call(
        method="POST",
        path="/v1/guard",
        body={"inputs": [each.body() for each in inputs]},
        headers=_header("x-neuraxis-user", user),
        read=partial(read_verdicts, count=len(inputs)),
    )


def ask(question: str | Sequence[Mapping[str, Any]], session: str, user: str) -> Call[Answer]:
    """A question to Neuraxis itself: a text, or the messages of a conversation in OpenAI's shape."""
    messages = [{"role": "user", "content": question}] if isinstance(question, str) else [*map(dict, question)]
    return Call(
        method="POST",
        path="/v1/chat/completions",
        body={"model": MODEL, "messages": messages},
        headers={**_header("x-neuraxis-session", session), **_header("x-neuraxis-user", user)},
        read=read_answer,
    )


def why(exchange: str) -> Call[Explanation]:
    """Why an exchange ended as it did."""
    return Call(
        method="GET", path=f"/api/exchanges/{_checked_id(exchange)}/why", read=read_explanation, repeatable=True
    )


def exchanges(**wanted: str | int) -> Call[Page]:
    """A page of exchanges; arguments that are empty, and ``before`` 0, select all. The server checks a ``limit``."""
    query = {name: str(value) for name, value in wanted.items() if value or name == "limit"}
    return Call(method="GET", path="/api/exchanges", query=query, read=read_page, repeatable=True)


def feedback(exchange: str, reward: float | None, harmful: bool | None, comment: str) -> Call[Feedback]:
    """Feedback on an exchange; with its idempotency key it is recorded once, however often it is sent."""
    if reward is None and harmful is None and not comment.strip():
        raise BadInput("feedback says nothing: give reward, harmful or comment", field="reward", code="missing_field")
    if reward is not None and not -1.0 <= reward <= 1.0:
        raise BadInput(f"reward is {reward}: it goes from -1 to 1", field="reward", code="bad_value")
    given = {"exchange": _checked_id(exchange), "reward": reward, "harmful": harmful, "comment": comment or None}
    return Call(
        method="POST",
        path="/v1/feedback",
        body={name: value for name, value in given.items() if value is not None},
        headers={"idempotency-key": uuid4().hex},
        read=partial(read, Feedback),
        repeatable=True,
    )


def http_options(server: Server, timeout: float) -> dict[str, Any]:
    """Return httpx's options of a client of a server, the headers of every call included."""
    key = {"authorization": f"Bearer {server.api_key}"} if server.api_key else {}
    headers = {"accept": "application/json", "content-type": "application/json", **key}
    return {"base_url": server.url, "headers": headers, "timeout": timeout, "trust_env": not server.is_local}


def check_limits(timeout: float, retries: int) -> None:
    """Raise Misconfigured for an invalid timeout or number of retries."""
    is_time = isinstance(timeout, int | float) and 0 < timeout < float("inf")
    if not is_time or not isinstance(retries, int) or retries < 0:
        raise Misconfigured(
            f"timeout={timeout!r}, retries={retries!r}: the one is a number above 0, the other a whole one from 0 on",
            code="bad_value",
        )


@contextmanager
def usable_environment() -> Iterator[None]:
    """Raise Misconfigured for what httpx makes of an environment that it cannot use."""
    try:
        yield
    except (ImportError, ValueError, OSError, httpx.InvalidURL) as wrong:
        names = "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
        raise Misconfigured(
            f"the proxies or certificates of the environment cannot be used ({wrong}): correct what is set of {names}",
            code="bad_environment",
        ) from wrong


def raise_for(answer: httpx.Response, body: bytes) -> NoReturn:
    """Raise the error that an answer with this body reports."""
    raise failure_of(answer.status_code, _json(body), answer.headers)


def check_stream(answer: httpx.Response) -> None:
    """Raise BadAnswer if a response is not a stream of events: otherwise its reader would wait for ever."""
    kind = answer.headers.get("content-type", "")
    if not kind.startswith("text/event-stream"):
        raise BadAnswer(f"the events come as {kind or 'nothing'}: is the base URL that of a Neuraxis?")


def check_length(call: Call[Any], length: int) -> None:
    """Raise BadAnswer for an answer that is longer than any of a Neuraxis server."""
    if length > MOST_BYTES:
        raise BadAnswer(f"{call.path} answered with more than {MOST_BYTES:,} bytes: is this a Neuraxis?")


def result_of(call: Call[T], answer: httpx.Response, body: bytes) -> T:
    """Return the result that an answer holds; raises the error that it reports."""
    value = _json(body)
    if not answer.is_success:
        raise failure_of(answer.status_code, value, answer.headers)
    if value is None:
        raise BadAnswer(f"{call.path} answered without JSON: is the base URL that of a Neuraxis?")
    return call.read(value)


def overdue(url: str, seconds: float) -> NotReachable:
    """Return the error for an answer that did not come in time."""
    return NotReachable(f"{url} has not answered within {seconds:g} s: give a longer timeout", code="timeout")


def unreached(url: str, wrong: httpx.HTTPError, seconds: float) -> NotReachable:
    """Return the error for a failure of the transport."""
    if isinstance(wrong, httpx.TimeoutException):
        return overdue(url, seconds)
    if isinstance(wrong, httpx.ConnectError):
        return NotReachable(f"{url} takes no connection: does the server run there?", code="no_connection")
    return NotReachable(f"{url}: the connection broke ({type(wrong).__name__}): send it again", code="broken")


def pause_before(call: Call[Any], failed: NeuraxisError, attempt: int) -> float | None:
    """Return the seconds after which a failed call may be sent again; None if it may not.

    ``attempt`` counts from 0. After a refused connection or a status 429, nothing has changed at the server.
    """
    backoff = 0.2 * float(2**attempt)
    match failed:
        case RateLimited(retry_after=seconds):
            return max(seconds, backoff)
        case NotReachable(code="no_connection"):
            return backoff
        case Unavailable(retry_after=seconds) if call.repeatable:
            return max(seconds, backoff)
        case NotReachable() if call.repeatable:
            return backoff
        case _:
            return None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _header(name: str, value: str) -> dict[str, str]:
    if not value:
        return {}
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        # There is no standard encoding of such text in headers, and a changed name would be another session.
        raise BadInput(
            f"{name.removeprefix('x-neuraxis-')} goes in a header: write it in printable ASCII",
            field=name.removeprefix("x-neuraxis-"),
            code="bad_value",
        )
    return {name: value}


def _checked_id(exchange: str) -> str:
    if not exchange or not all(char.isascii() and (char.isalnum() or char in "-_") for char in exchange):
        raise BadInput(f"{exchange[:64]!r} is no exchange's id", field="exchange", code="bad_value")
    return exchange
