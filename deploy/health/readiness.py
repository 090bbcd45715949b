"""Readiness of a gateway as far as it depends on other processes: the broker stores, the ledger's process can write."""

import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from actors.gateway import Client
from actors.gateway.http.check_results import NOT_NEEDED, OK
from deploy.health.findings import lacks_right
from deploy.health.resources import REMEDIES, inodes_left
from events.errors import LogError, Unavailable
from events.jetstream import Connection
from events.jetstream.storage_check import CANNOT_WRITE
from schemas.event import ROOT
from schemas.vocabulary.access import Operated

LEDGER_QUERY = f"{ROOT}.query.ledger.health"
"""Subject of the query for :class:`LedgerHealth`; the process that writes the ledger answers it."""

NO_LEDGER = "no process writes the ledger: run `neuraxis up`, or `neuraxis worker ledger`"

_TRIAL_BYTES = 64 * 1024
"""Bytes written to find out whether the disk is full."""

_TIMEOUT_S = 1.5

TRIAL = Operated(key_id="gateway", action="GET /readyz", about="whether the broker stores again")
"""An event that changes nothing; see :class:`StoringProbe`."""

_TRIAL_S = 1.0
"""Seconds within which it must be confirmed; a readiness check as a whole has two."""


class LedgerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The ledger's last sequence, -1 where it is not known; ``trouble`` says why nothing more can be written to it, and
    is empty if it can.
    """

    position: int
    trouble: str = ""


def ledger_write_fault(ledger: Path) -> str:
    """Write a trial file beside a ledger file; return why that fails, or an empty string.

    The text does not name the file, since everybody who may ask a gateway for its readiness can read it.
    """
    ledger = Path(os.path.realpath(ledger))  # SQLite writes beside the file itself, not beside a link to it
    trial = ledger.with_name(f".{ledger.name}.look-{os.getpid()}")
    try:
        descriptor = os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            left = _TRIAL_BYTES
            while left > 0:
                left -= os.write(descriptor, bytes(left))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            trial.unlink()
    except OSError as wrong:
        return f"the ledger cannot be written: {_reason(wrong, ledger.parent)}"
    return ""


def _reason(wrong: OSError, folder: Path) -> str:
    if wrong.errno not in (errno.ENOSPC, errno.EDQUOT):
        return str(wrong.strerror)
    inodes = inodes_left(folder)
    if inodes is not None and not inodes.free:
        return f"the disk has no inodes left: {REMEDIES['inodes']}"
    return "the disk is full: make room"


async def query_ledger(connection: Connection) -> LedgerHealth:
    """Ask the ledger's process whether it can write, and how far it has written; raises LogError if it may not."""
    try:
        answer = await connection.request(LEDGER_QUERY, deadline=_TIMEOUT_S)
        if "Nats-Service-Error" not in answer.headers:
            return msgspec.json.decode(answer.data, type=LedgerHealth)
        trouble = answer.headers["Nats-Service-Error"]
    except LogError as wrong:
        if lacks_right(wrong):
            raise
        trouble = f"the ledger's process does not answer: {wrong}"
        if isinstance(wrong, Unavailable):
            trouble = NO_LEDGER if connection.connected else "the broker is away"
    except msgspec.DecodeError as wrong:
        trouble = f"the ledger's process does not answer: {wrong}"
    return LedgerHealth(position=-1, trouble=trouble)


async def query_ledger_fault(connection: Connection) -> str:
    """Ask the ledger's process whether it can write; return why not, or an empty string."""
    try:
        return (await query_ledger(connection)).trouble
    except LogError as wrong:
        return f"the ledger's process cannot be asked: {wrong}"


class LedgerProbe:
    """Asks whether the ledger's process is healthy. A missing process is a fault only if one is expected or was seen.

    Args:
        connection: The broker's.
        expected: Whether the set that this process belongs to runs a ledger.
    """

    def __init__(self, connection: Connection, *, expected: bool) -> None:
        self._connection = connection
        self._expected = expected

    async def __call__(self) -> str:
        """Return ``ok``, or ``n/a`` if there seems to be no ledger, or what is wrong."""
        fault = await query_ledger_fault(self._connection)
        self._expected = self._expected or fault != NO_LEDGER
        return (fault or OK) if self._expected else NOT_NEEDED


class StoringProbe:
    """Asks whether the broker stores; if that is in doubt, by storing an event that changes nothing.

    A nats-server whose write has failed never stores again until it is started again. With room on its disk, it answers
    all else that a client may ask as if nothing were wrong. So it is in doubt after it could not write to its disk, and
    after an append from here was not confirmed.

    Args:
        client: Appends the event; it knows which appends were not confirmed.
        fault: Returns why the broker stores nothing, as far as questions show it; empty if they show nothing.
    """

    def __init__(self, client: Client, fault: Callable[[], Awaitable[str]]) -> None:
        self._client = client
        self._fault = fault
        self._could_not_write = False

    async def __call__(self) -> str:
        """Return ``ok``, or what is wrong."""
        if fault := await self._fault():
            self._could_not_write = self._could_not_write or CANNOT_WRITE in fault
            return fault
        if not (self._could_not_write or self._client.append_trouble):
            return OK
        try:
            await self._client.report(TRIAL, within=_TRIAL_S)
        except LogError as wrong:
            return f"the broker answers, and stores nothing ({wrong}): if its disk was full, start it again"
        self._could_not_write = False
        return OK


def ok_if_empty(fault: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[str]]:
    """Return a check that returns ``ok`` where ``fault`` returns an empty text."""

    async def check() -> str:
        return await fault() or OK

    return check
