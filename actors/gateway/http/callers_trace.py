"""The trace context of a caller, for the events that its request puts into the log."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from actors.gateway.external_events import CALLERS_TRACE
from schemas.intake.trace_context import valid_traceparent

HEADERS = ("traceparent", "ce-traceparent")
"""The headers that may hold a caller's trace context: the W3C's, or CloudEvents' attribute over HTTP."""


class CallersTraceMiddleware(ASGIMiddleware):
    """Keeps the caller's trace context while its request is served; one that is not valid counts as none."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve one request."""
        headers = ASGIConnection[Any, Any, Any, Any](scope).headers
        given = (valid_traceparent(headers.get(name, "")) for name in HEADERS)
        token = CALLERS_TRACE.set(next(filter(None, given), ""))
        try:
            await next_app(scope, receive, send)
        finally:
            CALLERS_TRACE.reset(token)
