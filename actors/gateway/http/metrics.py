"""The endpoints for Prometheus: metrics of the set and of this gateway's requests, and where workers have theirs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from litestar import MediaType, Request, Response, get
from litestar.datastructures import State
from litestar.plugins.prometheus import PrometheusConfig
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from actors.gateway.http.scopes import READ
from actors.gateway.metrics import Metrics
from actors.runtime.membership.heartbeat import MetricsAddress

PATH = "/metrics"

REQUESTS = PrometheusConfig(app_name="neuraxis", prefix="neuraxis_http", group_path=True, exclude=[PATH])
"""Litestar's count and duration of this gateway's requests, in the process's registry."""


class MetricsSource:
    """The metrics that the endpoint returns.

    Args:
        metrics: Counted from the log.
        log_seq: Returns the sequence of the log's last event.
        ledger_seq: Returns the sequence up to which the ledger is written; -1 where that is not known.
        served: Returns, for each stage that must be served, whether it is; None where that is not known.
        ready: Returns whether all readiness checks pass.
        targets: Returns where the living worker processes serve their own metrics.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        log_seq: Callable[[], Awaitable[int]],
        ledger_seq: Callable[[], Awaitable[int]],
        served: Callable[[], Mapping[str, bool | None]],
        ready: Callable[[], Awaitable[bool]],
        targets: Callable[[], Awaitable[Sequence[MetricsAddress]]],
    ) -> None:
        self._metrics = metrics
        self._log_seq = log_seq
        self._ledger_seq = ledger_seq
        self._served = served
        self._ready = ready
        self.targets = targets

    async def render(self) -> bytes:
        """Return all metrics in the format of Prometheus; raises LogError where the log cannot be read."""
        # All three at the same time, so that a scrape does not take long.
        asking, checking = asyncio.ensure_future(self._ledger_seq()), asyncio.ensure_future(self._ready())
        try:
            log_seq, ledger_seq, ready = await self._log_seq(), await asking, await checking
        finally:
            asking.cancel()
            checking.cancel()
        counted = self._metrics.render(log_seq=log_seq, ledger_seq=ledger_seq, served=self._served(), ready=ready)
        return counted + generate_latest(REGISTRY)


@get(PATH, security=READ, media_type=MediaType.TEXT)
async def show_metrics(request: Request[Any, Any, State]) -> Response[bytes]:
    """Return metrics of inputs and their ends, latencies, alerts, models, the ledger, and this gateway's requests."""
    metrics_source: MetricsSource = request.app.state.metrics_source
    return Response(await metrics_source.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})


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
