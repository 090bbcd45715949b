"""Orders by which named things of an agent count no more, whatever they are."""

from collections.abc import Callable, Iterable

from deploy.operating.operator_edge import Order
from events.replay.looking import NothingThere
from schemas.event import Event


def orders_for(
    agent: str, noun: str, names: Iterable[str], in_force: Iterable[str], withdrawal: Callable[[str], Event]
) -> list[Order]:
    """Return an order for each of ``names``; one that is given twice is withdrawn once.

    Args:
        agent: Whose they are.
        noun: What is withdrawn; with an s the name of the group of commands that lists them.
        names: Which.
        in_force: The names that the agent has.
        withdrawal: Makes the event from a name.

    Raises:
        NothingThere: the agent has none of a name.
    """
    known, chosen = set(in_force), tuple(dict.fromkeys(names))
    if missing := [name for name in chosen if name not in known]:
        raise NothingThere(f"agent {agent} has no {noun} {missing[0]!r}: `neuraxis {noun}s list` shows those it has")
    return [Order(event=withdrawal(name), agent=agent) for name in chosen]
