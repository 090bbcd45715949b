"""What is retired by what was told: values that another one replaces, and those that a person took back. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from actors.memory.agent_memory import AgentMemory
from actors.memory.extraction.corrections import EndedValue, KnownValues, is_same
from actors.memory.layers.facts import CurrentValues, Origin, with_stale_exchanges, with_taken_back
from actors.memory.layers.session import Session
from schemas.vocabulary.memory import Fact, FactsRetired, Retired, RetiredWhy


def known_of(mind: AgentMemory, session: Session) -> KnownValues:
    """Return what an agent was told, as a text of one of its sessions may correct it."""
    return KnownValues(CurrentValues(mind.facts), session.turns[-1].said if session.turns else "")


def retirement_events(
    mind: AgentMemory, facts: Sequence[Fact], ended: Iterable[EndedValue] = ()
) -> tuple[FactsRetired, ...]:
    """Return the event that says what facts replace and what else is taken back; none where that is nothing."""
    found = retired_values(mind, facts, ended)
    return (FactsRetired(retired=found),) if found else ()


def retired_values(mind: AgentMemory, facts: Sequence[Fact], ended: Iterable[EndedValue] = ()) -> tuple[Retired, ...]:
    """Return what facts replace of what is known, and what else is taken back of it.

    A value that is told once more retires nothing.
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
    """Return the mind after values were taken back in its last exchange; what is replaced is so by what was told."""
    ended = [(each.key, each.why) for each in event.retired if not each.replaced]
    facts = with_taken_back(mind.facts, ended, Origin(session, "", mind.exchanges), mind.told)
    for each in event.retired:
        facts = with_stale_exchanges(facts, each.key, each.exchanges)
    return msgspec.structs.replace(mind, told=mind.told + len(ended), facts=facts)
