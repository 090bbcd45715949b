"""The hash chain: each row's hash covers the row and, through the hash before it, every row before it.

The chain has no key. It finds accidents and bit rot: a changed byte, a lost row, rows out of order. It does not stop a
clever forger, who can recompute every hash after a change. That, and a tail that was cut off, can only be found with a
head that was recorded elsewhere: the ``ledger.anchored`` events in the stream.
"""

from hashlib import sha256
from struct import Struct

import msgspec

GENESIS = bytes(32)
"""The hash before the first row."""

# Lengths before contents: so no two different records are hashed as the same bytes, whatever their fields hold.
_FRAME = Struct(">QqIII")


class Head(msgspec.Struct, frozen=True):
    """The chain after ``rows`` events, the last of them with sequence ``seq``; ``hash`` is 32 bytes."""

    seq: int = 0
    rows: int = 0
    hash: bytes = GENESIS


def link(previous: bytes, seq: int, time_ns: int, subject: bytes, headers: bytes, data: bytes) -> bytes:
    """Return the hash of a row (32 bytes): SHA-256 of the previous hash and the framed record.

    The record is sequence (8 bytes), server time (8 bytes, signed nanoseconds), and the byte lengths of subject,
    headers and data (4 bytes each), all big-endian, then the three fields as they are stored.
    """
    frame = _FRAME.pack(seq, time_ns, len(subject), len(headers), len(data))
    return sha256(b"".join((previous, frame, subject, headers, data))).digest()
