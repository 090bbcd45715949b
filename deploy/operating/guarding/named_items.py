"""An agent's named items: those in force, and orders that withdraw some.

They are its precedents, and its allowances: texts and phrases that its guards let pass.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from actors.gateway.operator_orders import Order
from deploy.operating.agent_events import events_of_agent
from events.replay.presence_checks import NothingFound
from events.replay.sources import Source
from schemas.event import Event, topic_of
from schemas.subjects import NO_PARTITION, stored_subject

ItemT = TypeVar("ItemT", bound=msgspec.Struct)


async def items_in_force(
    source: Source, agent: str, noun: str, recorded: type[Event], withdrawn: type[Event], item: type[ItemT]
) -> list[ItemT]:
    """Return an agent's items in force, in the order of their last recording.

    Args:
        source: The log.
        agent: The agent that has the items.
        noun: The field of both events that holds an item's name.
        recorded: The event that records an item.
        withdrawn: The event that withdraws one.
        item: The type of an item: fields of the event that records one, and its sequence ``seq``.
    """
    tokens = source.partitions.agent_tokens(agent)
    filters = [
        stored_subject(topic_of(kind), token, NO_PARTITION) for token in tokens for kind in (recorded, withdrawn)
    ]
    found: dict[str, ItemT] = {}
    async for record in events_of_agent(source, agent, filters, unread=source.unread):
        event = record.message.event
        name: str = getattr(event, noun)
        found.pop(name, None)
        if isinstance(event, recorded):
            found[name] = msgspec.convert({**msgspec.structs.asdict(event), "seq": record.stored.seq}, item)
    return list(found.values())


def withdrawals(
    agent: str, noun: str, names: Iterable[str], held: Iterable[str], withdrawal: Callable[[str], Event]
) -> list[Order]:
    """Return an order to withdraw each of ``names``; a name that is given twice is withdrawn once.

    Args:
        agent: The agent that has the items.
        noun: What is withdrawn. With an added s, it is the command group that lists such items.
        names: The names to withdraw.
        held: The names that the agent has.
        withdrawal: Makes the event that withdraws a name.

    Raises:
        NothingFound: the agent has no item of one of the names.
    """
    known, chosen = set(held), tuple(dict.fromkeys(names))
    if missing := [name for name in chosen if name not in known]:
        raise NothingFound(f"agent {agent} has no {noun} {missing[0]!r}: `neuraxis {noun}s list` shows those it has")
    return [Order(event=withdrawal(name), agent=agent) for name in chosen]
