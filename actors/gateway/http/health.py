"""The endpoints for probes: whether the process is alive, and whether it serves requests."""

from typing import Any

from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.openapi import ResponseSpec

from actors.gateway.http.check_results import passes
from actors.gateway.http.readiness_checks import Readiness, ReadinessChecks
from actors.gateway.http.scopes import PUBLIC


@get("/healthz", opt={PUBLIC: True})
async def healthz() -> dict[str, str]:
    """Say that the process lives."""
    return {"status": "ok"}


@get(
    "/readyz",
    opt={PUBLIC: True},
    responses={503: ResponseSpec(Readiness, description="It does not serve: the checks say why.")},
)
async def readyz(request: Request[Any, Any, State]) -> Response[Readiness]:
    """Say whether requests are served: the log works, the judgements of loops are read, all stages are served."""
    if request.app.state.opened.is_set():
        readiness: ReadinessChecks = request.app.state.readiness
        checks = await readiness.checks()
    else:
        checks = {"log": "the broker has not been reached yet"}
    ready = all(map(passes, checks.values()))
    return Response(
        Readiness(status="ready" if ready else "not_ready", checks=checks), status_code=200 if ready else 503
    )
