"""Settings of the ledger's projector."""

from typing import Annotated

import msgspec

Seconds = Annotated[float, msgspec.Meta(gt=0.0, le=3600.0)]
"""A time of at most an hour, in seconds."""


class LedgerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the projector writes the ledger and appends anchors (the head of its hash chain) to the stream.

    Attributes:
        anchor_every: Rows between two anchors; all projectors of a log should agree on it.
        batch_rows: Most rows of one transaction: bounds how long other tasks of the process wait for one.
        rest_ms: Pause after a transaction, in milliseconds, in which the rows of the next one gather, and nothing is
            read. A transaction costs as much as thirty rows, and its flush holds up the broker's on the same disk.
            After a full batch there is no pause.
        retry_first_s: Wait after a first failure to write (disk full, file locked), in seconds; it doubles.
        retry_most_s: Longest wait between two attempts, in seconds.
    """

    anchor_every: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    batch_rows: Annotated[int, msgspec.Meta(ge=1)] = 5_000
    rest_ms: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 100
    retry_first_s: Seconds = 0.1
    retry_most_s: Seconds = 5.0
