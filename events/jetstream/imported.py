"""The stored form of imported messages, and how the recorded form is read back from it. Pure.

The broker gives each message its own time, and acts on headers that begin with ``Nats-``. So an import stores the
recorded time in the header ``nx-recorded-at`` (Unix nanoseconds). A recorded header that the broker would act on, or
that begins with ``nx-recorded-`` itself, gets the prefix ``nx-recorded-``. Both are trusted only up to the sequence
that the stream's metadata names as imported. So no later message can claim another time.
"""

from collections.abc import Mapping

from events.log import Record, Stored
from schemas.permissions import IMPORT_ROOT
from schemas.subjects import STORED_ROOT

RECORDED_AT = "nx-recorded-at"

_RECORDED_PREFIX = "nx-recorded-"
_BROKER_PREFIX = "nats-"


def import_record(stored: Stored, **extra_headers: str) -> Record:
    """Return the record to publish so that an importing stream holds a recorded message.

    Raises:
        ValueError: the message's subject is not a stored subject.
    """
    root, _, rest = stored.subject.partition(".")
    if root != STORED_ROOT or rest.count(".") < 2 or not all(rest.split(".")) or set(rest) & set("*> \t\r\n"):
        raise ValueError(f"{stored.subject!r} is no subject of a log")
    headers = {
        _RECORDED_PREFIX + name if _needs_prefix(name) else name: value for name, value in stored.headers.items()
    }
    return Record(f"{IMPORT_ROOT}.{rest}", headers | {RECORDED_AT: str(stored.time_ns)} | extra_headers, stored.data)


def as_recorded(
    seq: int, time_ns: int, subject: str, headers: Mapping[str, str], data: bytes, imported_through: int
) -> Stored:
    """Return a message of a stream: as it was recorded, up to sequence ``imported_through``; later ones as stored."""
    if seq > imported_through or RECORDED_AT not in headers:
        return Stored(seq, time_ns, subject, headers, data)
    own = {
        name.removeprefix(_RECORDED_PREFIX): value
        for name, value in headers.items()
        if name != RECORDED_AT and not name.lower().startswith(_BROKER_PREFIX)
    }
    return Stored(seq, int(headers[RECORDED_AT]), subject, own, data)


def _needs_prefix(name: str) -> bool:
    return name.lower().startswith((_BROKER_PREFIX, _RECORDED_PREFIX))
