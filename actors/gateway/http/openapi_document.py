"""The OpenAPI document: how it is rendered, and the responses that every endpoint may give besides its own."""

from collections.abc import Iterator
from typing import Any

from litestar import Request
from litestar.openapi.plugins import YamlRenderPlugin
from litestar.openapi.spec import OpenAPI, OpenAPIMediaType, OpenAPIResponse, Operation, Reference

from actors.gateway.http.openai.failures import is_openai

_METHODS = ("get", "post", "put", "patch", "delete")
_COMMON = {
    400: "The request is not valid: the message says why.",
    401: "The request has no valid key.",
    403: "The key lacks the scope, or is for another agent; or the request comes from a page of another site.",
    408: "The body did not arrive in time.",
    413: "The body, or what would be stored of it, is too large.",
    429: "Too many requests are being served, or the key has asked too often: `Retry-After` says when to try again.",
    503: "The broker is away, or was not reached yet: `Retry-After` says when to try again.",
}
"""Status -> its description, for every endpoint that requires a key. A description of the endpoint's own is kept."""

_STREAM = "text/event-stream"
_STREAMED = "/v1/chat/completions"
"""The path whose POST may also be answered as a stream of events; in Litestar a status can have only one media type."""


class YamlOnce(YamlRenderPlugin):
    """Renders the document as YAML once: that takes a tenth of a second, in which nobody else is served."""

    _rendered = b""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """Return the document."""
        self._rendered = self._rendered or super().render(request, openapi_schema)
        return self._rendered


def operations(document: OpenAPI) -> Iterator[tuple[str, str, Operation]]:
    """Yield every (path, method, operation), sorted by path."""
    for path, item in sorted((document.paths or {}).items()):
        for method in _METHODS:
            operation: Operation | None = getattr(item, method)
            if operation is not None:
                yield path, method, operation


def complete(document: OpenAPI) -> None:
    """Add to each operation the responses of the middleware around its handler, which Litestar does not know.

    For a parameter that cannot be read, Litestar describes errors of a shape of its own, which this gateway never
    sends.
    """
    for path, _, operation in operations(document):
        if not operation.security:
            continue
        failure = Reference(ref=f"#/components/schemas/{'ApiFailure' if is_openai(path) else 'Failure'}")
        responses = operation.responses = dict(operation.responses or {})
        for status, description in _COMMON.items():
            if not _is_ours(responses.get(str(status))):
                content = {"application/json": OpenAPIMediaType(schema=failure)}
                responses[str(status)] = OpenAPIResponse(description=description, content=content)
        answer = responses.get("200")
        if isinstance(answer, OpenAPIResponse) and answer.content and (path == _STREAMED or _STREAM in answer.content):
            # Without a schema: the schema would have to include every event type.
            answer.content[_STREAM] = OpenAPIMediaType()


def _is_ours(response: OpenAPIResponse | Reference | None) -> bool:
    """Return whether an endpoint has described a response itself: then its schema is a reference to a type of ours."""
    if not isinstance(response, OpenAPIResponse):
        return False
    return any(isinstance(each.schema, Reference) for each in (response.content or {}).values())
