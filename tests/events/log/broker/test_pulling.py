"""What a server's statuses say of a pull request."""

from events.jetstream.reading.pull_protocol import undelivered_count
from tests.each import each


@each(
    ("headers", "left"),
    [
        ({"Status": "404"}, 7),
        ({"Status": "408", "Nats-Pending-Messages": "3"}, 3),
        ({"Status": "409", "Description": "Batch Completed", "Nats-Pending-Messages": "0"}, 0),
        ({"Status": "409", "Description": "Message Size Exceeds MaxBytes", "Nats-Pending-Messages": "2"}, 2),
        ({"Status": "409", "Description": "Consumer Deleted"}, None),
        ({"Status": "503"}, None),
    ],
)
def test_a_request_that_is_over_tells_what_it_left_and_any_other_status_is_a_loss(
    headers: dict[str, str], left: int | None
) -> None:
    assert undelivered_count(headers, 7) == left
