"""Finding a specialist: a NATS micro service whose metadata says that it is one.

A service chooses its own name, and the name asked for may come from a model's plan. So names are checked before they
become part of a subject, and questions are sent only to subjects below ``specialist.``.
"""

import asyncio
import re

import msgspec

from events.errors import LogError
from events.jetstream import Connection
from schemas.permissions import SPECIALIST_ROOT

SPECIALIST = "neuraxis.specialist"
"""Metadata key of a service that is a specialist; its value is ``1``."""

_NAME_FORM = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SUBJECT_FORM = re.compile(rf"{SPECIALIST_ROOT}(\.[A-Za-z0-9_-]{{1,64}}){{1,8}}")


class _Endpoint(msgspec.Struct, frozen=True):
    subject: str


class ServiceInfo(msgspec.Struct, frozen=True):
    """The fields used of a service's answer to ``$SRV.INFO``."""

    name: str
    metadata: dict[str, str] | None = None
    endpoints: tuple[_Endpoint, ...] = ()


def subject_of(info: bytes, name: str) -> str | None:
    """Return the subject of the specialist ``name``, given a service's ``$SRV.INFO``; None if it is another service."""
    try:
        service = msgspec.json.decode(info, type=ServiceInfo)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if service.name != name or (service.metadata or {}).get(SPECIALIST) != "1":
        return None
    return next((each.subject for each in service.endpoints if _SUBJECT_FORM.fullmatch(each.subject)), None)


async def find_specialist(connection: Connection, name: str, within_s: float) -> str | None:
    """Return the subject of the first specialist of that name that answers; None if none does in time."""
    if not _NAME_FORM.fullmatch(name):
        return None
    try:
        async with asyncio.timeout(within_s):
            async for answer in connection.gather(f"$SRV.INFO.{name}", b"", within_s):
                if (subject := subject_of(answer.data, name)) is not None:
                    return subject
    except (LogError, TimeoutError):
        return None
    return None
