"""What a process reports in its heartbeat: what it serves, what it cannot serve, and which decisions are slow."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from events.errors import LogError
from events.log import Membership
from events.loggers import get_logger
from events.warning_backoff import WarningBackoff
from schemas.availability import Overrun
from schemas.input_path import WHOLE

BEAT = 1.0
"""Seconds between heartbeats."""

_CHECK_INTERVAL = BEAT / 10
"""Seconds between checks whether a stage has started or stopped working, so that a change is reported quickly."""

_logger = get_logger("neuraxis.worker")


class MetricsAddress(msgspec.Struct, frozen=True):
    """Where a process serves its metrics: ``address`` is HOST:PORT, ``process`` the process's name in its log."""

    process: str
    address: str


class Heartbeat(msgspec.Struct, frozen=True):
    """What a process reports about itself.

    Attributes:
        actors: The actors it hosts.
        recovering: Those actors of which a partition here still reads history, or decides a backlog.
        serves: Stage -> the partitions that it serves (for an actor: leads).
        stalled: Stage -> the partitions that it should serve but whose backlog has not advanced for a while.
        overruns: Actor -> decisions here that took longer than its budget since the process started, with the longest
            recent one.
        unsaved: Actor -> partitions whose latest snapshot could not be saved.
        waiting: Actor -> messages that wait to be decided in the partitions that it leads; absent where none wait.
        stands_in: The actors that it runs only because no living worker hosts them.
        metrics: Where it serves its metrics; None if it serves none.
        declines: Those of its actors that received messages of a newer release, or whose messages cannot be read here
            now: other workers should run them, if any can.
        cut_off: Whether the log cannot be read here now; None from an older release, which does not say.
    """

    actors: tuple[str, ...]
    recovering: tuple[str, ...] = ()
    serves: Mapping[str, tuple[str, ...]] = {}
    stalled: Mapping[str, tuple[str, ...]] = {}
    overruns: Mapping[str, Overrun] = {}
    unsaved: Mapping[str, tuple[str, ...]] = {}
    stands_in: tuple[str, ...] = ()
    waiting: Mapping[str, int] = {}
    metrics: MetricsAddress | None = None
    declines: tuple[str, ...] = ()
    cut_off: bool | None = None

    def able(self) -> set[str]:
        """Return those of its actors whose messages it can read and decide now."""
        is_unable = not self.serves if self.cut_off is None else self.cut_off
        return set() if is_unable else set(self.actors).difference(self.declines, self.stalled, self.recovering)


_FIELD_TYPES = {field.name: field.type for field in msgspec.structs.fields(Heartbeat)}


def heartbeat_of(value: bytes) -> Heartbeat | None:
    """Read a heartbeat; None for one that this release cannot read.

    Another release may say something in another form. Only that is left out then: if its worker did not count, inputs
    would fail for lack of an owner while both releases run.
    """
    try:
        return msgspec.json.decode(value, type=Heartbeat)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    known: dict[str, Any] = {}
    try:
        said = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    for name in said.keys() & _FIELD_TYPES.keys():
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            known[name] = msgspec.json.decode(said[name], type=_FIELD_TYPES[name])
    return Heartbeat(**known) if "actors" in known else None


async def beat(membership: Membership, member: str, heartbeat: Heartbeat, misses: WarningBackoff) -> None:
    """Send one heartbeat, best effort: the next one follows in a second. ``misses`` limits its log lines."""
    try:
        await membership.beat(member, msgspec.json.encode(heartbeat))
    except LogError as error:
        if misses.is_due():
            _logger.info("beat_missed", error=error.code)
    else:
        misses.ended()


async def leave(membership: Membership, member: str) -> None:
    """Sign off, best effort: a member that does not sign off is removed after a while."""
    try:
        await membership.leave(member)
    except LogError as error:
        _logger.info("leave_missed", error=error.code)


async def report(
    membership: Membership,
    member: str,
    works: Mapping[str, Callable[[], bool]],
    started: asyncio.Event,
    metrics: MetricsAddress | None = None,
) -> None:
    """Report once a second and at each change, until cancelled, which of these stages work; then sign off.

    For effectors and the ledger, which are no actors.

    Args:
        membership: Where heartbeats are sent.
        member: The sender's name; a worker of actors in the same process has another.
        works: Stage -> whether it does its work now. Each has one partition (``WHOLE``).
        started: Set once a heartbeat has said that all of them work; before that, a ready process would look stalled.
        metrics: Where the process serves its metrics.
    """
    misses = WarningBackoff()
    try:
        while True:
            working = {stage: does_work() for stage, does_work in works.items()}
            heartbeat = Heartbeat(
                (),
                serves={stage: (WHOLE,) for stage, works_now in working.items() if works_now},
                stalled={stage: (WHOLE,) for stage, works_now in working.items() if not works_now},
                metrics=metrics,
            )
            await beat(membership, member, heartbeat, misses)
            if all(working.values()):
                started.set()
            deadline = asyncio.get_running_loop().time() + BEAT
            while asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(_CHECK_INTERVAL)
                if {stage: does_work() for stage, does_work in works.items()} != working:
                    break
    finally:
        await leave(membership, member)
