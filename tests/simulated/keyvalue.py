"""Snapshots and membership at the simulated broker."""

from collections.abc import Mapping

from events.errors import Conflict, Unavailable, UnknownOutcome
from tests.simulated.connection import SimulatedConnection
from tests.simulated.faults import Incident
from tests.simulated.stream import EXPIRY_S


class SimulatedSnapshots:
    """Snapshots that may be lost, old or damaged when they are loaded; implements ``events.log.Snapshots``."""

    def __init__(self, connection: SimulatedConnection) -> None:
        self._connection = connection
        self._stream = connection.stream

    async def revision(self, key: str) -> int:
        """Return the number of the latest snapshot under ``key``, 0 when there is none."""
        return self._stream.snapshot_revisions.get(key, 0)

    async def save(self, key: str, data: bytes, upto: int, replaces: int | None = None) -> None:
        """Replace the snapshot under ``key``; raises Unavailable, UnknownOutcome or Conflict."""
        await self._connection.request(lambda: self._save(key, data, replaces), UnknownOutcome)

    async def load(self, key: str, at_least: int = 0) -> bytes | None:
        """Return the snapshot under ``key``, or None when there is none; raises Unavailable."""
        return await self._connection.request(lambda: self._load(key), Unavailable)

    def _save(self, key: str, data: bytes, replaces: int | None) -> None:
        revision = self._stream.snapshot_revisions.get(key, 0)
        if replaces not in (None, revision):
            raise Conflict("another worker has saved a snapshot since")
        self._stream.snapshot_revisions[key] = revision + 1
        versions = self._stream.snapshots.setdefault(key, [])
        versions.append(data)
        del versions[:-2]

    def _load(self, key: str) -> bytes | None:
        stream, faults = self._stream, self._stream.faults
        versions = stream.snapshots.get(key)
        if not versions:
            return None
        if stream.chance(faults.snapshot_lost):
            stream.incidents[Incident.SNAPSHOT_LOST] += 1
            return None
        if len(versions) > 1 and stream.chance(faults.snapshot_stale):
            stream.incidents[Incident.SNAPSHOT_STALE] += 1
            return versions[-2]
        if versions[-1] and stream.chance(faults.snapshot_corrupt):
            stream.incidents[Incident.SNAPSHOT_CORRUPT] += 1
            return self._damaged(versions[-1])
        return versions[-1]

    def _damaged(self, data: bytes) -> bytes:
        place = self._stream.pick(len(data))
        if self._stream.chance(0.5):
            return data[:place]
        return data[:place] + bytes([data[place] ^ 1 << self._stream.pick(8)]) + data[place + 1 :]


class SimulatedMembership:
    """Heartbeats that expire in virtual time; implements ``events.log.Membership``."""

    def __init__(self, connection: SimulatedConnection) -> None:
        self._connection = connection
        self._stream = connection.stream

    async def beat(self, worker: str, value: bytes) -> None:
        """Renew ``worker``'s membership; raises Unavailable or UnknownOutcome."""
        await self._connection.request(lambda: self._beat(worker, value), UnknownOutcome)

    async def leave(self, worker: str) -> None:
        """End ``worker``'s membership at once; raises Unavailable or UnknownOutcome."""
        await self._connection.request(lambda: self._leave(worker), UnknownOutcome)

    async def members(self) -> Mapping[str, bytes]:
        """Return the living members and what they last said; raises Unavailable."""
        return await self._connection.request(self._members, Unavailable)

    def _beat(self, worker: str, value: bytes) -> None:
        self._stream.members[worker] = (value, self._stream.clock() + round(EXPIRY_S * 1e9))

    def _leave(self, worker: str) -> None:
        self._stream.members.pop(worker, None)

    def _members(self) -> Mapping[str, bytes]:
        members, now = self._stream.members, self._stream.clock()
        for worker in [worker for worker, (_, expires) in members.items() if expires <= now]:
            del members[worker]
            self._stream.incidents[Incident.MEMBER_EXPIRED] += 1
        return {worker: value for worker, (value, _) in members.items()}
