"""What a person reads on stderr while a command waits for its broker."""

from collections.abc import Mapping

from deploy.command_warnings import CommandWarnings
from tests.each import each

GONE = {"event": "broker_disconnected", "level": "warning", "servers": "nats://b:4222", "detail": "EOF"}
BACK = {"event": "broker_reconnected", "level": "info", "servers": "nats://b:4222"}
ERROR = {"event": "broker_error", "level": "warning", "detail": "permissions violation"}


def said(*events: Mapping[str, object]) -> list[str]:
    render = CommandWarnings()
    return [line for event in events if (line := render(None, "", dict(event)))]


def test_a_broker_that_goes_and_comes_is_two_sentences_whatever_fails_meanwhile() -> None:
    assert (
        said(GONE, *[ERROR] * 30, {"event": "broker_unreachable", "level": "warning"}, BACK, GONE, BACK)
        == [
            "neuraxis: the broker at nats://b:4222 is gone: waiting for it to come back",
            "neuraxis: the broker is back",
        ]
        * 2
    )


def test_the_same_complaint_is_made_once() -> None:
    assert said(ERROR, ERROR) == ["neuraxis: the broker says: permissions violation"]


@each(
    ("event", "line"),
    [
        ({"event": "snapshot_unusable", "level": "warning", "key": "a/1"}, ["neuraxis: snapshot unusable: key a/1"]),
        ({"event": "reading_retries", "level": "info"}, []),
        ({"event": "reading_silent", "level": "warning"}, []),
        ({"event": "broker_closed_connection", "level": "error"}, []),
    ],
)
def test_other_warnings_are_sentences_and_what_is_below_them_is_not_said(
    event: Mapping[str, object], line: list[str]
) -> None:
    assert said(event) == line
