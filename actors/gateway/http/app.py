"""The application: its endpoints, the services they call, and the document that describes them."""

import asyncio
from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Litestar, Request, Router
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.enums import HttpMethod, ScopeType
from litestar.exceptions import NotFoundException
from litestar.handlers import BaseRouteHandler
from litestar.middleware import DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components
from litestar.types import Message, Receive, Scope, Send

from actors.gateway.agents import AgentPer
from actors.gateway.http import failures, health, landing_page, metrics, openapi_document, operator_endpoints
from actors.gateway.http.access import AddressMiddleware, CapacityMiddleware, KeyMiddleware, Limits, guard_browsers
from actors.gateway.http.callers_trace import CallersTraceMiddleware
from actors.gateway.http.dashboard import endpoints as dashboard
from actors.gateway.http.feedback import endpoints as feedback_endpoints
from actors.gateway.http.feedback.service import FeedbackService
from actors.gateway.http.guard import endpoints as guard_endpoints
from actors.gateway.http.guard.service import GuardService
from actors.gateway.http.keys import ApiKeys
from actors.gateway.http.keys.rate import Rates
from actors.gateway.http.loops import endpoints as loop_endpoints
from actors.gateway.http.loops.service import LoopService
from actors.gateway.http.metrics import REQUESTS, MetricsSource
from actors.gateway.http.openai import endpoints as openai_endpoints
from actors.gateway.http.openai.chat_service import ChatService
from actors.gateway.http.openai.forwarding import UpstreamForwarder
from actors.gateway.http.operator_endpoints import Operations
from actors.gateway.http.readiness_checks import ReadinessChecks
from actors.gateway.http.records import endpoints as records_endpoints
from actors.gateway.http.records import examinations
from actors.gateway.http.records.endpoints import Records
from actors.gateway.http.records.examinations import Examinations
from actors.gateway.http.request_errors import NotReady
from actors.gateway.http.scopes import PUBLIC, SCHEMES, Audit, keep_to_scope
from actors.gateway.http.strict_requests import check_query_and_headers

SCHEMA = "/schema"
"""The path of the OpenAPI document."""

BROKER_WAIT_S = 2.0
"""Seconds that a request waits while the broker is not reached yet: enough for a gateway that has just restarted."""

_NOT_YET = "this gateway has not reached its broker yet: try again, /readyz tells"

ENDPOINTS = (
    *loop_endpoints.ENDPOINTS,
    *feedback_endpoints.ENDPOINTS,
    *guard_endpoints.ENDPOINTS,
    *operator_endpoints.ENDPOINTS,
    *records_endpoints.ENDPOINTS,
    *examinations.ENDPOINTS,
    *openai_endpoints.ENDPOINTS,
    health.healthz,
    health.readyz,
    metrics.show_metrics,
    metrics.show_targets,
    landing_page.show_landing_page,
    *dashboard.ENDPOINTS,
)


class Services(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The services that the endpoints call, each stored by its name in the application's state.

    ``audit`` records what an operator's key is about to do. ``forwarding`` forwards requests for other models; None
    where no upstream is configured.
    """

    loops: LoopService
    chat: ChatService
    readiness: ReadinessChecks
    guard: GuardService
    feedback: FeedbackService
    operations: Operations
    records: Records
    examinations: Examinations
    metrics_source: MetricsSource
    audit: Audit
    forwarding: UpstreamForwarder | None = None


class Gateway:
    """The gateway as an ASGI application. It serves probes at once, and everything else after :meth:`open`.

    The socket is open from the start, often held by a supervisor. Without this class, a request would wait there unread
    while the broker is away.
    """

    def __init__(self, app: Litestar) -> None:
        self._app = app

    def open(self, services: Services) -> None:
        """Serve requests from now on, including those that already wait."""
        self._app.state.update(msgspec.structs.asdict(services))
        self._app.state.opened.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == ScopeType.HTTP and scope["method"] == HttpMethod.HEAD:
            # HEAD is answered as GET without the body. Litestar would need another handler for each path, and it looks
            # for the handler before any middleware runs.
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        await self._app(scope, receive, send)


def application(keys: ApiKeys, *, local: bool, limits: Limits, agent_per: AgentPer = "shared") -> Gateway:
    """Return the gateway.

    Args:
        keys: The API keys, if any are required.
        local: Whether it listens on a loopback address: then, if no key is required, ``Host`` must name one.
        limits: How many requests are served at once.
        agent_per: See :func:`actors.gateway.agents.agent_for`.
    """
    renderers = [JsonRenderPlugin(path=("/", "/openapi.json")), openapi_document.YamlOnce()]
    served = {f"{SCHEMA}{path}".rstrip("/") for each in renderers for path in each.paths}

    async def describe(request: Request[Any, Any, Any]) -> None:
        # The framework would answer other paths with a page of its own; all other errors have our JSON shape.
        if request.url.path.rstrip("/") not in served:
            raise NotFoundException
        # Built when it is first asked for: that takes longer than all else that a gateway does at its start.
        openapi_document.complete(request.app.openapi_schema)

    openapi = OpenAPIConfig(
        title="Neuraxis",
        version=version("neuraxis"),
        path=SCHEMA,
        components=Components(security_schemes=dict(SCHEMES)),
        openapi_router=Router(SCHEMA, route_handlers=[], include_in_schema=False, before_request=describe),
        use_handler_docstrings=True,
        # No page that renders it: such pages load scripts from foreign hosts.
        render_plugins=renderers,
    )
    app = Litestar(
        # A router of its own, so that query parameters of the document's pages are not checked.
        [Router("/", route_handlers=list(ENDPOINTS), guards=[wait_until_open, check_query_and_headers, keep_to_scope])],
        state=State({"agent_per": agent_per, "api_keys": keys, "opened": asyncio.Event()}),
        middleware=[
            AddressMiddleware(keys, local=local),
            DefineMiddleware(KeyMiddleware, keys=keys),
            CapacityMiddleware(limits, Rates()),
            REQUESTS.middleware,
            CallersTraceMiddleware(),
        ],
        before_send=[guard_browsers],
        exception_handlers=failures.HANDLERS,
        openapi_config=openapi,
        logging_config=None,
        debug=False,
    )
    return Gateway(app)


async def wait_until_open(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Wait until the services of the endpoints are set: a guard of Litestar's. Raises NotReady."""
    if handler.opt.get(PUBLIC):
        return
    try:
        async with asyncio.timeout(BROKER_WAIT_S):
            await connection.app.state.opened.wait()
    except TimeoutError:
        raise NotReady(_NOT_YET) from None


def _without_body(send: Send) -> Send:
    is_sent = False

    async def send_head(message: Message) -> None:
        nonlocal is_sent
        if is_sent:
            return
        await send(message)
        is_sent = message["type"] == "http.response.start"
        if is_sent:  # at once: a stream of events has no end, and would hold the connection and a reader's place
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_head
