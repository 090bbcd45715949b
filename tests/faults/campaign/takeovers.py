"""How long partitions are led by nobody, as the heartbeats tell: they come once a second, so times are that exact."""

import asyncio
import time
from collections.abc import Mapping, Sequence

import msgspec

from actors.runtime.membership.heartbeat import heartbeat_of
from events.errors import LogError
from events.jetstream import JetStreamLog, KeyValueMembership

LOOK_S = 0.1
Serves = Mapping[str, frozenset[str]]
"""Member -> the partitions that it leads, as ``ACTOR/PARTITION``."""


class _Awaited(msgspec.Struct):
    """A partition whose leader was hurt; ``lost`` once that leader is seen not to lead it."""

    victim: str
    began: float
    lost: bool = False


class Takeovers:
    """Follows who leads what.

    Attributes:
        times: Seconds from each fault to the moment at which a partition that it left without a leader had one again.
    """

    def __init__(self) -> None:
        self.times: list[float] = []
        self._serves: Serves = {}
        self._awaited: dict[str, _Awaited] = {}

    async def watch(self, log: JetStreamLog) -> None:
        """Look until cancelled; a broker that is away shows nothing."""
        membership = KeyValueMembership(log.connection)
        while True:
            try:
                async with asyncio.timeout(5):
                    members = await membership.members()
            except (LogError, TimeoutError):
                members = {}
            if members:
                self.look(_serves(members), time.monotonic())
            await asyncio.sleep(LOOK_S)

    def began(self, pids: Sequence[int], now: float) -> None:
        """Note that processes were hurt: what they led will need another leader."""
        for member, led in self._serves.items():
            if any(f"-{pid}-" in member for pid in pids):  # a member's name tells its process, and a life of its own
                for partition in led:
                    self._awaited.setdefault(partition, _Awaited(member, now))

    def look(self, serves: Serves, now: float) -> None:
        """Take note of who leads what now."""
        self._serves = serves
        for partition, awaited in list(self._awaited.items()):
            leaders = {member for member, led in serves.items() if partition in led}
            awaited.lost = awaited.lost or awaited.victim not in leaders
            if awaited.lost and leaders:
                self.times.append(now - awaited.began)
                del self._awaited[partition]

    @property
    def leaderless(self) -> tuple[str, ...]:
        """Partitions whose leader was lost, and that have none."""
        return tuple(sorted(name for name, awaited in self._awaited.items() if awaited.lost))


def _serves(members: Mapping[str, bytes]) -> Serves:
    read = {member: heartbeat_of(said) for member, said in members.items()}
    return {
        member: frozenset(f"{actor}/{partition}" for actor, led in found.serves.items() for partition in led)
        for member, found in read.items()
        if found is not None
    }


def quantiles(times: Sequence[float]) -> str:
    """Return ``p50 1.2 s, p99 3.4 s of 56``."""
    if not times:
        return "none seen"
    ranked = sorted(times)
    p50, p99 = (ranked[min(len(ranked) - 1, int(share * len(ranked)))] for share in (0.5, 0.99))
    return f"p50 {p50:.1f} s, p99 {p99:.1f} s, of {len(ranked)}"
