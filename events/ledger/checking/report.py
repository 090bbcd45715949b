"""The findings of a ledger's checks."""

from enum import StrEnum

import msgspec

from events.losses import Loss
from events.unroutable import Unroutable

MOST_FINDINGS = 20
"""Findings that a report lists; the rest are counted."""


class Check(StrEnum):
    """What a finding is about."""

    STRUCTURE = "structure"
    """SQLite finds its own pages or indexes inconsistent."""
    SCHEMA = "schema"
    """A table, index or view is not defined as it was made."""
    JOURNAL = "journal"
    """The write-ahead log beside the file is damaged: what was committed behind the damage cannot be read."""
    META = "meta"
    """The file's metadata do not fit: its row count (rows were cut off, or added by another program), or its stream and
    partitions."""
    MODELS = "models"
    """A read model does not say what the events say; ``neuraxis log rebuild`` folds it anew."""
    GAP = "gap"
    """Sequences are missing between two rows, and no loss of the log was recorded for them."""
    HASH = "hash"
    """The row has changed since it was hashed, or the row before it is another."""
    COLUMNS = "columns"
    """A column for queries differs from the message's headers or subject."""
    ANCHOR = "anchor"
    """A recorded head of the chain (an anchor) differs from the chain's hash at that row."""
    DIFFERS = "differs"
    """The stream's message and the ledger's row of one sequence are not the same."""
    MISSING_IN_LEDGER = "missing_in_ledger"
    """The stream has a message, before the ledger's last, that the ledger lacks."""
    MISSING_IN_STREAM = "missing_in_stream"
    """The ledger has a row without a message in the stream."""
    TAIL_CUT = "tail_cut"
    """The stream's anchors show that the ledger had more rows: they were cut off, or this is an older copy."""


class Finding(msgspec.Struct, frozen=True):
    """Something wrong at a sequence (0: the file as a whole)."""

    seq: int
    check: Check
    detail: str


class Findings:
    """Collects findings: the first few in full, all of them counted."""

    def __init__(self) -> None:
        self.listed: list[Finding] = []
        self.count = 0

    def add(self, seq: int, check: Check, detail: str) -> None:
        """Note a finding."""
        self.count += 1
        if len(self.listed) < MOST_FINDINGS:
            self.listed.append(Finding(seq, check, detail))


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What recomputing a ledger's chain found. ``head`` is the last hash (64 hex digits).

    ``anchors`` counts the recorded heads in the file that were checked. ``findings`` lists the first ``MOST_FINDINGS``
    of ``finding_count``, in row order. ``losses`` are the recorded losses of the log: they are facts, not findings.
    ``models_compared``: whether the read models were folded anew and compared. They are not where another release
    folded them, or where the events are damaged. ``unroutable`` lists the first subjects of ``unroutable_count`` events
    that no actor of this release reads: the ledger is as sound with them, so they are no findings.
    """

    path: str
    rows: int
    first_seq: int
    last_seq: int
    head: str
    anchors: int
    findings: tuple[Finding, ...]
    finding_count: int
    losses: tuple[Loss, ...] = ()
    models_compared: bool = True
    unroutable: tuple[Unroutable, ...] = ()
    unroutable_count: int = 0

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return self.finding_count == 0


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What comparing a ledger with its stream found.

    ``compared`` counts the messages that are equal in both, ``anchors`` the checked anchors of the stream, and
    ``behind`` the stream's messages after the ledger's last. A projector is usually behind, so these are no findings.
    ``archived`` counts the ledger's rows that were removed from the stream's beginning.
    """

    path: str
    compared: int
    last_seq: int
    stream_last_seq: int
    behind: int
    anchors: int
    findings: tuple[Finding, ...]
    finding_count: int
    archived: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return self.finding_count == 0
