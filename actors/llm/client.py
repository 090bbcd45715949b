"""A client of one endpoint over HTTP: it adapts requests to what the endpoint supports, and limits what it reads."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from actors.llm.context_fitting import fit_to_context
from actors.llm.endpoint import Endpoint
from actors.llm.wire.dialect import Dialect, Dialects, learn_from_refusal
from actors.llm.wire.protocol import request_body
from actors.llm.wire.refusals import HIDDEN, reason_of, without_secrets
from actors.llm.wire.response_parsing import Completion, ListedModel, NotTheProtocol, Refused, read_models
from actors.llm.wire.response_reading import MOST_BYTES, CutShort, OnPiece, answer_in, whole_body
from events.libraries.http_client import httpx, new_client
from events.loggers import get_logger
from schemas.effectors.model_calls import Cut, ModelCall
from schemas.intake.retry_after import retry_after
from schemas.vocabulary.llm import ANSWER_FILTERED, ANSWER_INVALID

MOST_ERROR_BYTES = 64 * 1024
"""Most bytes of an error's body that are read."""

REASON_TIMEOUT_S = 2.0
"""Seconds within which the body of a refusal must follow its status."""

MOST_ADAPTATIONS = 10
"""Most times that one request is adapted: there are few parameters, and a context limit is found in a few steps."""

_TOO_MANY, _NOT_FOUND = 429, 404
_TRANSIENT = frozenset({408, 425, _TOO_MANY})
"""Statuses below 500 after which another attempt may succeed."""

_NOT_ABOUT_REQUEST = frozenset({401, 402, 403, 407, *_TRANSIENT})
"""Statuses that say nothing about the form of the request, so nothing is learned from them."""

_FINAL = re.compile(
    r"invalid_(?:request|api_key)|authentication|permission|insufficient_quota|not_found|content_filter"
)
"""Kinds of error after which another attempt will not succeed, for endpoints that report an error without status."""

_MODEL_MISSING = re.compile(r"(?i)\bmodel\b.{0,80}(?:not found|does not exist|is not a valid model|not exist)")
"""What some endpoints say under status 400 about a model that they do not have."""

_FILTERED = re.compile(r"(?i)content_filter|content[ _]management[ _]policy|content_policy_violation|ResponsibleAI")
"""Refusals because of the person's text, not because of the form of the request."""

_logger = get_logger("neuraxis.llm")


class CallFailed(Exception):
    """A call without an answer.

    Attributes:
        reason: One of the reasons of ``llm.failed``.
        error: A stable code of what happened: an exception's type, or ``HTTP <status>``.
        said: The reason that the endpoint gave, without secrets; it may repeat parts of the prompt.
        transient: Whether another call may succeed.
        dead: Whether it suggests that the endpoint does not work at all.
        retry_after_s: Seconds of pause that the endpoint asks for; 0 if it does not.
    """

    def __init__(
        self,
        reason: str,
        error: str,
        *,
        said: str = "",
        transient: bool = False,
        dead: bool = False,
        retry_after_s: float = 0.0,
    ) -> None:
        self.reason = reason
        self.error = error
        self.said = said
        self.transient = transient
        self.dead = dead
        self.retry_after_s = retry_after_s
        super().__init__(f"{reason}: {error}")


class _Refusal(CallFailed):
    """A call that the endpoint refused; ``whole`` is the full reason, ``status`` the HTTP status or 0."""

    whole = ""
    status = 0


class ClientAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, the number of calls, what the endpoint does not support of the request, and what was cut to fit."""

    completion: Completion
    calls: int = 1
    adapted: tuple[str, ...] = ()
    cuts: tuple[Cut, ...] = ()


class ChatClient:
    """A client of one endpoint; made by :meth:`open`."""

    def __init__(self, http: httpx.AsyncClient, endpoint: Endpoint, context: int) -> None:
        self._http = http
        self._endpoint = endpoint
        self._dialects = Dialects(context)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, endpoint: Endpoint, *, connect_s: float, concurrency: int, context: int = 0
    ) -> AsyncIterator["ChatClient"]:
        """Open connections as they are needed, and close them at the end.

        ``context`` is what its models take, in tokens of prompt and answer together (0: unknown).

        Raises:
            BadEnvironment: the environment's proxies or certificates cannot be used.
        """
        headers = {
            "User-Agent": "neuraxis",
            "Accept": "application/json, text/event-stream",
            # Compression saves little compared with the time that a model takes. An answer that is compressed anyway is
            # decompressed.
            "Accept-Encoding": "identity",
            **endpoint.key_headers,
        }
        http = new_client(
            headers=headers,
            # No time limit here: each request has its own, which its caller applies.
            timeout=httpx.Timeout(None, connect=connect_s),
            limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
            # A proxy that the environment names cannot reach an endpoint on this machine.
            trust_env=not endpoint.is_loopback,
        )
        async with http:
            yield cls(http, endpoint, context)

    async def models(self) -> tuple[ListedModel, ...]:
        """Return the models that the endpoint lists; raises CallFailed."""
        async with self._response("GET", "/models", b"", {}) as response:
            return read_models(await whole_body(response, MOST_BYTES))

    async def ask(
        self, call: ModelCall, model: str, request: str, on_piece: OnPiece, until: float | None = None
    ) -> ClientAnswer:
        """Ask a model; if it refuses a part of the request, adapt the request, send it again, and remember this.

        Args:
            call: What to ask.
            model: The model to ask.
            request: The request's id, for an endpoint that knows idempotency keys.
            on_piece: Gets each piece of text as it comes, if the call is to be streamed.
            until: When its caller stops waiting, by the event loop's clock (seconds); None: never.

        Raises:
            CallFailed: no usable answer came.
        """
        calls, sent_bodies = 0, set[bytes]()
        while True:
            dialect = self._dialects.of(model)
            fitting, cuts = fit_to_context(call, dialect.context, dialect.density)
            body = request_body(fitting, model, dialect)
            calls += 1
            try:
                key = _key(request, body, plain=body == request_body(call, model))
                completion = await self._ask(body, key, on_piece, until)
                return ClientAnswer(
                    completion=completion, calls=calls, adapted=dialect.adaptations_of(fitting), cuts=cuts
                )
            except _Refusal as refused:
                sent_bodies.add(body)
                learned = self._learn(dialect, refused, fitting, model, body)
                if learned is None or calls > MOST_ADAPTATIONS:
                    raise
                fitting, _ = fit_to_context(call, learned.context, learned.density)
                if request_body(fitting, model, learned) in sent_bodies:
                    raise

    def _learn(self, dialect: Dialect, refused: _Refusal, call: ModelCall, model: str, body: bytes) -> Dialect | None:
        """Learn from a refusal how to call a model, and log it."""
        if refused.status in _NOT_ABOUT_REQUEST:
            return None
        learned = learn_from_refusal(
            dialect, refused.whole, call, msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        )
        if learned is None or learned == dialect:
            return None
        changed = {
            name: getattr(learned, name)
            for name in Dialect.__struct_fields__
            if getattr(learned, name) != getattr(dialect, name)
        }
        self._dialects.learn(model, changed)
        _logger.warning("request_translated", model=model, error=refused.error, now=changed)
        return learned

    async def _ask(self, body: bytes, key: str, on_piece: OnPiece, until: float | None) -> Completion:
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        async with self._response("POST", "/chat/completions", body, headers) as response:
            completion = await answer_in(response, on_piece, until)
            # These values are stored in the log, too, so they must not hold the key.
            model, end = self._without_key(completion.model), self._without_key(completion.finish_reason)
            return msgspec.structs.replace(completion, model=model, finish_reason=end)

    def _without_key(self, word: str) -> str:
        key = self._endpoint.api_key
        return word.replace(key, HIDDEN) if key else word

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> AsyncIterator[httpx.Response]:
        status = 0
        try:
            url = self._endpoint.url_of(path)
            async with self._http.stream(method, url, content=body or None, headers=headers) as response:
                # A cookie would be sent with every later call, whoever makes it.
                self._http.cookies.clear()
                status = response.status_code
                if not response.is_success:
                    raise await self._failure_of_refusal(response)
                yield response
        except NotTheProtocol as wrong:
            said = without_secrets(wrong.said, self._endpoint.api_key)
            raise CallFailed(ANSWER_INVALID, wrong.error, said=said) from wrong
        except Refused as refused:
            raise self._failure_of_error(status, refused) from refused
        except CutShort as cut:
            raise CallFailed("endpoint_unreachable", "StreamCutShort", transient=True, dead=True) from cut
        except httpx.DecodingError as wrong:
            raise CallFailed(ANSWER_INVALID, type(wrong).__name__) from wrong
        except httpx.HTTPError as wrong:
            raise CallFailed("endpoint_unreachable", type(wrong).__name__, transient=True, dead=True) from wrong

    def _failure_of_error(self, status: int, refused: Refused) -> CallFailed:
        """Return the failure for an error under a good status, by the status that the error itself states."""
        stated, server_error = refused.status, refused.status >= httpx.codes.INTERNAL_SERVER_ERROR
        error = f"HTTP {status}: error {stated}" if stated else f"HTTP {status}: error"
        if refused.midway and not _FINAL.search(refused.said) and (stated in _TRANSIENT or server_error or not stated):
            # The endpoint accepted the request and broke off: the model crashed, or memory ran out.
            unreachable = "endpoint_unreachable"
            return self._failure(unreachable, "StreamError", refused.said, stated, transient=True, dead=True)
        return self._failure(
            "no_model" if stated == _NOT_FOUND else "endpoint_refused", error, refused.said, stated,
            transient=stated in _TRANSIENT or server_error, dead=server_error,
        )  # fmt: skip

    async def _failure_of_refusal(self, response: httpx.Response) -> CallFailed:
        status = response.status_code
        try:
            async with asyncio.timeout(REASON_TIMEOUT_S):
                said = reason_of(await whole_body(response, MOST_ERROR_BYTES))
        except (NotTheProtocol, httpx.HTTPError, TimeoutError):
            said = ""  # only the status is known
        error, dead = f"HTTP {status}", status >= httpx.codes.INTERNAL_SERVER_ERROR
        transient = dead or status in _TRANSIENT
        wait = retry_after(response.headers.get("Retry-After", ""), datetime.now(UTC)) if transient else 0.0
        # Only the text of a refusal says whether the model or the address is wrong.
        says_missing = status == 400 and _MODEL_MISSING.search(said) is not None
        lacks_model = "model" in said.lower() if status == _NOT_FOUND else says_missing
        reason = "no_model" if lacks_model else "endpoint_refused"
        return self._failure(reason, error, said, status, transient=transient, dead=dead, retry_after_s=wait)

    def _failure(
        self,
        reason: str,
        error: str,
        said: str,
        status: int,
        *,
        transient: bool,
        dead: bool,
        retry_after_s: float = 0.0,
    ) -> _Refusal:
        safe_text = without_secrets(said, self._endpoint.api_key)
        if _FILTERED.search(said):
            reason, transient, dead = ANSWER_FILTERED, False, False
        failure = _Refusal(reason, error, said=safe_text, transient=transient, dead=dead, retry_after_s=retry_after_s)
        failure.whole, failure.status = said, status
        return failure


def _key(request: str, body: bytes, *, plain: bool) -> str:
    """Return the idempotency key of a body: an endpoint may refuse another body under it, or repeat its answer.

    ``plain``: the body is as it is before anything is adapted to the endpoint.
    """
    return request if plain else f"{request}-{sha256(body).hexdigest()[:8]}"
