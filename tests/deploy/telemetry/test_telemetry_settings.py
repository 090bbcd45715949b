"""Telemetry that cannot work is refused at the start, with how to write it."""

import pytest

from deploy.config.loading import RUNNING_SECTIONS, BadConfiguration, Config, assignment_layer, load
from deploy.processes.listen_address import Address
from deploy.telemetry.telemetry_settings import check_telemetry, metrics_address
from tests.each import each


def configured(*assignments: str) -> Config:
    return load(RUNNING_SECTIONS, file=None, environment={}, flags=[assignment_layer(each) for each in assignments])


def test_by_default_metrics_are_told_on_any_port_of_loopback_and_no_traces_are_sent() -> None:
    assert metrics_address(configured()) == Address("127.0.0.1", 0)
    assert configured().telemetry.traces == ""
    check_telemetry(configured())


def test_metrics_can_be_off() -> None:
    assert metrics_address(configured("telemetry.metrics=off")) is None


@each(
    ("assignment", "message"),
    [
        ("telemetry.metrics=9464", r"telemetry\.metrics .*HOST:PORT"),
        ("telemetry.metrics=localhost:99999", r"telemetry\.metrics .*127\.0\.0\.1:9464"),
        ("telemetry.traces=localhost:4318", r"telemetry\.traces .*http://127\.0\.0\.1:4318"),
        ("telemetry.traces=http://[::1", r"telemetry\.traces .*http://127\.0\.0\.1:4318"),
    ],
)
def test_anything_else_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(BadConfiguration, match=message):
        check_telemetry(configured(assignment))
