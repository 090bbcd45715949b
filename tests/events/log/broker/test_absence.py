"""A broker that is away is spoken of at once, and then ever more rarely."""

from structlog.testing import capture_logs

from events.jetstream.broker_outage import BrokerOutage
from events.warning_backoff import MAX_INTERVAL_S, MOST_PROBLEMS, OVER_S, SharedWarningBackoff


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


def test_what_many_meet_alike_is_said_once_for_all_and_each_other_problem_for_itself() -> None:
    clock = Clock()
    shared = SharedWarningBackoff(clock)
    said = []
    for _ in range(20):
        said += [(clock.now, reader) for reader in range(25) if shared.is_due("JetStream is off")]
        clock.now += 1.0
    assert [at - 100.0 for at, _ in said] == [0, 1, 3, 7, 15]
    assert shared.is_due("no such stream")


def test_a_shared_problem_that_nobody_met_for_long_is_new_and_few_are_remembered() -> None:
    clock = Clock()
    shared = SharedWarningBackoff(clock)
    assert [shared.is_due("away"), shared.is_due("away")] == [True, False]
    clock.now += OVER_S
    assert [shared.is_due("away"), shared.is_due("away")] == [True, False]
    for number in range(MOST_PROBLEMS):
        assert shared.is_due(f"problem {number}")
    assert shared.is_due("away"), "it was dropped for newer ones"
