"""The application: the endpoints behind the door, and the document that describes them."""

from importlib.metadata import version

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin

from actors.gateway.agents import AgentPer
from actors.gateway.http import failures, front, health, loops, ticks
from actors.gateway.http.desk import Desk
from actors.gateway.http.door import Door, Limits
from actors.gateway.http.keys import ApiKeys
from actors.gateway.http.reading import strict_address

ENDPOINTS = (
    loops.complete_loop,
    loops.show_guardrails,
    loops.override_guardrails,
    ticks.observe_tick,
    health.healthz,
    health.readyz,
    front.show_front,
)


def application(desk: Desk, keys: ApiKeys, *, local: bool, limits: Limits, agent_per: AgentPer = "shared") -> Door:
    """Return the gateway as an ASGI application; see :class:`Door` and :func:`agent_for` for its arguments."""
    document = OpenAPIConfig(
        title="Neuraxis",
        version=version("neuraxis"),
        path="/schema",
        use_handler_docstrings=True,
        # No page that draws it: those load their scripts from foreign hosts.
        render_plugins=[JsonRenderPlugin(path=("/", "/openapi.json")), YamlRenderPlugin()],
    )
    app = Litestar(
        # A router of their own, so that the document's pages are not asked for their parameters.
        [Router("/", route_handlers=list(ENDPOINTS), guards=[strict_address])],
        state=State({"desk": desk, "agent_per": agent_per}),
        exception_handlers=failures.HANDLERS,
        openapi_config=document,
        logging_config=None,
        debug=False,
    )
    return Door(app, keys, local=local, limits=limits)
