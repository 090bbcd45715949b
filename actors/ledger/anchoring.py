"""When a projector anchors its head in the log. Pure; decided from the rows that it has stored.

An anchor is an event with the head of the hash chain. The anchored rows are chosen by row count alone. So all
projectors of a log choose the same rows, and the first one writes the anchor for all. An anchor is due until the log
holds it, or a later one.
"""

from collections.abc import Sequence

import msgspec

from events.decoding import Recorded, decode
from events.ledger.checking.chain import Head
from events.ledger.rows import topic_of_subject
from events.log import Append, Fence, Stored
from events.loss_recording import OWN_FILTER, OWN_PREFIX, ledger_record
from schemas.vocabulary.ledger import LedgerAnchored


class AnchorState(msgspec.Struct, frozen=True):
    """What a projector knows about anchors from the rows that it has stored.

    ``fence`` is the sequence of the last of the ledger's own events: an anchor is stored only if it still is, so that
    each is stored once. ``through`` is the highest sequence that an anchor covers, ``foreign`` the sequence of the last
    event that is not the ledger's own, ``due`` the head to be anchored.
    """

    fence: int = 0
    through: int = 0
    foreign: int = 0
    due: Head | None = None


def with_batch(state: AnchorState, batch: Sequence[Stored], heads_to_anchor: Sequence[Head] = ()) -> AnchorState:
    """Fold stored messages. ``heads_to_anchor`` are the heads at those row counts that must be anchored."""
    fence, through, foreign = state.fence, state.through, state.foreign
    for stored in batch:
        if topic_of_subject(stored.subject).startswith(OWN_PREFIX):
            fence = max(fence, stored.seq)
            through = max(through, _through(stored))
        else:
            foreign = max(foreign, stored.seq)
    return _without_covered_due(
        AnchorState(fence, through, foreign, heads_to_anchor[-1] if heads_to_anchor else state.due)
    )


def _through(stored: Stored) -> int:
    recorded = decode(stored)
    event = recorded.message.event if isinstance(recorded, Recorded) else None
    return event.through_seq if isinstance(event, LedgerAnchored) else 0


def _without_covered_due(state: AnchorState) -> AnchorState:
    # An anchor is a row, too. Without the second test, anchors alone would lead to further anchors.
    is_covered = state.due is not None and (state.due.seq <= state.through or state.foreign <= state.through)
    return msgspec.structs.replace(state, due=None) if is_covered else state


def with_anchor(state: AnchorState, head: Head, seq: int) -> AnchorState:
    """Note that the anchor of a head was stored at a sequence; the log will deliver it later."""
    return _without_covered_due(
        msgspec.structs.replace(state, fence=max(state.fence, seq), through=max(state.through, head.seq))
    )


def due_before_stop(state: AnchorState, head: Head) -> AnchorState:
    """Make the head due if rows are not covered by an anchor; called last before a stop."""
    return _without_covered_due(msgspec.structs.replace(state, due=head)) if head.rows else state


def anchor_append(state: AnchorState, head: Head, source: str, time: str, build: str) -> Append:
    """Return the append of a head's anchor, fenced by the last of the ledger's own events; ``time`` is RFC 3339.

    The event's id depends on the sequence alone. So the anchors of two projectors for one row are one event.
    """
    event = LedgerAnchored(through_seq=head.seq, rows=head.rows, head=head.hash.hex())
    record = ledger_record(event, f"through {head.seq}", head.seq, source, time, build)
    return Append((record,), Fence(OWN_FILTER, state.fence))
