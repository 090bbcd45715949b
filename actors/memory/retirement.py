"""Which values are retired: those that a new value replaces, and those that a person took back. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from actors.memory.agent_memory import AgentMemory
from actors.memory.extraction.corrections import EndedValue, KnownValues, is_same
from actors.memory.layers.facts import CurrentValues, Origin, with_stale_exchanges, with_taken_back
from actors.memory.layers.session import Session
from schemas.vocabulary.memory import Fact, FactsRetired, Retired, RetiredWhy


def known_of(mind: AgentMemory, session: Session) -> KnownValues:
    """Return what an agent was told, in the form that a text of one of its sessions may correct."""
    return KnownValues(CurrentValues(mind.facts), session.turns[-1].said if session.turns else "")


def retirement_events(
    mind: AgentMemory, facts: Sequence[Fact], ended: Iterable[EndedValue] = ()
) -> tuple[FactsRetired, ...]:
    """Return the event that says which values are replaced or taken back; none if there are none."""
    found = retired_values(mind, facts, ended)
    return (FactsRetired(retired=found),) if found else ()


def retired_values(mind: AgentMemory, facts: Sequence[Fact], ended: Iterable[EndedValue] = ()) -> tuple[Retired, ...]:
    """Return the known values that facts replace, and those that are taken back.

    A value that is told again retires nothing.
    """
    why: dict[str, RetiredWhy] = {each.key: each.why for each in ended}
    values = {fact.key: fact.value for fact in facts}
    found = []
    for key in dict.fromkeys((*values, *why)):
        tellings = mind.facts.get(key, ())
        if not tellings or tellings[-1].retired:
            continue
        old = tellings[-1]
        if key in values and is_same(old.value, values[key]):
            continue
        reason = why.get(key, "replaced")
        found.append(
            Retired(
                key=key,
                value=old.value,
                fact=old.number,
                why=reason,
                replaced=key in values,
                exchanges=old.exchanges,
            )
        )
    return tuple(found)


def with_retired(mind: AgentMemory, event: FactsRetired, session: str) -> AgentMemory:
    """Return the memory after its last exchange took values back; replaced values are retired by the new telling."""
    ended = [(each.key, each.why) for each in event.retired if not each.replaced]
    facts = with_taken_back(mind.facts, ended, Origin(session, "", mind.exchanges), mind.told)
    for each in event.retired:
        facts = with_stale_exchanges(facts, each.key, each.exchanges)
    return msgspec.structs.replace(mind, told=mind.told + len(ended), facts=facts)
