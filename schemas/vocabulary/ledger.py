"""The ledger's anchors. Owner: ``ledger``."""

from typing import Annotated

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry
from schemas.event import Event


class LedgerAnchored(Event, frozen=True, kw_only=True, tag="forged_id.ledger.anchored"):
    """The head of a ledger's hash chain, written into the stream so that a cut tail shows.

    ``head`` is the chain's hash (64 hex digits) after the event of sequence ``through_seq``, ``rows`` the number of
    events up to it.
    """

    through_seq: int
    rows: int
    head: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


ENTRIES = (
    Entry(
        event=LedgerAnchored,
        owner="ledger",
        scope=Scope.GLOBAL,
        meaning="The head of the ledger's hash chain after a sequence; exposes a cut tail.",
        sample=LedgerAnchored(through_seq=10_000, rows=10_000, head="0" * 64),
        spontaneous=True,
    ),
)
