"""Watching which stages are served. It reads the workers' heartbeats and needs no actor, so it works when all are gone.

A stage is what workers serve: an actor, an effector or the ledger. By default, the stages that every input needs are
watched. A stage is served if a living worker leads each of its partitions.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from actors.runtime.membership.availability import (
    AvailabilityWatch,
    StagePartition,
    by_stage,
    readable_heartbeats,
    unserved_partitions,
)
from actors.swarm.settings import SwarmSettings
from deploy.config.loading import Config
from events.errors import LogError, NotPermitted, Unavailable
from events.jetstream import Access, Connection, KeyValueMembership
from events.log import Membership
from events.loggers import get_logger
from events.warning_backoff import WarningBackoff
from schemas.availability import Lack
from schemas.input_path import GUARDS, REQUIRED, WITNESSES, names_of, scopes, token_of
from schemas.subjects import Partitions

NEEDED = (*REQUIRED, *WITNESSES)
"""The stages that must be served in a healthy set: those that every input needs, and those that notice a lost one."""

POLL_INTERVAL_S = 1.0

FAULT_INTERVAL_S = 5.0
"""Seconds between two looks at what keeps a set from its work: one of them makes the broker write a file."""

TAKEOVER_S = 4.0
"""Seconds for which a stage may be unserved before that is reported: another worker normally takes over in less."""

Unserved = Mapping[str, tuple[Lack, tuple[str, ...]]]
"""Stage -> why it is not served, and which of its partitions."""

_UNREACHABLE = "the broker cannot be reached"
_logger = get_logger("neuraxis.stages")


def needed_by(config: Config) -> tuple[str, ...]:
    """Return :data:`NEEDED`, changed as ``swarm.required`` says, so that all checks agree on what counts as lost."""
    return tuple(dict.fromkeys((*config.section("swarm", SwarmSettings).required, *WITNESSES)))


class StageWatch:
    """Watches, in one process, whether stages are served; all times are seconds of the event loop's clock.

    Args:
        membership: Holds the heartbeats of living workers.
        partitions: The stream's partition counts.
        needed: The stages to watch.
    """

    def __init__(self, membership: Membership, partitions: Partitions, needed: Sequence[str] = NEEDED) -> None:
        self._membership = membership
        self.needed = tuple(needed)
        self._partitions = partitions
        self._watch = AvailabilityWatch(partitions)

    async def look(self) -> None:
        """Read the heartbeats once.

        Raises:
            LogError: they cannot be read.
        """
        try:
            members = await self._membership.members()
        except LogError:
            self._watch.note_blind()
            raise
        self._watch.check(members, asyncio.get_running_loop().time())

    @property
    def is_known(self) -> bool:
        """Whether the heartbeats could be read lately: otherwise :meth:`unserved` tells nothing of now."""
        now = asyncio.get_running_loop().time()
        return self._watch.availability(now) is not None and now - self._watch.checked_at <= TAKEOVER_S

    def unserved(self, *, patient: bool = False) -> Unserved:
        """Return the stages that nobody serves: why, and which partitions.

        A stage that was served before counts after :data:`TAKEOVER_S`. A stage that never was counts at once, or, with
        ``patient``, after :data:`TAKEOVER_S` as well: in a set that has just started it may not have reported yet.
        """
        now = asyncio.get_running_loop().time()
        away: dict[StagePartition, Lack] = {
            partition: lack
            for partition, lack in self._watch.lacks.items()
            if self._watch.away_s(partition, now) >= TAKEOVER_S or not (patient or self._watch.has_seen(partition))
        }
        return by_stage(away, self.needed)

    def why_unserved(self, stage: str, agent: str, session: str = "") -> str:
        """Return why nobody serves a stage for an agent and session, in words; empty if somebody does, or may soon.

        A stage that was served before counts as in :meth:`unserved`. One that never was counts after twice as long,
        since it may be starting. A recovering stage is served soon, and does not count.
        """
        now, scope = asyncio.get_running_loop().time(), scopes()[stage]
        partition = stage, token_of(scope, self._partitions, agent, session)
        lack = self._watch.lacks.get(partition)
        if lack in (None, "recovering") or self._watch.availability(now) is None:  # no heartbeats can be read
            return ""
        tolerated_s = TAKEOVER_S if self._watch.has_seen(partition) else 2 * TAKEOVER_S
        return f"{stage} ({str(lack).replace('_', ' ')})" if self._watch.away_s(partition, now) >= tolerated_s else ""

    def why_no_end(self, agent: str, session: str = "") -> str:
        """Return why nobody will end an exchange soon, in words; empty if somebody will, or may.

        The responder ends exchanges. It also ends one that waits for a lost guard, after swarm has reported the loss.
        If both the guard and swarm are lost, nobody reports it.
        """
        responder = self.why_unserved("responder", agent, session)
        if responder or not (swarm := self.why_unserved("swarm", agent, session)):
            return responder
        lost = [reason for guard in GUARDS if (reason := self.why_unserved(guard, agent, session))]
        return ", ".join((*lost, swarm)) if lost else ""

    async def follow(self, on_change: Callable[[Unserved, Unserved], None] = lambda now, before: None) -> None:
        """Read the heartbeats until cancelled; call ``on_change`` with what is unserved now, and what was before."""
        last: Unserved = {}
        while True:
            try:
                await self.look()
            except LogError as error:
                _logger.debug("stages_unknown", error=error.code)
            else:
                if (now := self.unserved(patient=True)) != last:
                    last, before = now, last
                    on_change(now, before)
            await asyncio.sleep(POLL_INTERVAL_S)


@asynccontextmanager
async def watching_stages(connection: Connection, partitions: Partitions) -> AsyncIterator[StageWatch]:
    """Watch the stages for the length of a block."""
    stages = StageWatch(KeyValueMembership(connection), partitions)
    task = asyncio.create_task(stages.follow(), name="stages")
    try:
        yield stages
    finally:
        task.cancel()
        await asyncio.wait((task,))


def log_changes(now: Unserved, before: Unserved) -> None:
    """Write to the process's log which stages are no longer served, and which are served again."""
    for stage, (lack, names) in now.items():
        if before.get(stage) != (lack, names):
            _logger.warning("stage_lost", stage=stage, reason=lack, partitions=names)
    for stage in before:
        if stage not in now:
            _logger.info("stage_found", stage=stage)


async def log_unserved_stages(
    access: Access,
    partitions: Partitions,
    needed: Sequence[str],
    *,
    storing: Callable[[Connection], Awaitable[str]] | None = None,
    note: Callable[[str], None] = lambda fault: None,
) -> None:
    """Log the stages that nobody serves, until cancelled; while the broker is away, wait for it.

    Whatever else goes wrong is logged, and the watch begins anew: nobody would notice its end.

    Args:
        access: How to reach the broker.
        partitions: The stream's partition counts.
        needed: The stages to watch.
        storing: Returns why the broker stores nothing, for ``note``; empty if it does. None: that is not looked at.
        note: Called every few seconds with what keeps the set from its work; an empty text if nothing does.
    """
    failures = WarningBackoff()
    while True:
        try:
            async with await Connection.open(access, POLL_INTERVAL_S) as connection:
                await _watch_stages(connection, partitions, needed, storing, note)
        except LogError as error:
            note(_UNREACHABLE)
            _logger.debug("stages_unknown", error=error.code)
        except Exception as wrong:
            first = wrong.exceptions[0] if isinstance(wrong, ExceptionGroup) else wrong
            note(f"it cannot be seen whether all stages are served ({type(first).__name__})")
            if failures.is_due():
                _logger.warning("stages_not_seen", error=type(first).__name__, exc_info=True)
        await asyncio.sleep(POLL_INTERVAL_S)


async def _watch_stages(
    connection: Connection,
    partitions: Partitions,
    needed: Sequence[str],
    storing: Callable[[Connection], Awaitable[str]] | None,
    note: Callable[[str], None],
) -> None:
    stages = StageWatch(KeyValueMembership(connection), partitions, needed)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stages.follow(log_changes), name="stages")
        await asyncio.sleep(TAKEOVER_S)  # nothing is certain before
        while True:
            lacking = unserved_text(stages.unserved(patient=True), partitions)
            fault = f"not served: {lacking}" if lacking else ""
            if not stages.is_known:
                fault = "what workers say of themselves cannot be read"
            if not connection.connected:
                fault = _UNREACHABLE
            elif storing is not None:
                fault = await storing(connection) or fault
            note(fault)
            if connection.closed:
                raise Unavailable(f"the connection that watches the stages is closed{connection.why_closed}")
            await asyncio.sleep(FAULT_INTERVAL_S)


async def absence_of(stages: Sequence[str], connection: Connection, partitions: Partitions) -> str:
    """Return which stages nobody serves, in words; empty if all are served, or are within :data:`TAKEOVER_S`.

    Raises:
        LogError: the heartbeats cannot be read.
    """
    membership, deadline = KeyValueMembership(connection), asyncio.get_running_loop().time() + TAKEOVER_S
    while True:
        try:
            alive = readable_heartbeats(await membership.members())
        except NotPermitted:
            raise
        except Unavailable:  # no worker has ever run at this broker
            alive = []
        unserved = by_stage(unserved_partitions(alive, partitions), stages)
        if not unserved or asyncio.get_running_loop().time() >= deadline:
            return unserved_text(unserved, partitions)
        await asyncio.sleep(POLL_INTERVAL_S / 2)


def unserved_text(unserved: Unserved, partitions: Partitions) -> str:
    """Return the stages in words: ``arbiter (no owner), breaker 03 07 (recovering)``; empty if there are none."""
    return ", ".join(_lack_text(stage, lack, names, partitions) for stage, (lack, names) in unserved.items())


def _lack_text(stage: str, lack: Lack, names: Sequence[str], partitions: Partitions) -> str:
    whole = len(names) == len(names_of(scopes()[stage], partitions))
    which = "" if whole else f" {' '.join(names)}"
    return f"{stage}{which} ({lack.replace('_', ' ')})"
