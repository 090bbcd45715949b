"""Errors in OpenAI's shape, for the paths that clients of OpenAI's call. Pure."""

import msgspec

from actors.gateway.http.check_results import without_locations

PATHS = ("/v1/chat/", "/v1/models", "/v1/moderations")
"""The prefixes of the paths that clients of OpenAI's call."""

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
    """Return whether errors at a path have OpenAI's shape."""
    return path.startswith(PATHS)


def failure_of(status: int, message: str, code: str, param: str | None = None) -> ApiFailure:
    """Return the body of an error with a status."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return ApiFailure(error=ApiError(message=without_locations(message), type=kind, param=param, code=code))
