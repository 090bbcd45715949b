"""Recorded conversations, and what other settings would have made of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from actors.registry import ACTORS
from events.log import Stored
from events.whatif import Changes, PastReader, Report, Timeline
from schemas.event import Event
from schemas.subjects import Partitions
from schemas.vocabulary.act import ActPlanRequested
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from schemas.vocabulary.router import TiebreakRequested
from tests.actors.scenario import Address
from tests.events.recording import PARTITIONS, Recording

REQUESTS: frozenset[type[Event]] = frozenset({ActPlanRequested, ResponseRequested, TiebreakRequested})


def whatif(
    log: Sequence[Stored],
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    requests: frozenset[type[Event]] = REQUESTS,
    partitions: Partitions = PARTITIONS,
    **more: Any,
) -> Report:
    """Decide a log anew; ``more`` are other changes."""
    actors = tuple(ACTORS.values())
    reader = PastReader(actors, partitions)
    for stored in log:
        reader.feed(stored)
    timeline = Timeline(actors, partitions, reader.finish(), Changes(settings=settings or {}, **more), requests)
    for stored in log:
        timeline.feed(stored)
    return timeline.finish()


def live(texts: Sequence[tuple[str, str]], settings: Mapping[str, Mapping[str, Any]] | None = None) -> Recording:
    """Record inputs (session, text), each settled before the next, under settings as :func:`whatif` takes them."""
    recording = Recording(ACTORS.values())
    recording.configure(
        {name: msgspec.convert(values, ACTORS[name].settings_type) for name, values in (settings or {}).items()}
    )
    for number, (session, text) in enumerate(texts):
        recording.send(InputReceived(text=text), Address("ann", session, f"exchange-{number}"))
        recording.settle()
    return recording


def ends(log: Sequence[Stored]) -> dict[str, ResponseEmitted]:
    """Return each exchange's end."""
    found = {}
    for stored in log:
        if stored.subject.endswith(".response.emitted"):
            found[stored.headers["ce-exchange"]] = msgspec.json.decode(stored.data, type=ResponseEmitted)
    return found
