"""Events that call for alerts, and partitions of alerts that hear them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from actors.alerts import ACTOR
from actors.alerts.settings import AlertsSettings
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of
from schemas.vocabulary.alerts import Alert, AlertsScheduled
from schemas.vocabulary.clock import ClockFired
from tests.actors.scenario import MS, Address, Partition

TRIPPED, TERMINATED, RECOVERED, RESET, BLOCKED, REJECTED = (
    CATALOGUE[f"forged_id.{name}"].sample
    for name in (
        "breaker.tripped", "breaker.terminated", "breaker.recovered", "breaker.reset", "reflex.blocked",
        "coherence.rejected",
    )
)  # fmt: skip
MINUTE_MS = 60_000


def sample(name: str, **changes: Any) -> Event:
    """Return the catalogue's sample of a subject, changed."""
    return msgspec.structs.replace(CATALOGUE[f"forged_id.{name}"].sample, **changes)


DEFAULTS = AlertsSettings()


def alerting(settings: AlertsSettings = DEFAULTS) -> Partition:
    """Return a partition with settings."""
    return Partition(ACTOR).configure(settings)


def in_session(session: str, agent: str = "agent", exchange: str = "exchange") -> Address:
    """Return the address of a session."""
    return Address(agent, session, exchange)


def alerts_in(events: Iterable[Event]) -> list[Alert]:
    """Return the alerts among events."""
    return [event for event in events if isinstance(event, Alert)]


def told(events: Iterable[Event]) -> list[tuple[str, str, int]]:
    """Return what alerts among events say: subject without its root, status, count."""
    return [(topic_of(each).removeprefix("forged_id.alert."), each.status, each.count) for each in alerts_in(events)]


def pass_time(alerts: Partition, ms: int) -> list[Event]:
    """Let time pass: whenever the timer that alerts has set is due, the clock fires it. Return what it led to."""
    until = alerts.now_ns + ms * MS
    led_to: list[Event] = []
    while alerts.state.wake_ns and alerts.state.wake_ns <= until:
        due_ns = alerts.state.wake_ns
        fired = ClockFired(set_by=topic_of(AlertsScheduled), due_ns=due_ns)
        after_ms = -((alerts.now_ns - due_ns) // MS)
        led_to += alerts.when(fired, Address("", "", ""), after_ms=after_ms)
    alerts.now_ns = until
    return led_to
