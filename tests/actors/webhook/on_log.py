"""Alerts on a real broker's log, and what is recorded of their deliveries."""

from actors.runtime.envelopes import to_record
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from events.log import Record
from events.make_decision import Cause, address_events
from schemas.event import Event
from schemas.subjects import Partitions
from tests.events.setting import collect


def stored(number: int, event: Event) -> Record:
    """Return an alert as its actor's shell appends it."""
    cause = Cause(f"cause-{number}", 0, 0, "", "", "", "_", "_")
    [decided] = address_events("alerts", cause, (event,), Partitions())
    return to_record(decided, "test", "", 1_750_000_000_000_000_000, 0)


async def recorded(log: JetStreamLog) -> list[Event]:
    found = [decode(each) for each in await collect(log, filters=("log.*.*.webhook.>",))]
    return [each.message.event for each in found if isinstance(each, Recorded)]
