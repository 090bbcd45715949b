"""The findings of a ledger's checks."""

from enum import StrEnum

import msgspec

from events.losses import Loss

MOST_FINDINGS = 20
"""Findings that a report lists; the rest are counted."""


class Check(StrEnum):
    """What a finding is about."""

    STRUCTURE = "structure"
    """SQLite finds its own pages or indexes inconsistent."""
    SCHEMA = "schema"
    """A table, index or view is not defined as it was made."""
    JOURNAL = "journal"
    """The write-ahead log beside the file is damaged: what was committed behind the damage is lost to this file."""
    META = "meta"
    """What the file notes of itself does not fit: its row count (rows were cut off, or added by another hand), or its
    stream and partitions."""
    MODELS = "models"
    """A read model does not say what the events say; ``neuraxis log rebuild`` folds it anew."""
    GAP = "gap"
    """Sequences are missing between two rows. The stream's have no gaps."""
    HASH = "hash"
    """The row, or its place after the one before it, is not what was hashed when it was written."""
    COLUMNS = "columns"
    """A column for queries does not say what the message's headers and subject say."""
    ANCHOR = "anchor"
    """A head that was noted in the stream is not the chain's head at that row."""
    DIFFERS = "differs"
    """The stream's message and the ledger's row of one sequence are not the same."""
    MISSING_IN_LEDGER = "missing_in_ledger"
    """The stream has a message, before the ledger's last, that the ledger has not."""
    MISSING_IN_STREAM = "missing_in_stream"
    """The ledger has a row that the stream has no message for."""
    TAIL_CUT = "tail_cut"
    """The stream vouches for rows after the ledger's last: they were cut off, or this is an older copy."""


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it should be, at a sequence (0: the file as a whole)."""

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

    ``anchors`` counts the ledger's own heads in the file that were checked. ``findings`` lists the first
    ``MOST_FINDINGS`` of ``finding_count``, in row order. ``losses`` are those that the log has recorded: facts, and no
    findings.
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

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return self.finding_count == 0


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What comparing a ledger with its stream found.

    ``compared`` counts the messages found equal in both, ``anchors`` the stream's anchors checked, ``behind`` the
    messages of the stream after the ledger's last: a projector at work or at rest is behind, which is no finding.
    """

    path: str
    compared: int
    last_seq: int
    stream_last_seq: int
    behind: int
    anchors: int
    findings: tuple[Finding, ...]
    finding_count: int

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return self.finding_count == 0
