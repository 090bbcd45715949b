"""What a gateway's readiness asks of others: does the broker store, and can the ledger's process write its file."""

import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from actors.gateway.http.readiness_checks import NOT_NEEDED, OK
from events.errors import LogError, Unavailable
from events.jetstream import Connection
from schemas.event import ROOT

LEDGER_QUERY = f"{ROOT}.query.ledger.health"
"""Asked for :class:`LedgerHealth`; served by the process that writes the ledger."""

NO_LEDGER = "no process writes the ledger: run `neuraxis up`, or `neuraxis worker ledger`"

_LOOK_BYTES = 64 * 1024
_PATIENCE_S = 1.5


class LedgerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How far a ledger is written, and why nothing more can be; ``trouble`` is empty when all is well."""

    position: int
    trouble: str = ""


def ledger_write_fault(ledger: Path) -> str:
    """Return why nothing can be written beside a ledger file, by writing there; empty when it can.

    It does not name the file: who may probe a gateway is told it.
    """
    draft = ledger.with_name(f".{ledger.name}.look-{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            left = _LOOK_BYTES
            while left > 0:
                left -= os.write(descriptor, bytes(left))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            draft.unlink()
    except OSError as wrong:
        what = "the disk is full: make room" if wrong.errno in (errno.ENOSPC, errno.EDQUOT) else wrong.strerror
        return f"the ledger cannot be written: {what}"
    return ""


async def ledger_fault(connection: Connection) -> str:
    """Ask the ledger's process whether it can write; return why not, empty when it can."""
    try:
        answer = await connection.request(LEDGER_QUERY, deadline=_PATIENCE_S)
        if "Nats-Service-Error" in answer.headers:
            return answer.headers["Nats-Service-Error"]
        return msgspec.json.decode(answer.data, type=LedgerHealth).trouble
    except Unavailable:
        return NO_LEDGER if connection.connected else "the broker is away"
    except (LogError, msgspec.DecodeError) as wrong:
        return f"the ledger's process does not answer: {wrong}"


class LedgerProbe:
    """A look at the ledger's process that misses one only where there is to be one, or was one.

    Args:
        connection: The broker's.
        expected: Whether the set that this process belongs to runs a ledger.
    """

    def __init__(self, connection: Connection, *, expected: bool) -> None:
        self._connection = connection
        self._expected = expected

    async def __call__(self) -> str:
        """Return ``ok``, ``n/a`` where nothing speaks for a ledger, or what is wrong."""
        fault = await ledger_fault(self._connection)
        self._expected = self._expected or fault != NO_LEDGER
        return (fault or OK) if self._expected else NOT_NEEDED


def ok_if_empty(fault: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[str]]:
    """Return a look whose empty finding is ``ok``."""

    async def look() -> str:
        return await fault() or OK

    return look
