"""HTTP service discovery for Prometheus: the addresses of the worker processes' metrics."""

from typing import Any

import msgspec
from litestar import Request, get
from litestar.datastructures import State

from actors.gateway.http.metrics import PATH, MetricsSource
from actors.gateway.http.scopes import READ


class ScrapeTargets(msgspec.Struct, frozen=True):
    """Addresses (HOST:PORT) with the labels that their metrics get, as Prometheus' ``http_sd_configs`` reads it."""

    targets: tuple[str, ...]
    labels: dict[str, str]


@get(f"{PATH}/targets", security=READ)
async def show_targets(request: Request[Any, Any, State]) -> list[ScrapeTargets]:
    """Return the addresses at which the living worker processes serve their metrics, for Prometheus."""
    metrics_source: MetricsSource = request.app.state.metrics_source
    found = sorted(await metrics_source.targets(), key=lambda each: (each.process, each.address))
    return [ScrapeTargets((each.address,), {"process": each.process}) for each in found]
