"""The state of one partition at a point of the log, and the part of it under a key."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from events.replay.replay import Replay
from events.replay.run_replay import Point, run_replay
from events.replay.sources import Source
from events.replay.states.conditions import MISSING, Step, at_path, names_at
from events.routes import WHOLE, partition_filters, partition_names
from schemas.actor import Actor, Scope
from schemas.persistent import Map, state_builtins, state_hash
from schemas.subjects import Partitions

_MOST_NAMED = 12
_MOST_BEGINNINGS = 3


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """A partition's state after the message of sequence ``place``.

    At a point before the log was repartitioned, ``partition`` is the one that the asked one was divided from.

    ``under_key`` maps the paths of entries kept under the asked key to what they hold; empty where there are none.
    """

    actor: str
    partition: str
    place: int
    state_hash: str
    under_key: dict[str, Any]
    state: Any


class NoSuchPartition(ValueError):
    """A key that names no partition of an actor; the message says which keys do."""

    code = "no_such_partition"


def partition_named(actor: Actor[Any], key: str, partitions: Partitions) -> str:
    """Return the partition that ``key`` names: its own token, or that of the session or agent it names.

    Raises:
        NoSuchPartition: the key is empty, or means a whole actor, and this one is divided.
    """
    if not key:
        raise NoSuchPartition(f"the key is empty: name a partition of {actor.name}, a session or an agent")
    names = partition_names(actor, partitions)
    if key in names:
        return key
    if actor.scope is Scope.GLOBAL:
        return WHOLE
    token = partitions.session_token(key) if actor.scope is Scope.SESSION else partitions.agent_token(key)
    if key == WHOLE:
        raise NoSuchPartition(
            f"{actor.name} is divided by {actor.scope}, and {key!r} is not one of its partitions: name one "
            f"{actor.scope}, or a partition, {names[0]} to {names[-1]} ({token} holds what is named {key!r})"
        )
    return token


def value_at(state: Any, entries: Mapping[str, Any], path: Sequence[Step]) -> dict[str, Any]:
    """Return what a path leads to below each entry that is kept under a key (``entries_under``), by the entry's path.

    Where it leads nowhere below any of them: what it leads to from the top, by an empty path; empty where that is
    nowhere, too.
    """
    below = {place: at_path(entry, path) for place, entry in entries.items()}
    found = {place: value for place, value in below.items() if value is not MISSING}
    top = MISSING if found else at_path(state, path)
    return found if top is MISSING else {"": top}


def no_such_path(state: Any, entries: Mapping[str, Any], path: str) -> str:
    """Say that a path leads nowhere in a state, and with which names one may begin."""
    beginnings = {f"below {place}": entry for place, entry in entries.items()} | {"at the top": state}
    places = [f"{where} there are {_listed(names_at(value))}" for where, value in beginnings.items() if names_at(value)]
    return f"{path} leads nowhere: {'; '.join(places[-_MOST_BEGINNINGS:])}"


def _listed(names: Sequence[Step]) -> str:
    return ", ".join([*map(str, names[:_MOST_NAMED]), *(["..."] if len(names) > _MOST_NAMED else [])])


async def state_at(
    source: Source, actor: Actor[Any], partition: str, key: str, upto: Point, progress: Callable[[int], None]
) -> PartitionState:
    """Fold one partition up to a point; raises as ``events.replay.run_replay.run_replay`` does.

    A message that it answered behind that point is not folded, nor what came after it: it was not yet part of what it
    knew. No decider is called; see ``events.replay.replay``.
    """
    replay = Replay([actor], source.partitions, only={actor.name: partition})
    filters = partition_filters(actor, partition, source.partitions)
    await run_replay(source, replay, upto, filters=filters, progress=progress)
    view = replay.view_of(actor, partition)
    state = view.state if view is not None else actor.initial()
    return PartitionState(
        actor=actor.name,
        partition=view.partition if view is not None else partition,
        place=view.position if view is not None else 0,
        state_hash=state_hash(state),
        under_key=dict(entries_under(state, key)),
        state=state_builtins(state),
    )


def entries_under(state: Any, key: str, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the entries of a state's maps that are kept under ``key``, each with its path.

    An entry is kept under a session's or an agent's name when its key is that, or is made of both, a line each.
    """
    if isinstance(state, msgspec.Struct):
        for name in state.__struct_fields__:
            yield from entries_under(getattr(state, name), key, f"{path}.{name}" if path else name)
    elif isinstance(state, Map | dict):
        for name, value in state.items():
            place = f"{path}[{msgspec.json.encode(name).decode()}]"
            if name == key or (isinstance(name, str) and key in name.split("\n")):
                yield place, state_builtins(value)
            else:
                yield from entries_under(value, key, place)
