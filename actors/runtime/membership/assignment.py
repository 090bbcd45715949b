"""Which living worker leads and which stands by for each partition: a pure function of who is alive.

Every worker computes this for itself from the list of members, so no lease is handed out. While two workers see
different lists, both may lead the same partition. That is harmless: the fence lets only one of them append.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

import msgspec


class Assignment(msgspec.Struct, frozen=True):
    """The members that lead a partition and stand by for it; ``standby`` is None with a single member."""

    leader: str
    standby: str | None


def _rank(member: str, actor: str, partition: str) -> bytes:
    return blake2b(f"{member}\n{actor}\n{partition}".encode(), digest_size=8).digest()


def assign(actor: str, partitions: Sequence[str], members: Sequence[str]) -> Mapping[str, Assignment]:
    """Spread an actor's partitions evenly over the members that host it.

    Uses rendezvous hashing with at most ceil(partitions / members) for each member: when a member joins or leaves, few
    other partitions move. Returns nothing when there are no members.
    """
    return _assign(actor, tuple(partitions), tuple(members)) if members else {}


@lru_cache(maxsize=256)
def _assign(actor: str, partitions: tuple[str, ...], members: tuple[str, ...]) -> Mapping[str, Assignment]:
    # Cached: this is called twice a second, and the members hardly ever change.
    cap = -(-len(partitions) // len(members))
    load = dict.fromkeys(members, 0)
    assignments = {}
    for partition in partitions:
        ranked = sorted(members, key=lambda member: _rank(member, actor, partition), reverse=True)
        leader = next(member for member in ranked if load[member] < cap)
        load[leader] += 1
        assignments[partition] = Assignment(leader, next((member for member in ranked if member != leader), None))
    return assignments
