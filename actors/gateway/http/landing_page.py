"""The page at the gateway's root: a list of the endpoints, generated from the OpenAPI document.

It is a single file: no script, no picture, nothing from a foreign host.
"""

from html import escape
from typing import Any

from litestar import MediaType, Request, Response, get
from litestar.datastructures import State
from litestar.openapi.spec import OpenAPI

from actors.gateway.http.dashboard import PAGE
from actors.gateway.http.openapi_document import operations
from actors.gateway.http.scopes import ANY_KEY, OF_AGENT

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;"
    "padding:0 1rem}code{font-family:ui-monospace,monospace}dt{margin-top:1rem}dd{margin:0}"
)


@get(["/", "/docs"], media_type=MediaType.HTML, include_in_schema=False, security=ANY_KEY, opt={OF_AGENT: True})
async def show_landing_page(request: Request[Any, Any, State]) -> Response[str]:
    """Show what is served here, to a person."""
    page = page_of(request.app.openapi_schema)
    return Response(page, media_type=MediaType.HTML, headers={"Content-Security-Policy": _POLICY})


def page_of(document: OpenAPI) -> str:
    """Return the page made of an OpenAPI document."""
    served = "".join(
        f"<dt><code>{method.upper()} {escape(path)}</code></dt>"
        f"<dd>{escape((operation.description or operation.summary or '').splitlines()[0])}</dd>"
        for path, method, operation in operations(document)
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Neuraxis</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head><body>'
        f"<h1>Neuraxis {escape(document.info.version)}</h1><p>This is the gateway of a decision control plane for LLM "
        f'agents. <a href="{PAGE}">The dashboard</a> shows what it does, and did at any point of its log. Bodies and '
        f"answers are described in its OpenAPI document, as "
        f'<a href="/schema">JSON</a> and as <a href="/schema/openapi.yaml">YAML</a>; '
        f'<a href="/readyz">/readyz</a> says whether it serves.</p><dl>{served}</dl></body></html>\n'
    )
