"""Recorded conversations, and what other settings would have made of them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from actors.registry import ACTORS
from actors.responder.settings import ResponderSettings
from deploy.replaying.what_if import REQUESTS
from events.bundles import Redaction
from events.log import Stored
from events.replay.whatif import Changes, RecordIndexer, Report, Timeline
from events.sealing.sealing import closed_sealing
from schemas.envelope import decode_headers
from schemas.event import Event
from schemas.subjects import Partitions
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.scenario import Address
from tests.events.recording import PARTITIONS, Recording


def whatif(
    log: Sequence[Stored],
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    requests: frozenset[type[Event]] = REQUESTS,
    partitions: Partitions = PARTITIONS,
    of: frozenset[str] = frozenset(),
    **more: Any,
) -> Report:
    """Decide a log anew, and tell the fates ``of`` exchanges; ``more`` are other changes."""
    actors = tuple(ACTORS.values())
    reader = RecordIndexer(actors, partitions)
    for stored in log:
        reader.feed(stored)
    changes = Changes(settings=settings or {}, **more)
    timeline = Timeline(actors, partitions, reader.finish(), changes, requests, chosen=of)
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


def with_model(texts: Sequence[tuple[str, str]], answer: str = "Lima.", orders: Sequence[Event] = ()) -> Recording:
    """Record exchanges that a model answers, as soon as it is asked, behind orders to everybody."""
    recording = Recording(ACTORS.values())
    settings = ResponderSettings(backend="llm")
    recording.configure({"responder": settings})
    for order in orders:
        recording.send(order, Address("", "", ""))
    for number, (session, text) in enumerate(texts):
        address = Address("ann", session, f"exchange-{number}")
        recording.send(InputReceived(text=text), address)
        recording.settle()
        answer_requests(recording, address, answer)
    return recording


def answer_requests(recording: Recording, address: Address, answer: str) -> None:
    asked = [each for each in recording.log if each.subject.endswith(".response.requested")]
    answered = {decode_headers(each.headers).cause for each in recording.log if ".llm." in each.subject}
    for request in asked:
        envelope = decode_headers(request.headers)
        if envelope.id in answered or envelope.exchange != address.exchange:
            continue
        completed = LlmCompleted(
            request=envelope.id,
            purpose="respond",
            text=answer,
            model="scripted",
            backend="openai",
            finish_reason="stop",
            prompt_tokens=1,
            completion_tokens=1,
            attempts=1,
        )
        recording.send(completed, address, ce_cause=envelope.id, ce_causeseq=str(request.seq))
        recording.settle()


def without_words(log: Sequence[Stored]) -> Sequence[Stored]:
    """Return a log as somebody reads it who was given it redacted."""
    redaction = Redaction(bytes(range(32)))
    return asyncio.run(closed_sealing().open([redaction.take(stored, stored) for stored in log]))


def ends(log: Sequence[Stored]) -> dict[str, ResponseEmitted]:
    """Return each exchange's end."""
    found = {}
    for stored in log:
        if stored.subject.endswith(".response.emitted"):
            found[stored.headers["ce-exchange"]] = msgspec.json.decode(stored.data, type=ResponseEmitted)
    return found
