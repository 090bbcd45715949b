"""Reading by a login that may not read the whole log: a read service creates its consumers and gets its messages.

Such a login has the right to publish below one subject that names the actors and effectors that its
processes run (``schemas.permissions.read_root``). The
service, in the processes of the ledger and the gateways, checks what such a login asks for.
"""

import asyncio

import msgspec

from events.errors import LogError, Unavailable
from events.jetstream.connection import Connection
from events.jetstream.reading.get_message import get_message
from events.jetstream.rights import ask_rights
from events.loggers import get_logger
from events.losses import FindGaps, merged_ranges
from events.warning_backoff import WarningBackoff
from schemas.permissions import READ_ROOT

GAPS = "LOG.GAPS"
"""The call that tells which sequences the log lacks."""

_ATTEMPTS = 3  # to ask the server for the login's rights
_RETRY_S = 0.25
_logger = get_logger("neuraxis.reads")


class GapsQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which sequences, of those after one and up to another, does the log lack?"""

    after: int
    upto: int


class GapsAnswer(msgspec.Struct, frozen=True):
    """The gaps (first and last sequence) up to ``upto``: the service answers long questions in parts."""

    upto: int
    gaps: tuple[tuple[int, int], ...]


async def use_rights(connection: Connection, stream: str) -> None:
    """Read a stream as this login may: by requests to the read service if it may send these, else directly."""
    for _ in range(_ATTEMPTS):  # a server that is only slow must not make us read by the wrong way
        if (who := await ask_rights(connection)) is not None:
            break
    else:
        return
    rights = who.permissions.publish
    root = next((each.removesuffix(".>") for each in rights.allow if each.startswith(f"{READ_ROOT}.")), "")
    connection.ask_to_read("" if rights.include(f"$JS.API.STREAM.MSG.GET.{stream}") else root, stream)


async def await_read_service(connection: Connection, stream: str, deadline: float) -> None:
    """Return once reads are served, at once if they need not be; raises Unavailable after ``deadline`` seconds."""
    if not connection.asks_to_read:
        return
    end, warnings = asyncio.get_running_loop().time() + deadline, WarningBackoff()
    while True:
        try:
            await get_message(connection, stream, 1)
            return
        except LogError as error:
            if asyncio.get_running_loop().time() >= end:
                raise Unavailable(str(error)) from error
            if warnings.is_due():
                for_s = round(warnings.lasted_s, 1)
                _logger.warning("waits_for_read_service", stream=stream, detail=str(error), for_s=for_s)
        await asyncio.sleep(_RETRY_S)


def gap_finder(connection: Connection, stream: str) -> FindGaps | None:
    """Return what asks the read service for gaps of the log; None for a login that can read the log itself."""
    if not connection.asks_to_read:
        return None

    async def find(after: int, upto: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        while after < upto:
            question = {"after": after, "upto": upto}
            answer = msgspec.convert(await connection.api(f"{GAPS}.{stream}", question), GapsAnswer)
            found += answer.gaps
            after = answer.upto
        return list(merged_ranges(found))

    return find
