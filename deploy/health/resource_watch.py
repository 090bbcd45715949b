"""Records in the log that a resource is nearly used up, before it is, and that enough is left again.

The ledger's process watches its machine: the disk of the data folder, memory, and the file descriptors and address
space of the set's processes. It also watches the limit of the account at the broker, or of the set's own broker. The
events become warnings (``alerts``). A resource of this machine that is scarce by the log when the process starts counts
as scarce until enough of it is found to be left.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import time_ns
from typing import get_args

import msgspec

from deploy.health.resources import (
    REMEDIES,
    SCARCE,
    Remaining,
    address_space_left,
    descriptors_left,
    disk_left,
    inodes_left,
    memory_left,
    storage_left,
)
from events.decoding import Recorded, decode
from events.errors import LogError
from events.exhaustion import exhausted
from events.jetstream import JetStreamLog
from events.log import Append, Log
from events.loggers import get_logger
from events.loss_recording import ledger_record
from events.warning_backoff import WarningBackoff
from schemas.event import topic_of
from schemas.intake.timestamps import rfc3339
from schemas.subjects import topic_filter
from schemas.vocabulary.ledger import Resource, ResourceScarce, ResourceSufficient

INTERVAL_S = 5.0
"""Seconds between two looks at what is left of each resource."""

SUFFICIENT = 1.25 * SCARCE
"""The share from which a resource that was scarce suffices again: one at the limit is not reported at every look."""

Key = tuple[str, str]
"""A resource, and whose it is."""

_FILTERS = [topic_filter(topic_of(kind)) for kind in (ResourceScarce, ResourceSufficient)]
_logger = get_logger("neuraxis.resources")


class Measured(msgspec.Struct, frozen=True):
    """What is left of the resources that could be measured; ``is_all``: whether all of them could be."""

    found: Sequence[Remaining]
    is_all: bool = True


def changes(
    scarce: frozenset[Key], found: Iterable[Remaining], *, is_all: bool = True
) -> list[ResourceScarce | ResourceSufficient]:
    """Return the events to be recorded, given what the log says is scarce, and what is left of everything now.

    A resource that is not in ``found`` any more is no longer scarce: its process has ended, or its limit is gone. But
    if not all could be measured (``is_all``), nothing is known of it.
    """
    remaining = {(left.what, left.whose): left for left in found if left.what in get_args(Resource) and left.total > 0}
    events: list[ResourceScarce | ResourceSufficient] = []
    for key, left in remaining.items():
        if key not in scarce and left.share < SCARCE:
            body = {"resource": left.what, "whose": left.whose, "free": left.free, "total": left.total}
            events.append(msgspec.convert(body, ResourceScarce))
    for key in sorted(scarce):
        if is_all if key not in remaining else remaining[key].share >= SUFFICIENT:
            events.append(msgspec.convert(dict(zip(("resource", "whose"), key, strict=True)), ResourceSufficient))
    return events


class ResourceWatch:
    """Watches what is left of each resource, and records when that becomes scarce.

    Args:
        log: The log to record it in; the login may append the ledger's events.
        measure: Returns what is left of each resource of this machine.
        source: The source named in the events.
        build: The version of the code, for the events.
        server_most: Returns how many bytes the broker itself may store; 0: that is not known.
    """

    def __init__(
        self,
        log: Log,
        measure: Callable[[], Measured],
        *,
        source: str,
        build: str,
        server_most: Callable[[], int] = lambda: 0,
    ) -> None:
        self._log = log
        self._measure = measure
        self._source = source
        self._build = build
        self._server_most = server_most
        self._most = 0
        self._scarce: frozenset[Key] | None = None

    async def run(self) -> None:
        """Look at intervals until cancelled. What cannot be seen or recorded now is seen and recorded later."""
        failures = WarningBackoff()
        while True:
            try:
                await self.look()
            except Exception as error:  # whatever it is, it must not take the ledger down
                foreseen = isinstance(error, LogError | OSError) or bool(exhausted(error))
                if failures.is_due():
                    code = error.code if isinstance(error, LogError) else type(error).__name__
                    log = _logger.info if foreseen else _logger.warning
                    log("resources_not_recorded", error=code, detail=str(error), exc_info=not foreseen)
            else:
                failures.ended()
            await asyncio.sleep(INTERVAL_S)

    async def look(self) -> None:
        """Look once at what is left of each resource, and record what has changed; raises LogError."""
        measured = await asyncio.to_thread(self._measure)
        found = [*measured.found, *await self._storage()]
        if self._scarce is None:
            self._scarce = await self._recorded()
        for event in changes(self._scarce, found, is_all=measured.is_all):
            key = event.resource, event.whose
            if isinstance(event, ResourceScarce):
                _logger.warning(
                    "resource_scarce",
                    resource=event.resource,
                    whose=event.whose,
                    free=event.free,
                    total=event.total,
                    remedy=REMEDIES[event.resource],
                )
                after = self._scarce | {key}
            else:
                _logger.info("resource_sufficient", resource=event.resource, whose=event.whose)
                after = self._scarce - {key}
            await self._record(event)
            self._scarce = after

    async def _storage(self) -> list[Remaining]:
        """Return what is left of the limit on what the broker stores, if there is one; raises LogError."""
        if not isinstance(self._log, JetStreamLog):
            return []
        # A limit that cannot be read now is still there: without it, scarce storage would be reported as sufficient.
        self._most = await asyncio.to_thread(self._server_most) or self._most
        left = storage_left(await self._log.connection.api("INFO"), self._most)
        return [] if left is None else [left]

    async def _recorded(self) -> frozenset[Key]:
        """Return what the log says is scarce."""
        scarce: set[Key] = set()
        async for batch in self._log.history(_FILTERS, 0, (await self._log.info()).last_seq):
            for recorded in map(decode, batch):
                event = recorded.message.event if isinstance(recorded, Recorded) else None
                if isinstance(event, ResourceScarce):
                    scarce.add((event.resource, event.whose))
                elif isinstance(event, ResourceSufficient):
                    scarce.discard((event.resource, event.whose))
        # Each machine's resources are watched by its own ledger process; the account's storage by any.
        return frozenset((what, whose) for what, whose in scarce if whose.endswith(_here()) or what == "storage")

    async def _record(self, event: ResourceScarce | ResourceSufficient) -> None:
        now_ns = time_ns()
        identity = f"{topic_of(event)} {event.resource} {event.whose} {self._source} {now_ns}"
        last = (await self._log.info()).last_seq
        record = ledger_record(event, identity, last, self._source, rfc3339(now_ns), self._build)
        await self._log.append([Append((record,))])


def left_on_machine(folder: Path, processes: Callable[[], Mapping[str, int] | None]) -> Measured:
    """Return what is left on this machine, for a data folder and processes (name -> process id), this one included.

    ``processes`` returns None where they cannot be told now. A process without file descriptors can look at its own
    alone.
    """
    disk, own, others = disk_left(folder), descriptors_left(), None
    with suppress(OSError):
        others = processes()
    found = [disk, inodes_left(folder), memory_left()]
    for name, pid in {"ledger": 0, **(others or {})}.items():
        for left in (descriptors_left(pid) if pid else own, address_space_left(pid or None)):
            found.append(None if left is None else msgspec.structs.replace(left, whose=f"process {name}"))
    there = [msgspec.structs.replace(left, whose=left.whose + _here()) for left in found if left is not None]
    return Measured(there, is_all=disk is not None and others is not None and (own is None or own.free > 0))


def _here() -> str:
    return f" on {socket.gethostname()}"
