"""What a process says of itself in its heartbeat: what it serves, what it cannot serve, and what it decides slowly."""

from collections.abc import Mapping

import msgspec

from events.errors import LogError
from events.log import Membership
from events.loggers import get_logger
from schemas.availability import Overrun

BEAT = 1.0
"""Seconds between heartbeats."""

_logger = get_logger("neuraxis.worker")


class Heartbeat(msgspec.Struct, frozen=True):
    """What a process says of itself.

    Attributes:
        actors: The actors it hosts.
        recovering: Those of which a partition still reads its past here, or decides what came while nobody did.
        serves: Stage -> the partitions that it serves: leads, in an actor's case.
        stalled: Stage -> the partitions that it is to serve, where what waits has not moved for a while.
        overruns: Actor -> its decisions here that took longer than its budget, since the process began; the longest is
            that of late.
        unsaved: Actor -> partitions whose latest snapshot could not be saved.
        waiting: Actor -> messages of the partitions that it leads which wait to be decided; none where nothing does.
        stands_in: The actors that it runs where nobody who hosts them lives.
    """

    actors: tuple[str, ...]
    recovering: tuple[str, ...] = ()
    serves: Mapping[str, tuple[str, ...]] = {}
    stalled: Mapping[str, tuple[str, ...]] = {}
    overruns: Mapping[str, Overrun] = {}
    unsaved: Mapping[str, tuple[str, ...]] = {}
    stands_in: tuple[str, ...] = ()
    waiting: Mapping[str, int] = {}


def heartbeat_of(value: bytes) -> Heartbeat | None:
    """Read a heartbeat; None for one that this release cannot read."""
    try:
        return msgspec.json.decode(value, type=Heartbeat)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


async def beat(membership: Membership, member: str, presence: Heartbeat) -> None:
    """Send one heartbeat; best effort, since the next one follows in a second."""
    try:
        await membership.beat(member, msgspec.json.encode(presence))
    except LogError as error:
        _logger.info("beat_missed", error=error.code)


async def leave(membership: Membership, member: str) -> None:
    """Say goodbye, best effort: a member that does not is forgotten after a while."""
    try:
        await membership.leave(member)
    except LogError as error:
        _logger.info("leave_missed", error=error.code)
