"""Finds the partitions that a worker leads without advancing: their messages wait and are not decided."""

from collections.abc import Iterable, Mapping

from actors.runtime.context import Role
from actors.runtime.partition.shard import Shard

STALL_S = 5.0
"""Seconds within which a leading partition with waiting messages must advance."""

Key = tuple[str, str]
"""An actor's name and a partition of it."""


class StallDetector:
    """Remembers the progress of each partition, and since when it has not changed."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[object, float]] = {}

    def stalled(self, shards: Mapping[Key, Shard], now: float) -> set[Key]:
        """Return the partitions that are led here and do not advance, and those whose state was lost again and again.

        ``now`` is a monotonic time in seconds.
        """
        seen: dict[Key, tuple[object, float]] = {}
        found = set()
        for key, shard in shards.items():
            if shard.role is not Role.LEADING:
                continue
            progress = (shard.epoch, shard.view.position, shard.view.own_last, bool(shard.view.waiting or shard.outbox))
            known, since = self._seen.get(key, (None, now))
            seen[key] = progress, since if progress == known else now
            if progress[-1] and now - seen[key][1] >= STALL_S:
                found.add(key)
        self._seen = seen
        return found | {key for key, shard in shards.items() if shard.struggling}


def by_actor(keys: Iterable[Key]) -> dict[str, tuple[str, ...]]:
    """Group partitions by their actors, all sorted."""
    grouped: dict[str, list[str]] = {}
    for name, partition in sorted(keys):
        grouped.setdefault(name, []).append(partition)
    return {name: tuple(partitions) for name, partitions in grouped.items()}
