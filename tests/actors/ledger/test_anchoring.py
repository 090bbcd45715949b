"""When an anchor is due, and what it looks like."""

from actors.ledger.anchoring import AnchorState, anchor_append, due_before_stop, with_anchor, with_batch
from events.decoding import Recorded, decode
from events.ledger import Head
from events.log import Fence, Stored
from events.loss_recording import OWN_FILTER
from schemas.vocabulary.ledger import LedgerAnchored
from tests.events.ledger.messages import PASSED, anchor, stored

MARK = Head(5, 5, bytes(32))


def test_a_marked_row_makes_its_head_due() -> None:
    state = with_batch(AnchorState(), [stored(seq, PASSED) for seq in range(1, 8)], [MARK])
    assert state == AnchorState(fence=0, through=0, foreign=7, due=MARK)


def test_an_anchor_seen_in_the_log_settles_what_it_vouches_for() -> None:
    state = with_batch(AnchorState(due=MARK, foreign=7), [anchor(8, 5, 5, "0" * 64)])
    assert state == AnchorState(fence=8, through=5, foreign=7, due=None)


def test_an_anchor_of_an_earlier_row_moves_the_fence_and_settles_nothing() -> None:
    state = with_batch(AnchorState(due=MARK, foreign=7), [anchor(8, 4, 4, "0" * 64)])
    assert state == AnchorState(fence=8, through=4, foreign=7, due=MARK)


def test_an_anchor_that_was_stored_settles_its_head_before_the_log_shows_it() -> None:
    state = with_anchor(AnchorState(fence=2, through=1, foreign=7, due=MARK), MARK, 9)
    assert state == AnchorState(fence=9, through=5, foreign=7, due=None)


def test_anchors_alone_call_for_no_anchor() -> None:
    state = with_batch(AnchorState(through=5, foreign=5), [anchor(6, 5, 5, "0" * 64)], [Head(6, 6, bytes(32))])
    assert state.due is None


def test_a_stop_anchors_what_no_anchor_vouches_for() -> None:
    assert due_before_stop(AnchorState(through=5, foreign=7), Head(7, 7, bytes(32))).due == Head(7, 7, bytes(32))
    assert due_before_stop(AnchorState(through=7, foreign=7, fence=8), Head(8, 8, bytes(32))).due is None
    assert due_before_stop(AnchorState(), Head()).due is None


def test_the_anchor_is_fenced_and_its_id_is_the_rows() -> None:
    append = anchor_append(
        AnchorState(fence=3), Head(7, 6, b"\xab" * 32), "neuraxis/ledger", "2025-01-01T00:00:00Z", "b"
    )
    assert append.fence == Fence("log.*.*.ledger.>", 3)
    assert OWN_FILTER == "log.*.*.ledger.>"
    (record,) = append.records
    assert record.subject == "log._._.ledger.anchored"
    recorded = decode(Stored(8, 1, record.subject, record.headers, record.data))
    assert isinstance(recorded, Recorded)
    assert recorded.message.event == LedgerAnchored(through_seq=7, rows=6, head="ab" * 32)
    assert recorded.envelope.cause_seq == 7
    later = anchor_append(AnchorState(fence=9), Head(7, 6, b"\xab" * 32), "other", "2026-01-01T00:00:00Z", "c")
    assert later.records[0].headers["Nats-Msg-Id"] == record.headers["Nats-Msg-Id"]
