"""Requests that this worker cannot answer are left to those that can, for a while. Pure, on a clock of the test's."""

from actors.runtime.effectors.left_to_others import LeftToOthers


class HandClock:
    """A clock that goes on by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000_000_000

    def now_ns(self) -> int:
        return self.now

    def elapsed_ns(self) -> int:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


def tries(left: LeftToOthers, clock: HandClock, kind: str, seq: int, stored_ns: int) -> float:
    """Return the seconds until a request that nobody takes is kept."""
    began = clock.now
    while pause_s := left.pause_s(kind, seq, stored_ns):
        assert 0 < pause_s <= 2
        clock.pass_s(pause_s)
    return (clock.now - began) / 1e9


def test_a_request_is_left_to_others_for_a_while_and_then_kept() -> None:
    clock = HandClock()
    assert 120 <= tries(LeftToOthers(clock, 120.0), clock, "late", 7, clock.now) < 123


def test_what_waited_behind_one_that_nobody_took_does_not_wait_as_long_again() -> None:
    clock = HandClock()
    left, stored_ns = LeftToOthers(clock, 120.0), clock.now
    assert tries(left, clock, "gone", 7, stored_ns) > 0
    assert [tries(left, clock, "gone", seq, stored_ns + seq) for seq in range(8, 3_000)] == [0.0] * 2_992
    clock.pass_s(60)
    assert tries(left, clock, "gone", 9_000, clock.now) >= 120, "whoever has made this one knows its kind"
    assert tries(left, clock, "late", 9_001, stored_ns) >= 120, "another kind"


def test_requests_that_are_out_at_once_are_each_left_for_as_long() -> None:
    clock = HandClock()
    left = LeftToOthers(clock, 10.0)
    began, kept = clock.now, set[int]()
    while len(kept) < 3:
        kept |= {seq for seq in (1, 2, 3) if not left.pause_s("", seq, began + seq)}
        clock.pass_s(0.5)
        assert clock.now - began < 12e9
    assert clock.now - began >= 10e9


def test_what_is_remembered_is_bounded() -> None:
    clock = HandClock()
    left = LeftToOthers(clock, 10.0)
    for seq in range(5_000):
        left.pause_s(str(seq % 7), seq, clock.now + seq)
    assert len(left._left) <= 1_000
