"""Telemetry as it is configured, checked where a person sees it."""

from deploy.config.loading import Config
from deploy.processes.listen_address import Address, address_of
from deploy.telemetry.collector import check_collector


def metrics_address(config: Config) -> Address | None:
    """Return where a worker tells its metrics; None: nowhere. Raises BadConfiguration."""
    return address_of(config.telemetry.metrics, "telemetry.metrics", "127.0.0.1:9464")


def check_telemetry(config: Config) -> None:
    """Refuse telemetry that cannot work, before anything starts. Raises BadConfiguration."""
    metrics_address(config)
    check_collector(config.telemetry.traces)
