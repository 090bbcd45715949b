"""The state of one partition at a point of the log, and the part of it under a key."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from events.replay.key_use import KeyUse
from events.replay.replay import Replay
from events.replay.run_replay import Point
from events.replay.sources import Source
from events.replay.states.conditions import MISSING, Step, at_path, names_at
from events.replay.states.from_snapshots import fold_from_nearest
from events.routes import WHOLE, partition_names
from schemas.actor import Actor, Scope
from schemas.persistent import Map, state_builtins, state_hash
from schemas.subjects import Partitions

_MOST_NAMED = 12
"""Names that an error message lists of one value."""

_MOST_ENTRIES_NAMED = 3
"""Values whose names an error message lists."""

_MOST_CACHED = 200_000
"""Parts of states whose results :class:`ContainsKey` caches at once."""


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """A partition's state after the message of sequence ``place``.

    At a point before the log was repartitioned, ``partition`` is the one that the requested one was divided from.

    ``under_key``: path -> value, of the entries kept under the requested key; empty if there are none. ``unread`` says
    which events were left out, since this release cannot read them; empty if there are none.
    """

    actor: str
    partition: str
    place: int
    state_hash: str
    under_key: dict[str, Any]
    state: Any
    unread: str = ""


class NoSuchPartition(ValueError):
    """A key that names no partition of an actor; the message says which keys name one."""

    code = "no_such_partition"


def partition_named(actor: Actor[Any], key: str, partitions: Partitions) -> str:
    """Return the partition that ``key`` names: its own token, or that of the session or agent it names.

    Raises:
        NoSuchPartition: the key is empty, or is ``all`` and this actor has several partitions.
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


def partitions_with(
    actors: Sequence[Actor[Any]], key: str, use: KeyUse, partitions: Partitions
) -> tuple[dict[str, str], list[str]]:
    """Return the partition of each actor that ``key`` names, and the names of actors of which it names none.

    The key of an actor that is divided by agents may be a session: then its agent's partition is named, if all of the
    session's events are in one. ``use`` says what the key is in the log.
    """
    named: dict[str, str] = {}
    left_out = []
    for actor in actors:
        tokens = {partitions.agent_token(agent) for agent in use.agents} if use.is_session else set()
        if key in partition_names(actor, partitions) or actor.scope is Scope.GLOBAL or use.fits(actor.scope):
            named[actor.name] = partition_named(actor, key, partitions)
        elif actor.scope is Scope.AGENT and len(tokens) == 1:
            named[actor.name] = tokens.pop()
        else:
            left_out.append(actor.name)
    return named, left_out


def value_at(state: Any, entries: Mapping[str, Any], path: Sequence[Step]) -> dict[str, Any]:
    """Return the values at a path below the entries kept under a key (``entries_under``): entry's path -> value.

    If the path exists below none of them, it is looked up from the top of the state, with an empty entry's path. The
    result is empty if it does not exist there either.
    """
    at_entries = {entry_path: at_path(entry, path) for entry_path, entry in entries.items()}
    found = {entry_path: value for entry_path, value in at_entries.items() if value is not MISSING}
    top = MISSING if found else at_path(state, path)
    return found if top is MISSING else {"": top}


def no_such_path(state: Any, entries: Mapping[str, Any], path: str) -> str:
    """Return the error for a path that does not exist in a state, with the names that a path can begin with."""
    starts = {f"below {entry_path}": entry for entry_path, entry in entries.items()} | {"at the top": state}
    names = [f"{where} there are {_names_text(names_at(value))}" for where, value in starts.items() if names_at(value)]
    return f"{path} leads nowhere: {'; '.join(names[-_MOST_ENTRIES_NAMED:])}"


def _names_text(names: Sequence[Step]) -> str:
    return ", ".join([*map(str, names[:_MOST_NAMED]), *(["..."] if len(names) > _MOST_NAMED else [])])


async def state_at(
    source: Source, actor: Actor[Any], partition: str, key: str, upto: Point, progress: Callable[[int], None]
) -> PartitionState:
    """Fold one partition up to a point, from the nearest snapshot.

    It raises as ``events.replay.run_replay.run_replay`` does.

    A message whose events come after that point is not folded, nor are later messages: the partition had not decided
    them yet. No decider is called; see ``events.replay.replay``.
    """
    replay = Replay([actor], source.partitions, only={actor.name: partition})
    await fold_from_nearest(source, replay, [(actor, partition)], upto, progress)
    view = replay.view_of(actor, partition)
    state = view.state if view is not None else actor.initial()
    return PartitionState(
        actor=actor.name,
        partition=view.partition if view is not None else partition,
        place=view.position if view is not None else 0,
        state_hash=state_hash(state),
        under_key=dict(entries_under(state, key)),
        state=state_builtins(state),
        unread=replay.unread.text,
    )


def entries_under(
    state: Any, key: str, path: str = "", may_contain: Callable[[Any], bool] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a state's maps that are kept under ``key``, each with its path.

    An entry is kept under a name if its key is that name, or two lines, agent and session, of which one is that name.
    ``may_contain``: whether there may be such entries within a value; others are passed over.
    """
    if isinstance(state, msgspec.Struct):
        for name in state.__struct_fields__:
            value = getattr(state, name)
            if may_contain is None or may_contain(value):
                yield from entries_under(value, key, f"{path}.{name}" if path else name, may_contain)
    elif isinstance(state, Map | dict):
        for name, value in state.items():
            is_under = is_named(name, key)
            if not is_under and may_contain is not None and not may_contain(value):
                continue
            entry_path = f"{path}[{msgspec.json.encode(name).decode()}]"
            if is_under:
                yield entry_path, state_builtins(value)
            else:
                yield from entries_under(value, key, entry_path, may_contain)


def is_kept_under(under_key: Mapping[str, Any], key: str, scope: Scope) -> bool:
    """Whether any entry of ``entries_under`` has ``key`` as its session, or as its agent, whichever the scope names.

    Entries are kept under agent and session together, and another agent or session may have the same name.
    """
    word = msgspec.json.encode(key).decode()[1:-1]
    other = {Scope.SESSION: f'["{word}\\n', Scope.AGENT: f'\\n{word}"]'}.get(scope)
    return any(other is None or other not in path for path in under_key)


def is_named(name: object, key: str) -> bool:
    """Whether an entry of this name is kept under a key."""
    return name == key or (isinstance(name, str) and key in name.split("\n"))


class ContainsKey:
    """Called with a value: whether entries are kept under a key anywhere within it.

    It caches its results: states of one partition share most of their parts, which never change.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._cached: dict[int, tuple[Any, bool]] = {}

    def __call__(self, value: Any) -> bool:
        """Return whether entries are kept under the key within ``value``."""
        is_struct = isinstance(value, msgspec.Struct)
        if not is_struct and not isinstance(value, Map | dict):
            return False
        cached = self._cached.get(id(value))
        if cached is not None and cached[0] is value:
            return cached[1]
        if is_struct:
            found = any(self(getattr(value, name)) for name in value.__struct_fields__)
        else:
            found = any(is_named(name, self._key) or self(inner) for name, inner in value.items())
        if len(self._cached) >= _MOST_CACHED:
            self._cached.clear()
        self._cached[id(value)] = value, found  # the value is kept, so that no other gets its id
        return found
