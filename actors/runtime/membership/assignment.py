"""Which living worker leads and which stands by for each partition: a pure function of who is alive.

Every worker computes this for itself from the list of members, so no lease is handed out. While two workers see
different lists, both may lead the same partition. That is harmless: the fence of an append (the last event of the
partition is the one that the writer knows) lets only one of them append.

An actor's partitions are spread evenly. Which actors' partitions meet in one process is chosen, too: those of a session
are led by one process, so that most of an exchange's chain stays within it; actors that do much work for the same agent
are led by different ones (``Actor.led_apart_from``), since a set may serve a single agent.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

import msgspec

from schemas.actor import Actor, Scope

_SESSIONS = "sessions/"
"""The key by which the partitions of all SESSION actors are spread; no actor has this name."""


class Assignment(msgspec.Struct, frozen=True):
    """The members that lead a partition and stand by for it; ``standby`` is None with a single member."""

    leader: str
    standby: str | None


def _rank(member: str, key: str, partition: str) -> bytes:
    return blake2b(f"{member}\n{key}\n{partition}".encode(), digest_size=8).digest()


def assign_partitions(
    actor: Actor[object], partitions: Sequence[str], members: Sequence[str]
) -> Mapping[str, Assignment]:
    """Return who leads and stands by for each partition of an actor, given the members that host it.

    It depends on nothing else: every worker computes the same, whatever else it hosts.
    """
    if actor.scope is Scope.SESSION:
        return assign(_SESSIONS, partitions, members)
    if actor.led_apart_from:
        return assign(actor.led_apart_from, partitions, members, backwards=True)
    return assign(actor.name, partitions, members)


def assign(
    key: str, partitions: Sequence[str], members: Sequence[str], *, backwards: bool = False
) -> Mapping[str, Assignment]:
    """Spread partitions evenly over the members that host them, in the same way for the same key.

    Uses rendezvous hashing with at most ceil(partitions / members) for each member: when a member joins or leaves, few
    other partitions move. ``backwards`` reverses the order of preference: of two members, the other one
    leads then. Returns nothing when there are no members.
    """
    return _assign(key, tuple(partitions), tuple(members), backwards) if members else {}


@lru_cache(maxsize=256)
def _assign(
    key: str, partitions: tuple[str, ...], members: tuple[str, ...], backwards: bool
) -> Mapping[str, Assignment]:
    # Cached: this is called twice a second, and the members hardly ever change.
    cap = -(-len(partitions) // len(members))
    load = dict.fromkeys(members, 0)
    assignments = {}
    for partition in partitions:
        ranked = sorted(members, key=lambda member: _rank(member, key, partition), reverse=not backwards)
        leader = next(member for member in ranked if load[member] < cap)
        load[leader] += 1
        assignments[partition] = Assignment(leader, next((member for member in ranked if member != leader), None))
    return assignments
