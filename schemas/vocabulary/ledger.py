"""Anchors of the ledger's hash chain, recorded losses of the log, and scarce resources. Owner: ``ledger``.

The ledger is a copy of the log in an SQLite file. An anchor is the head of its chain, written into the log.
"""

from functools import partial
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity
from schemas.event import Event


class LedgerAnchored(Event, frozen=True, kw_only=True, tag="forged_id.ledger.anchored"):
    """The head of a ledger's hash chain, written into the stream: a ledger whose end was cut off does not match it.

    ``head`` is the chain's hash (64 hex digits) after the event of sequence ``through_seq``, ``rows`` the number of
    events up to it.
    """

    through_seq: int
    rows: int
    head: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class LossRecorded(Event, frozen=True, kw_only=True, tag="forged_id.ledger.loss_recorded"):
    """The log lost messages that it had acknowledged: its store was cut, damaged, or replaced by an older copy.

    Lost are the sequences from ``first_seq`` to ``through_seq``, as far as is known. ``known_by`` says what showed
    the loss: a ``ledger`` that holds them, ``snapshots`` made after them, or the ``stream``, whose sequences have a gap
    there. ``given_again``: the log has given these sequences to later messages, or will. ``kept_as`` is the
    name of the ledger file that was put aside, empty when there was none.
    """

    first_seq: int
    through_seq: int
    known_by: Literal["ledger", "snapshots", "stream"]
    given_again: bool
    kept_as: str = ""


Resource = Literal["disk", "inodes", "file descriptors", "memory", "address space", "storage"]
"""What can be used up; ``storage`` is that of an account at the broker, or of the set's own broker."""


class ResourceScarce(Event, frozen=True, kw_only=True, tag="forged_id.ledger.resource_scarce"):
    """Less than a tenth of a resource is left on the machine of the ledger's process: make room before it is used up.

    ``whose`` names what has the resource: a disk by its folder, a process, a machine or container, or an account at the
    broker or the broker itself. ``free`` and ``total`` are bytes; inodes and file descriptors are counted.
    ``ledger.resource_sufficient`` ends it.
    """

    resource: Resource
    whose: str
    free: Annotated[int, msgspec.Meta(ge=0)]
    total: Annotated[int, msgspec.Meta(ge=1)]


class ResourceSufficient(Event, frozen=True, kw_only=True, tag="forged_id.ledger.resource_sufficient"):
    """Enough is left again of a resource that was scarce, or its process has ended."""

    resource: Resource
    whose: str


_entry = partial(Entry, owner="ledger", scope=Scope.GLOBAL)

ENTRIES = (
    _entry(
        meaning="The head of the ledger's hash chain after a sequence; exposes a cut tail.",
        sample=LedgerAnchored(through_seq=10_000, rows=10_000, head="0" * 64),
        spontaneous=True,
    ),
    _entry(
        meaning="The log lost messages that it had acknowledged; names the sequences, and the ledger that has them.",
        sample=LossRecorded(
            first_seq=9_001,
            through_seq=9_120,
            known_by="ledger",
            given_again=True,
            kept_as="ledger-before-loss-9001.db",
        ),
        severity=Severity.CRITICAL,
        grouping=Grouping(
            by_agent=False, copied_fields=("first_seq", "through_seq", "known_by", "given_again", "kept_as")
        ),
        spontaneous=True,
    ),
    _entry(
        meaning="A disk, a process or the machine of the ledger's process has nearly used up a resource.",
        sample=ResourceScarce(resource="disk", whose="the disk of data", free=4_000_000_000, total=64_000_000_000),
        severity=Severity.WARNING,
        grouping=Grouping(
            by_agent=False, fields=("resource", "whose"), copied_fields=("resource", "whose", "free", "total")
        ),
        ended_by=(ResourceSufficient,),
        spontaneous=True,
    ),
    _entry(
        meaning="Enough is left again of a resource that was scarce.",
        sample=ResourceSufficient(resource="disk", whose="the disk of data"),
        spontaneous=True,
    ),
)
