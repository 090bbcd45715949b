"""Finds the values of facts that are retired: those that a new value replaces, and those that are taken back. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from actors.memory.agent_memory import AgentMemory
from actors.memory.extraction.corrections import EndedValue, KnownValues, is_same
from actors.memory.layers.facts import CurrentValues, Origin, with_stale_exchanges, with_taken_back
from actors.memory.layers.session import Session
from schemas.vocabulary.memory import Fact, FactsRetired, Retired, RetiredWhy


def known_of(memory: AgentMemory, session: Session) -> KnownValues:
    """Return the facts that an agent knows, in the form that corrections in a text are compared with."""
    return KnownValues(CurrentValues(memory.facts), session.turns[-1].said if session.turns else "")


def retirement_events(
    memory: AgentMemory, facts: Sequence[Fact], ended: Iterable[EndedValue] = ()
) -> tuple[FactsRetired, ...]:
    """Return the event that says which values are replaced or taken back; none if there are none."""
    found = retired_values(memory, facts, ended)
    return (FactsRetired(retired=found),) if found else ()


def retired_values(memory: AgentMemory, facts: Sequence[Fact], ended: Iterable[EndedValue] = ()) -> tuple[Retired, ...]:
    """Return the known values that facts replace, and those that are taken back.

    A value that is stated again retires nothing.
    """
    why: dict[str, RetiredWhy] = {each.key: each.why for each in ended}
    values = {fact.key: fact.value for fact in facts}
    found = []
    for key in dict.fromkeys((*values, *why)):
        statements = memory.facts.get(key, ())
        if not statements or statements[-1].retired:
            continue
        old = statements[-1]
        if key in values and is_same(old.value, values[key]):
            continue
        reason = why.get(key, "replaced")
        found.append(
            Retired(
                key=key, value=old.value, fact=old.number, why=reason, replaced=key in values, exchanges=old.exchanges
            )
        )
    return tuple(found)


def with_retired(memory: AgentMemory, event: FactsRetired, session: str) -> AgentMemory:
    """Return the memory after its last exchange took values back; a replaced value is retired by the new statement."""
    ended = [(each.key, each.why) for each in event.retired if not each.replaced]
    # ``told`` numbers the statements about facts; each value that is taken back counts as one.
    facts = with_taken_back(memory.facts, ended, Origin(session, "", memory.exchanges), memory.told)
    for each in event.retired:
        facts = with_stale_exchanges(facts, each.key, each.exchanges)
    return msgspec.structs.replace(memory, told=memory.told + len(ended), facts=facts)
