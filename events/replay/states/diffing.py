"""The changes between two states, path by path: of any two values, or of actors at two points of a log."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from events.replay.replay import Replay
from events.replay.run_replay import Point
from events.replay.sources import Source
from events.replay.states.conditions import Step
from events.replay.states.from_snapshots import fold_from_nearest
from events.routes import lineage, partition_names
from schemas.actor import Actor
from schemas.persistent import state_builtins


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One difference between two values made of plain dicts, lists and scalars.

    ``path`` holds the names and indexes that lead there; it is empty for the whole value. ``before`` is absent (UNSET)
    for what was added, ``after`` for what was removed.
    """

    op: Literal["add", "remove", "replace"]
    path: tuple[Step, ...]
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """What changed in one partition between the messages of sequences ``place_before`` and ``place_after``."""

    actor: str
    partition: str
    place_before: int
    place_after: int
    changes: tuple[Change, ...]


class _StateAt(msgspec.Struct, frozen=True):
    position: int
    state: Any


def changes(before: Any, after: Any, path: tuple[Step, ...] = ()) -> Iterator[Change]:
    """Yield the changes that turn ``before`` into ``after``, in the order in which they can be made.

    Dicts are compared by name, lists by index; a list of another length has grown or shrunk at its end.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            if name not in after:
                yield Change(op="remove", path=(*path, name), before=before[name])
            elif name not in before:
                yield Change(op="add", path=(*path, name), after=after[name])
            else:
                yield from changes(before[name], after[name], (*path, name))
    elif isinstance(before, list) and isinstance(after, list):
        shared = min(len(before), len(after))
        for index in range(shared):
            yield from changes(before[index], after[index], (*path, index))
        for index in range(len(before) - 1, shared - 1, -1):
            yield Change(op="remove", path=(*path, index), before=before[index])
        for index in range(shared, len(after)):
            yield Change(op="add", path=(*path, index), after=after[index])
    elif type(before) is not type(after) or before != after:
        yield Change(op="replace", path=path, before=before, after=after)


def path_text(path: Sequence[Step]) -> str:
    """Return a path as ``neuraxis state`` prints it: names after dots, other keys and indexes in brackets."""
    text = ""
    for step in path:
        if isinstance(step, str) and step.isascii() and step.isidentifier():
            text += f".{step}" if text else step
        else:
            text += f"[{msgspec.json.encode(step).decode()}]"
    return text or "(all)"


async def changed_between(
    source: Source,
    actors: Sequence[Actor[Any]],
    partition: str | None,
    points: tuple[Point, Point],
    progress: Callable[[int], None],
) -> tuple[Changed, ...]:
    """Return what changed in the partitions of ``actors`` from the first point to the second; equal ones are left out.

    ``partition`` narrows a single actor to one of its partitions. Raises as ``events.replay.run_replay.run_replay``
    does.
    """
    before, after = [await _states_at(source, actors, partition, point, progress) for point in points]
    initial = {actor.name: _StateAt(0, actor.initial()) for actor in actors}
    found = []
    named = {actor.name: actor for actor in actors}
    for name, part in sorted(after):
        names = reversed(lineage(named[name], part, source.partitions))
        was = next((found_state for each in names if (found_state := before.get((name, each)))), initial[name])
        now = after[name, part]
        if was.state is now.state or was.state == now.state:
            continue
        found.append(
            Changed(
                actor=name,
                partition=part,
                place_before=was.position,
                place_after=now.position,
                changes=tuple(changes(state_builtins(was.state), state_builtins(now.state))),
            )
        )
    return tuple(found)


async def _states_at(
    source: Source,
    actors: Sequence[Actor[Any]],
    partition: str | None,
    upto: Point,
    progress: Callable[[int], None],
) -> dict[tuple[str, str], _StateAt]:
    only = {} if partition is None else {actors[0].name: partition}
    replay = Replay(actors, source.partitions, only=only)
    folded = [
        (actor, each)
        for actor in actors
        for each in (partition_names(actor, source.partitions) if partition is None else (partition,))
    ]
    await fold_from_nearest(source, replay, folded, upto, progress)
    return {key: _StateAt(view.position, view.state) for key, view in replay.views.items()}
