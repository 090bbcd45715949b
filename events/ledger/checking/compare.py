"""Comparing a ledger file with the stream that it follows."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from events.decoding import Recorded, decode
from events.ledger.checking.report import Check, Comparison, Findings
from events.ledger.reader import LedgerReader
from events.ledger.rows import topic_of_subject
from events.log import Log, Stored
from events.losses import Losses
from schemas.event import topic_of
from schemas.subjects import EVERYTHING
from schemas.vocabulary.ledger import LedgerAnchored

_ANCHOR = topic_of(LedgerAnchored)


async def compare(path: Path, log: Log) -> Comparison:
    """Compare every message of the stream with the ledger's row, and the stream's anchors with the ledger's chain.

    ``log`` must return messages as stored (``JetStreamLog.as_stored``): sealed words are sealed in the ledger, too.

    If the two differ, this cannot say which of them is right. ``verify`` says whether the ledger is still what was
    written.

    Raises:
        LedgerDamaged, Misconfigured: see ``LedgerReader``.
        Unavailable: the stream cannot be read.
    """
    # Damage is ignored while reading: a damaged row differs from the stream's message, and is reported for that.
    with LedgerReader(path, lambda _: None) as reader:
        head = reader.head()
        # The ledger's end is read before the stream's: then a live projector cannot seem to be ahead of the stream.
        info = await log.info()
        tally = _Tally(reader, head.seq, await Losses.of(log, info.last_seq), log.trimmed_through)
        rows = _flat(reader, min(head.seq, info.last_seq))
        row = next(rows, None)
        async for message in _messages(log, info.last_seq):
            while row is not None and row.seq < message.seq:
                tally.missing_in_stream(row.seq)
                row = next(rows, None)
            if row is not None and row.seq == message.seq:
                tally.pair(row, message)
                row = next(rows, None)
            else:
                tally.missing_in_ledger(message.seq)
            tally.anchor(message)
        while row is not None:
            tally.missing_in_stream(row.seq)
            row = next(rows, None)
        if head.seq > info.last_seq:
            tally.stream_ends_early(info.last_seq)
    return Comparison(
        path=str(path),
        compared=tally.equal,
        last_seq=head.seq,
        stream_last_seq=info.last_seq,
        behind=tally.behind,
        anchors=tally.anchors,
        archived=tally.archived,
        findings=tuple(tally.findings.listed),
        finding_count=tally.findings.count,
    )


def _flat(reader: LedgerReader, upto: int) -> Iterator[Stored]:
    for batch in reader.history(upto=upto):
        yield from batch


async def _messages(log: Log, upto: int) -> AsyncIterator[Stored]:
    async for batch in log.history([EVERYTHING], 0, upto):
        for message in batch:
            yield message


class _Tally:
    """The counts and findings of a comparison."""

    def __init__(self, reader: LedgerReader, last: int, losses: Losses, trimmed: int) -> None:
        self.findings = Findings()
        self.equal = self.behind = self.anchors = self.archived = 0
        self._trimmed = trimmed
        self._reader = reader
        self._last = last
        self._losses = losses

    def pair(self, row: Stored, message: Stored) -> None:
        """Compare a row with the message of the same sequence."""
        names = [
            name for name in ("time_ns", "subject", "headers", "data") if getattr(row, name) != getattr(message, name)
        ]
        if names:
            self.findings.add(row.seq, Check.DIFFERS, f"{', '.join(names)} differ")
        else:
            self.equal += 1

    def missing_in_stream(self, seq: int) -> None:
        """Note a row without a message: archived, if it lies in what was trimmed from the stream's beginning."""
        if seq <= self._trimmed:
            self.archived += 1
            return
        self.findings.add(seq, Check.MISSING_IN_STREAM, "the stream has no such message")

    def stream_ends_early(self, stream_last: int) -> None:
        self.findings.add(
            self._last, Check.MISSING_IN_STREAM, f"the stream ends at {stream_last}, the ledger at {self._last}"
        )

    def missing_in_ledger(self, seq: int) -> None:
        """Note a message without a row: the ledger is only behind, if it lies after its last row."""
        if seq > self._last:
            self.behind += 1
        else:
            self.findings.add(seq, Check.MISSING_IN_LEDGER, "the ledger has no such row")

    def anchor(self, message: Stored) -> None:
        """Compare an anchor of the stream with the ledger's chain; other messages are ignored."""
        if topic_of_subject(message.subject) != _ANCHOR:
            return
        recorded = decode(message)
        if not isinstance(recorded, Recorded) or not isinstance(recorded.message.event, LedgerAnchored):
            return
        anchor = recorded.message.event
        if self._losses.invalidates(anchor.through_seq, message.seq):
            return
        self.anchors += 1
        if anchor.through_seq > self._last:
            self.findings.add(
                message.seq, Check.TAIL_CUT, f"it vouches for row {anchor.through_seq}; the file ends at {self._last}"
            )
        elif self._reader.hash_at(anchor.through_seq) != bytes.fromhex(anchor.head):
            self.findings.add(message.seq, Check.ANCHOR, f"row {anchor.through_seq} does not have the hash it noted")
