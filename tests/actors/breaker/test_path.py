"""The breaker among its neighbours: responder and clock, joined by a stream in memory."""

from typing import Any

from actors.registry import ACTORS
from schemas.catalogue import entry_of
from schemas.vocabulary.breaker import BreakerRecovered, BreakerRecoveryStarted, BreakerReset, BreakerTripped
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.coherence import CoherencePassed
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionPassed
from schemas.vocabulary.operator import BreakerResetOrdered
from schemas.vocabulary.reflex import ReflexPassed
from tests.actors.breaker.builders import GOOD, VIOLATING, appraised, layer, name_of
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import MS, Address

QUARTER_MS = 15 * 60_000


class Path(Pipeline):
    """Inputs come with the words of the stages before the breaker; nothing but it or a deadline ends them."""

    def __init__(self) -> None:
        super().__init__({name: ACTORS[name] for name in ("breaker", "clock", "responder")})

    def say(self, falsehood: float, exchange: str) -> None:
        address = Address("ann", "morning", exchange)
        self.send(InputReceived(text="Hello"), address)
        for passed in (ReflexPassed, IntuitionPassed, CoherencePassed):
            self.send(entry_of(passed).sample, address)
        self.send(appraised(layer(falsehood)), address)

    def of(self, kind: type[Any]) -> list[Any]:
        return [message for message in self.stream if isinstance(message.event, kind)]

    def end_of(self, exchange: str) -> tuple[str, str]:
        [end] = [each.event for each in self.ends() if each.exchange == exchange]
        return end.stage, end.action  # type: ignore[attr-defined]


def test_a_violating_input_is_withheld_and_so_is_what_follows_until_trust_is_rebuilt():
    path = Path()
    for exchange, falsehood in (("bad", VIOLATING), ("one", 0.0), ("two", 0.0), ("three", 0.0)):
        path.say(falsehood, exchange)
    for exchange in ("bad", "one", "two"):
        assert path.end_of(exchange) == ("BREAKER", "WITHHELD")
    assert "three" not in {end.exchange for end in path.ends()}, "cleared: it goes on to the arbiter"


def test_recovery_starts_by_itself_a_quarter_of_an_hour_after_the_trip_and_ends_no_exchange():
    """VIOLATED to RECOVERY by the timer; EventualProgress."""
    path = Path()
    path.say(VIOLATING, "bad")
    tripped_ns = path.of(BreakerTripped)[0].time_ns
    path.advance(QUARTER_MS - 1)
    assert path.of(BreakerRecoveryStarted) == []
    path.advance(1)
    [fired], [started] = path.of(ClockFired), path.of(BreakerRecoveryStarted)
    assert (fired.agent, fired.session, fired.exchange) == ("ann", "morning", "")
    assert fired.time_ns == tripped_ns + QUARTER_MS * MS
    assert (started.event.by, path.causes[started.id]) == ("timer", fired.id)
    assert len(path.ends()) == 1


def test_an_open_exchange_is_not_ended_by_the_session_s_timer():
    path = Path()
    path.say(VIOLATING, "bad")
    path.send(InputReceived(text="Hello", deadline_after_ms=QUARTER_MS + 1), Address("ann", "morning", "open"))
    path.advance(QUARTER_MS)
    assert len(path.of(ClockFired)) == 1
    assert [end.exchange for end in path.ends()] == ["bad"]
    path.advance(1)
    assert path.end_of("open")[1] == "FAILED"


def test_an_input_in_between_starts_the_recovery_and_the_timer_never_goes_off():
    path = Path()
    path.say(VIOLATING, "bad")
    path.advance(QUARTER_MS - 1)
    path.say(GOOD, "good")
    path.advance(10 * QUARTER_MS)
    assert [each.event.by for each in path.of(BreakerRecoveryStarted)] == ["input"]
    assert path.of(ClockFired) == []


def test_calm_time_alone_ends_a_recovery_by_the_clock_s_event():
    path = Path()
    path.say(VIOLATING, "bad")
    path.advance(QUARTER_MS)
    path.advance(96 * QUARTER_MS - 1)
    assert path.of(BreakerRecovered) == []
    path.advance(1)
    [recovered] = path.of(BreakerRecovered)
    assert (recovered.event.by, recovered.event.standing.trust) == ("timer", 0.15)
    assert [fired.event.set_by for fired in path.of(ClockFired)] == [
        "forged_id.breaker.tripped",
        "forged_id.breaker.recovery_started",
    ]
    path.say(0.0, "good")
    assert "good" not in {end.exchange for end in path.ends()}, "it is let through"
    path.advance(96 * QUARTER_MS)
    assert len(path.of(BreakerRecovered)) == 1


def test_a_recovery_that_inputs_have_ended_is_not_ended_again():
    path = Path()
    path.say(VIOLATING, "bad")
    for place in range(3):
        path.say(0.0, f"good {place}")
    path.advance(200 * QUARTER_MS)
    assert [each.event.by for each in path.of(BreakerRecovered)] == ["input"]


def test_a_second_trip_is_woken_from_by_itself_too():
    path = Path()
    path.say(VIOLATING, "bad")
    path.say(VIOLATING, "worse")
    path.advance(QUARTER_MS)
    assert [each.event.by for each in path.of(BreakerRecoveryStarted)] == ["input", "timer"]


def test_a_terminated_session_stays_withheld_until_an_operator_resets_it():
    path = Path()
    for exchange in ("one", "two", "three", "four"):
        path.say(VIOLATING, exchange)
    path.advance(10 * QUARTER_MS)
    path.say(0.0, "good")
    assert {path.end_of(each) for each in ("one", "two", "three", "four", "good")} == {("BREAKER", "WITHHELD")}
    path.send(BreakerResetOrdered(by="ann", why="reviewed"), Address("ann", "morning", ""))
    assert len(path.of(BreakerReset)) == 1
    path.say(0.0, "better")
    assert name_of(path.stream[-1].event) == "cleared"
