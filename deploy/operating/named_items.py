"""Named items of an agent, such as precedents: those in force, and the orders that withdraw them."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from actors.gateway.orders import Order
from deploy.operating.agent_events import events_of_agent
from events.replay.presence_checks import NothingFound
from events.replay.sources import Source
from schemas.event import Event, topic_of
from schemas.subjects import NO_PARTITION, stored_subject

L = TypeVar("L", bound=msgspec.Struct)


async def in_force(
    source: Source, agent: str, noun: str, recorded: type[Event], withdrawn: type[Event], listed: type[L]
) -> list[L]:
    """Return an agent's items in force, in the order of recording; one that is recorded again is the newest.

    Args:
        source: The log.
        agent: Whose they are.
        noun: The field of both events that holds an item's name.
        recorded: The event that records an item.
        withdrawn: The event that withdraws one.
        listed: The type of what is returned: fields of the recorded event, and ``seq``.
    """
    tokens = source.partitions.agent_tokens(agent)
    filters = [
        stored_subject(topic_of(kind), token, NO_PARTITION) for token in tokens for kind in (recorded, withdrawn)
    ]
    found: dict[str, L] = {}
    async for record in events_of_agent(source, agent, filters):
        event = record.message.event
        name: str = getattr(event, noun)
        found.pop(name, None)
        if isinstance(event, recorded):
            found[name] = msgspec.convert({**msgspec.structs.asdict(event), "seq": record.stored.seq}, listed)
    return list(found.values())


def orders_for(
    agent: str, noun: str, names: Iterable[str], in_force: Iterable[str], withdrawal: Callable[[str], Event]
) -> list[Order]:
    """Return an order to withdraw each of ``names``; a name that is given twice is withdrawn once.

    Args:
        agent: Whose they are.
        noun: What is withdrawn. With an added s, it is the command group that lists such items.
        names: The names to withdraw.
        in_force: The names that the agent has.
        withdrawal: Makes the event from a name.

    Raises:
        NothingFound: the agent has none of one of the names.
    """
    known, chosen = set(in_force), tuple(dict.fromkeys(names))
    if missing := [name for name in chosen if name not in known]:
        raise NothingFound(f"agent {agent} has no {noun} {missing[0]!r}: `neuraxis {noun}s list` shows those it has")
    return [Order(event=withdrawal(name), agent=agent) for name in chosen]
