"""What the routes of several endpoints share: a POST whose body is read strictly, and how failures are described."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from litestar import post
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import SecurityRequirement

from actors.gateway.http.bodies import Failure, read_body
from actors.gateway.http.openai.failures import ApiFailure, is_openai
from actors.gateway.http.scopes import OF_AGENT
from actors.gateway.http.strict_requests import refuse_unless

BAD_FIELD = "The request is not valid: the message names the field."
"""The description of a status 400."""


def failures_of(described: Mapping[int, str], shape: type[msgspec.Struct] = Failure) -> dict[int, ResponseSpec]:
    """Return status -> failure for the OpenAPI document, given status -> description."""
    return {status: ResponseSpec(shape, description=text) for status, text in described.items()}


def post_body(
    path: str,
    kind: type[msgspec.Struct],
    failures: Mapping[int, str],
    *,
    security: Sequence[SecurityRequirement],
    status_code: int = 200,
    read: Callable[[bytes, type[msgspec.Struct]], object] = read_body,
) -> post:
    """Return the decorator of an endpoint that takes a body of one kind, and that keys of one agent may call.

    Args:
        path: Where it is served.
        kind: What the body must be.
        failures: Status -> description; that of a request that is not valid (400) is added.
        security: The scope that it requires.
        status_code: The status of its answer.
        read: Refuses a body that is no ``kind``.
    """
    return post(
        path,
        status_code=status_code,
        security=security,
        before_request=refuse_unless(kind, read),
        responses=failures_of({400: BAD_FIELD, **failures}, ApiFailure if is_openai(path) else Failure),
        opt={OF_AGENT: True},
    )
