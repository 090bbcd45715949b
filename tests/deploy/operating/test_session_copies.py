"""Whom a session's words reached within its agent, read from a real log."""

import asyncio

import msgspec

from actors.runtime.envelopes import to_record
from deploy.operating.session_copies import sessions_with_copies
from events.jetstream import JetStreamLog
from events.log import Append, Record
from events.make_decision import Cause, address_events
from events.replay.unread_events import UnreadEvents
from schemas.catalogue import CATALOGUE, entry_of
from schemas.event import Event
from schemas.subjects import Partitions
from schemas.vocabulary.drift import DriftThought
from schemas.vocabulary.memory import Fact, MemoryRecalled, MemoryRemembered, Recollection, Retired
from tests.broker import Broker

PARTITIONS = Partitions()
THOUGHT = msgspec.structs.replace(CATALOGUE["forged_id.drift.thought"].sample, text="An idle thought about the vault")


def stored(event: Event, session: str, agent: str = "ann") -> Record:
    """Return an event as the shell of its actor appends it."""
    tokens = PARTITIONS.agent_token(agent), PARTITIONS.session_token(session)
    cause = Cause(f"{session} {agent} {type(event).__name__}", 0, 0, agent, session, "", *tokens)
    [decided] = address_events(entry_of(event).owner, cause, (event,), PARTITIONS)
    return to_record(decided, "test", "", 1_750_000_000_000_000_000, 0)


def recalled(text: str) -> MemoryRecalled:
    """Return a recollection of a text."""
    sample = entry_of(MemoryRecalled).sample
    assert isinstance(sample, MemoryRecalled)
    found = Recollection(id="drift:1", layer="gist", text=text, energy=0.5, tokens=6)
    return msgspec.structs.replace(sample, recollections=(found,))


def reminded(broker: Broker, records: list[Record], session: str) -> tuple[str, ...]:
    """Store events; return the sessions that were reminded of what a session told."""

    async def run() -> tuple[str, ...]:
        log = await JetStreamLog.connect(broker.url, sealed=False)
        try:
            await log.append([Append(records)])
            return await sessions_with_copies(log, "ann", session, UnreadEvents())
        finally:
            await log.close()

    return asyncio.run(run())


def test_a_session_that_was_reminded_of_a_thought_about_another_is_found(broker: Broker) -> None:
    assert isinstance(THOUGHT, DriftThought)
    records = [
        stored(THOUGHT, "vault"),
        stored(recalled(THOUGHT.text), "reminded"),
        stored(recalled("Something else"), "unconcerned"),
        stored(recalled(THOUGHT.text), "of another agent", agent="bob"),
    ]
    assert reminded(broker, records, "vault") == ("reminded",)


def test_a_session_that_took_back_what_another_told_is_found(broker: Broker) -> None:
    told, taken_back = (
        CATALOGUE["forged_id.memory.remembered"].sample,
        CATALOGUE["forged_id.memory.facts_retired"].sample,
    )
    assert isinstance(told, MemoryRemembered)
    fact = Fact(key="name", value="Chad")
    retired = Retired(key="name", value="Chad", fact=3, why="withdrawn", replaced=False)
    unanswered = msgspec.structs.replace(recalled("Something else"), retired=(retired,))
    records = [
        stored(msgspec.structs.replace(told, facts=(fact,)), "lunch"),
        stored(taken_back, "supper"),
        stored(unanswered, "never answered"),
    ]
    assert reminded(broker, records, "lunch") == ("never answered", "supper")
