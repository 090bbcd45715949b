"""A broker that is away is spoken of at once, and then ever more rarely."""

from structlog.testing import capture_logs

from events.jetstream.broker_outage import BrokerOutage
from events.warning_backoff import MAX_INTERVAL_S


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def told(absence: BrokerOutage, clock: Clock, seconds: float) -> list[float]:
    """Have an attempt fail ten times a second, for so long; return when that was spoken of."""
    with capture_logs() as lines:
        for _ in range(round(seconds * 10)):
            absence.failed("connection refused")
            clock.now += 0.1
    return [round(line["for_s"]) for line in lines]


def test_ten_failures_a_second_are_a_line_now_and_then() -> None:
    clock = Clock()
    assert told(BrokerOutage("nats://broker:4222", clock), clock, 20) == [0, 1, 3, 7, 15]


def test_a_long_absence_is_spoken_of_every_minute() -> None:
    clock = Clock()
    times = told(BrokerOutage("nats://broker:4222", clock), clock, 1_000)
    assert times[-1] - times[-2] == MAX_INTERVAL_S


def test_the_next_absence_begins_anew_and_names_the_broker_and_what_to_do() -> None:
    clock = Clock()
    absence = BrokerOutage("nats://broker:4222", clock)
    told(absence, clock, 20)
    absence.ended()
    with capture_logs() as (lines):
        absence.failed("connection refused")
    assert (lines[0]["servers"], lines[0]["for_s"], lines[0]["detail"]) == (
        "nats://broker:4222",
        0.0,
        "connection refused",
    )
    assert "--nats" in lines[0]["remedy"]


def test_a_login_that_is_refused_is_told_from_a_broker_that_is_not_there() -> None:
    with capture_logs() as lines:
        BrokerOutage("nats://a:1").failed("nats: 'Authorization Violation'")
        BrokerOutage("nats://a:1").failed("connection refused")
    assert ["--creds" in line["remedy"] for line in lines] == [True, False]
