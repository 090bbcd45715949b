"""Errors in OpenAI's shape, for the paths where clients of OpenAI's look for them. Pure."""

import msgspec

from actors.gateway.http.readiness_checks import without_places

PATHS = ("/v1/chat/", "/v1/models", "/v1/moderations")
"""What the paths begin with."""

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class ApiError(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong: ``param`` names the parameter in question, ``code`` is stable."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ApiFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request could not be served, as clients of OpenAI's read it."""

    error: ApiError


def is_openai(path: str) -> bool:
    """Whether errors at a path are OpenAI's."""
    return path.startswith(PATHS)


def failure_of(status: int, message: str, code: str, param: str | None = None) -> ApiFailure:
    """Return an error of a status."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return ApiFailure(error=ApiError(message=without_places(message), type=kind, param=param, code=code))
