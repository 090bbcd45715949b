"""What is retired by what was told: values that another one replaces, and those that a person took back. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from actors.memory.layers.facts import Current, Origin, outdating, taken_back
from actors.memory.layers.session import Session
from actors.memory.mind import Mind
from actors.memory.told.corrections import Ended, Known, is_same
from schemas.vocabulary.memory import Fact, FactsRetired, Retired, RetiredWhy


def known_of(mind: Mind, session: Session) -> Known:
    """Return what an agent was told, as a text of one of its sessions may correct it."""
    return Known(Current(mind.facts), session.turns[-1].said if session.turns else "")


def retired_by(mind: Mind, facts: Sequence[Fact], ended: Iterable[Ended] = ()) -> tuple[FactsRetired, ...]:
    """Return the event that says what facts replace and what else is taken back; none where that is nothing."""
    found = retired_of(mind, facts, ended)
    return (FactsRetired(retired=found),) if found else ()


def retired_of(mind: Mind, facts: Sequence[Fact], ended: Iterable[Ended] = ()) -> tuple[Retired, ...]:
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


def retiring(mind: Mind, event: FactsRetired, session: str) -> Mind:
    """Return the mind after values were taken back in its last exchange; what is replaced is so by what was told."""
    ended = [(each.key, each.why) for each in event.retired if not each.replaced]
    facts = taken_back(mind.facts, ended, Origin(session, "", mind.exchanges), mind.told)
    for each in event.retired:
        facts = outdating(facts, each.key, each.exchanges)
    return msgspec.structs.replace(mind, told=mind.told + len(ended), facts=facts)
