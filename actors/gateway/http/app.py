"""The application: the endpoints, what they ask, and the document that describes them."""

from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Litestar, Request, Router
from litestar.datastructures import State
from litestar.exceptions import NotFoundException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin

from actors.gateway.agents import AgentPer
from actors.gateway.http import failures, front, health, metrics, operating
from actors.gateway.http.access import AccessMiddleware, Limits
from actors.gateway.http.dashboard import endpoints as dashboard
from actors.gateway.http.feedback import endpoints as feedback_endpoints
from actors.gateway.http.feedback.service import FeedbackService
from actors.gateway.http.guard import endpoints as guard_endpoints
from actors.gateway.http.guard.service import GuardService
from actors.gateway.http.keys import ApiKeys
from actors.gateway.http.loops import endpoints as loops
from actors.gateway.http.loops import ticks
from actors.gateway.http.loops.service import LoopService
from actors.gateway.http.metrics import REQUESTS, Measuring
from actors.gateway.http.openai import endpoints
from actors.gateway.http.openai.conversing import Conversations
from actors.gateway.http.openai.forwarding import Forwarding
from actors.gateway.http.operating import Operations, Operators
from actors.gateway.http.reading import strict_address
from actors.gateway.http.records import endpoints as records_endpoints
from actors.gateway.http.records import examining
from actors.gateway.http.records.endpoints import Records
from actors.gateway.http.records.examining import Examinations

SCHEMA = "/schema"
"""Where the document is."""

ENDPOINTS = (
    loops.complete_loop,
    loops.show_guardrails,
    loops.override_guardrails,
    ticks.observe_tick,
    *feedback_endpoints.ENDPOINTS,
    *guard_endpoints.ENDPOINTS,
    *operating.ENDPOINTS,
    *records_endpoints.ENDPOINTS,
    *examining.ENDPOINTS,
    *endpoints.ENDPOINTS,
    health.healthz,
    health.readyz,
    metrics.show_metrics,
    front.show_front,
    *dashboard.ENDPOINTS,
)


class Services(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the endpoints ask, each by its name in the application's state.

    ``operations`` are done for whoever has an operator's key; where there are no keys of either kind, for anybody on
    this machine, who might as well use the command line. ``forwarding`` passes requests for others' models on; None
    where there is no endpoint for them.
    """

    loops: LoopService
    conversations: Conversations
    guard: GuardService
    feedback: FeedbackService
    operations: Operations
    records: Records
    examinations: Examinations
    measuring: Measuring
    forwarding: Forwarding | None = None


def application(
    services: Services,
    keys: ApiKeys,
    *,
    local: bool,
    limits: Limits,
    operator_keys: ApiKeys | None = None,
    agent_per: AgentPer = "shared",
) -> AccessMiddleware:
    """Return the gateway as an ASGI application; see :class:`AccessMiddleware` and :func:`agent_for` for the rest."""
    operators = Operators(operator_keys or ApiKeys(), open=local and not keys)
    renderers = [JsonRenderPlugin(path=("/", "/openapi.json")), YamlRenderPlugin()]
    served = {f"{SCHEMA}{path}".rstrip("/") for each in renderers for path in each.paths}

    async def refuse_other_paths(request: Request[Any, Any, Any]) -> None:
        # The framework answers them with a page of its own, and all else that is wrong with our JSON.
        if request.url.path.rstrip("/") not in served:
            raise NotFoundException

    document = OpenAPIConfig(
        title="Neuraxis",
        version=version("neuraxis"),
        path=SCHEMA,
        openapi_router=Router(SCHEMA, route_handlers=[], include_in_schema=False, before_request=refuse_other_paths),
        use_handler_docstrings=True,
        # No page that draws it: those load their scripts from foreign hosts.
        render_plugins=renderers,
    )
    app = Litestar(
        # A router of their own, so that the document's pages are not asked for their parameters.
        [Router("/", route_handlers=list(ENDPOINTS), guards=[strict_address])],
        state=State({**msgspec.structs.asdict(services), "agent_per": agent_per, "operators": operators}),
        middleware=[REQUESTS.middleware],
        exception_handlers=failures.HANDLERS,
        openapi_config=document,
        logging_config=None,
        debug=False,
    )
    return AccessMiddleware(
        app, keys, local=local, limits=limits, operators=operators.keys, public=dashboard.public_paths()
    )
