"""Reading and checking the settings of telemetry."""

from deploy.config.loading import Config
from deploy.processes.listen_address import Address, address_of
from deploy.telemetry.collector import check_collector


def metrics_address(config: Config) -> Address | None:
    """Return the address at which a worker serves its metrics; None if it does not. Raises BadConfiguration."""
    return address_of(config.telemetry.metrics, "telemetry.metrics", "127.0.0.1:9464")


def check_telemetry(config: Config) -> None:
    """Raise BadConfiguration if telemetry is configured and cannot work; called before anything starts."""
    metrics_address(config)
    check_collector(config.telemetry.traces)
