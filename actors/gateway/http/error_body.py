"""The body of an error: in OpenAI's shape for the paths of OpenAI's clients, else in our own. Pure."""

import msgspec

from actors.gateway.http.bodies import Failure
from actors.gateway.http.check_results import without_locations
from actors.gateway.http.openai.failures import ApiFailure, failure_of, is_openai


def error_body(
    path: str,
    status: int,
    code: str,
    message: str,
    *,
    field: str = "",
    loop_id: str | msgspec.UnsetType | None = msgspec.UNSET,
) -> Failure | ApiFailure:
    """Return the body of an error for a path."""
    if is_openai(path):
        return failure_of(status, message, code, field or None)
    return Failure(code=code, field=field or msgspec.UNSET, message=without_locations(message), loop_id=loop_id)
