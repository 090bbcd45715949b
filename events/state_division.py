"""The part of a partition's state that one of the partitions it is divided into continues from. Pure.

A state's maps hold entries of sessions, of agents and of exchanges. Those of a session or an agent go to one partition:
nothing of a person may be kept where an order to forget would not reach it. All else, such as the ids of exchanges that
ended recently, is in each of them.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from schemas.actor import Scope
from schemas.persistent import Map

IsMine = Callable[[str], bool]
"""Whether a session or an agent, by its name, belongs to a partition."""


def part_of(state: Any, scope: Scope, agents: AbstractSet[str], is_mine: IsMine) -> Any:
    """Return a state without the entries of sessions or agents of other partitions.

    Args:
        state: The state of the partition that is divided.
        scope: The key that it is divided by.
        agents: The names of the agents whose messages it has received: no other key is an agent's.
        is_mine: See :data:`IsMine`.
    """
    if isinstance(state, Map):
        for key, value in state.items():
            owner = _owner(key, value, scope, agents)
            if owner is not None and not is_mine(owner):
                state = state.delete(key)
        return state
    if not isinstance(state, msgspec.Struct):
        return state
    values = {name: getattr(state, name) for name in state.__struct_fields__}
    parts = {name: part_of(value, scope, agents, is_mine) for name, value in values.items()}
    changed = {name: part for name, part in parts.items() if part is not values[name]}
    return msgspec.structs.replace(state, **changed) if changed else state


def owned_entries(state: Any, scope: Scope, agents: AbstractSet[str], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and key of each entry of a state that belongs to one session or agent."""
    if isinstance(state, Map):
        yield from ((path, key) for key, value in state.items() if _owner(key, value, scope, agents) is not None)
    elif isinstance(state, msgspec.Struct):
        for name in state.__struct_fields__:
            yield from owned_entries(getattr(state, name), scope, agents, f"{path}.{name}")


def _owner(key: Any, value: Any, scope: Scope, agents: AbstractSet[str]) -> str | None:
    """Return the session or agent that an entry belongs to; None if it belongs to none."""
    if not isinstance(key, str):
        return None
    if scope is Scope.SESSION:
        named = key if "\n" in key else getattr(value, "session", None)
        return named.rpartition("\n")[2] if isinstance(named, str) and named else None
    if (first := key.partition("\n")[0]) in agents:
        return first
    named = getattr(value, "agent", None)
    return named if isinstance(named, str) and named in agents else None
