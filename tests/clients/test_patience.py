"""How long a reading of events waits for a server that is away. Pure."""

import pytest

import neuraxis
from neuraxis.following import STREAM_ENDED, Following
from tests.each import each


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def reading(clock: Clock, patience_s: float = 30.0) -> Following:
    return Following("forged_id.>", 0, words=False, patience_s=patience_s, clock=clock)


def test_pauses_grow_up_to_a_limit_and_begin_anew_once_something_came() -> None:
    clock = Clock()
    following = reading(clock)
    pauses = [following.pause_after(STREAM_ENDED) for _ in range(8)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    list(following.take(b": nothing new\n\n"))
    assert following.pause_after(STREAM_ENDED) == 0.1


def test_who_is_away_for_too_long_is_given_up() -> None:
    clock = Clock()
    following = reading(clock)
    clock.now = 100.0  # so long an event was being dealt with
    following.pause_after(STREAM_ENDED)
    clock.now = 129.0
    following.pause_after(STREAM_ENDED)
    clock.now = 130.0
    with pytest.raises(neuraxis.NotReachable):
        following.pause_after(STREAM_ENDED)


def test_a_connection_on_which_nothing_came_counts_from_its_beginning() -> None:
    clock = Clock()
    following = reading(clock)
    assert following.opening_s == 30.0
    following.headers()
    clock.now = 20.0
    following.pause_after(STREAM_ENDED)
    assert following.opening_s == 10.0
    following.headers()
    clock.now = 30.0
    with pytest.raises(neuraxis.NotReachable):
        following.pause_after(STREAM_ENDED)


def test_a_connection_that_breaks_after_a_long_time_counts_from_its_break() -> None:
    clock = Clock()
    following = reading(clock)
    following.headers()
    list(following.take(b": nothing new\n\n"))
    clock.now = 100.0
    following.pause_after(STREAM_ENDED)
    assert following.opening_s == 30.0


def test_the_server_may_ask_for_a_longer_pause() -> None:
    assert reading(Clock()).pause_after(neuraxis.RateLimited("busy", retry_after=3.0)) == 3.0


@each("kind", [neuraxis.BadInput, neuraxis.Unauthorized, neuraxis.Forbidden, neuraxis.BadAnswer])
def test_what_waiting_does_not_help_is_raised_at_once(kind: type[neuraxis.NeuraxisError]) -> None:
    with pytest.raises(kind):
        reading(Clock()).pause_after(kind("no"))
