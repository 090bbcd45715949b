"""Verifying a ledger file by itself: its chain, its columns, its read models, and the anchors recorded in it.

The chain has no key: this finds accidents and bit rot, not a clever forger. If a tail was cut off cleanly, only the
recorded row count shows it. ``events.ledger.checking.compare`` compares the file with its stream.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from events.decoding import Recorded, decode
from events.files.sqlite_side_files import write_ahead_log
from events.ledger.checking.chain import GENESIS
from events.ledger.checking.read_model_check import ReadModelCheck
from events.ledger.checking.recorded_losses import losses_in
from events.ledger.checking.report import Check, Findings, Verification
from events.ledger.checking.wal_damage import wal_damage
from events.ledger.read_models import fingerprint
from events.ledger.rows import (
    COLUMNS,
    DATA,
    HASH,
    HEADERS,
    SEQ,
    SUBJECT,
    TIME,
    link_row,
    to_row,
    to_stored,
    topic_of_subject,
)
from events.ledger.schema import EVENT_TABLES, Meta, connect_read_only, read_meta, seal_of
from events.ledger.sqlite_errors import DamagedRow, translated_errors
from events.ledger.tables import make
from events.unroutable import UnroutableEvents
from schemas.event import topic_of
from schemas.vocabulary.ledger import LedgerAnchored

_ANCHOR = topic_of(LedgerAnchored)


def verify(path: Path) -> Verification:
    """Recompute a ledger's chain and report every row that has changed.

    After a bad row the chain continues from the hash recorded there. So one bad row is one finding, and later ones are
    still found.

    Raises:
        LedgerDamaged: the file is no ledger, or SQLite cannot read all of it (cut, overwritten).
        Misconfigured, Unavailable: see ``events.ledger.sqlite_errors``.
    """
    connection = connect_read_only(path)
    connection.text_factory = _text
    try:
        with translated_errors(path, "verify the ledger"):
            # One transaction, which does not see rows (and the row count) that a live writer adds meanwhile.
            connection.execute("BEGIN")
            return _verify(connection, path)
    finally:
        connection.close()


class _InvalidText(bytes):
    """The bytes of a value that the file calls text, and that is not UTF-8. A blob is read as plain ``bytes``."""


def _text(written: bytes) -> str | bytes:
    """Return a text column; its bytes if they are not valid text, so that the damage is reported with its row."""
    try:
        return written.decode()
    except UnicodeDecodeError:
        return _InvalidText(written)


def _verify(connection: sqlite3.Connection, path: Path) -> Verification:
    findings = Findings()
    for (problem,) in connection.execute("PRAGMA integrity_check"):
        if problem != "ok":
            findings.add(0, Check.STRUCTURE, f"{problem}: copy the rows that are sound with `sqlite3 FILE .recover`")
    meta = read_meta(connection, path)
    is_same_schema = meta.models == fingerprint()
    _check_metadata(connection, path, meta, is_same_schema, findings)
    with ReadModelCheck() as read_models:
        verification = _check_rows(connection, path, meta, read_models, findings)
        # If events are damaged, it is unknown what their read models should hold.
        compared = is_same_schema and not findings.count
        if compared:
            read_models.compare(connection, findings)
    return msgspec.structs.replace(
        verification, findings=tuple(findings.listed), finding_count=findings.count, models_compared=compared
    )


def _check_metadata(
    connection: sqlite3.Connection, path: Path, meta: Meta, is_same_schema: bool, findings: Findings
) -> None:
    """Check what the chain does not cover: the write-ahead log, table definitions, the ledger's own metadata."""
    wal = write_ahead_log(path)
    if damage := wal_damage(wal.read_bytes() if wal.exists() else b""):
        findings.add(0, Check.JOURNAL, f"{wal.name}: {damage}; the projector takes it from the stream again")
    defined = {name: " ".join(str(sql).split()) for name, sql in connection.execute(_DEFINITIONS)}
    for name, sql in _definitions(is_same_schema).items():
        if defined.get(name) != sql:
            findings.add(0, Check.SCHEMA, f"{name} is not defined as it was made")
    if connection.execute("PRAGMA user_version").fetchone() != (0,):
        findings.add(0, Check.SCHEMA, "the file's user version is not 0, as it was made")
    noted = {key for (key,) in connection.execute("SELECT key FROM meta")}
    if unknown := sorted(noted.difference(Meta.__struct_fields__), key=str):
        findings.add(0, Check.META, f"the file notes {unknown[0]!r} of itself, as no release up to this one does")
    if meta.seal and meta.seal != seal_of(meta):  # a hash of what never changes
        findings.add(
            0, Check.META, f"stream {meta.stream}, {meta.agents} and {meta.sessions} partitions: one is changed"
        )


_DEFINITIONS = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"


def _definitions(with_models: bool) -> dict[str, str]:
    """Return the definitions of a new ledger, by name, with white space normalised."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in EVENT_TABLES:
            connection.execute(statement)
        if with_models:
            make(connection)
        return {name: " ".join(sql.split()) for name, sql in connection.execute(_DEFINITIONS)}


def _check_rows(
    connection: sqlite3.Connection, path: Path, meta: Meta, read_models: ReadModelCheck, findings: Findings
) -> Verification:
    rows = first = last = anchors = 0
    gaps = False
    digest = GENESIS
    # A gap that the log has recorded as a loss is no finding.
    losses = losses_in(connection)
    unroutable = UnroutableEvents(meta.partitions)
    for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY seq"):
        seq = row[SEQ]
        rows += 1
        if rows == 1:
            first = seq
        elif seq != last + 1:
            gaps = True
            if not losses.has_gap(last + 1, seq - 1):
                findings.add(seq, Check.GAP, f"rows {last + 1} to {seq - 1} are missing")
        if isinstance(row[SUBJECT], str):
            unroutable.take(row[SUBJECT], seq=seq)
        anchor = _check_row(row, digest, read_models, findings)
        if anchor is not None and not losses.invalidates(anchor.through_seq, seq):
            anchors += 1
            _check_anchor(connection, seq, anchor, None if gaps else first, findings)
        last, digest = seq, row[HASH] if isinstance(row[HASH], bytes) else GENESIS
    if meta.rows != rows:
        findings.add(last, Check.META, f"the file notes {meta.rows} rows and holds {rows}")
    return Verification(
        path=str(path),
        rows=rows,
        first_seq=first,
        last_seq=last,
        head=digest.hex(),
        anchors=anchors,
        findings=(),
        finding_count=0,
        losses=tuple(losses.found),
        unroutable=unroutable.listed,
        unroutable_count=unroutable.count,
    )


def _check_row(
    row: tuple[Any, ...], previous: bytes, read_models: ReadModelCheck, findings: Findings
) -> LedgerAnchored | None:
    """Check a row by itself and against the hash before it; return the anchor that it holds, if any."""
    seq = row[SEQ]
    try:
        stored = to_stored(seq, row[TIME], row[SUBJECT], row[HEADERS], row[DATA])
    except DamagedRow as damage:
        findings.add(seq, Check.HASH, str(damage))
        return None
    written = to_row(stored)
    read_models.take(written, stored.headers)
    # Hash the columns as they are in the file, not as derived again from the message.
    recorded = row[:HASH]
    # One flipped bit can turn a blob into text: it has the same bytes, and no SQL tool can read it any more.
    types_hold = type(row[HASH]) is bytes and all(type(row[at]) is type(written[at]) for at in (SUBJECT, HEADERS, DATA))
    if not types_hold or link_row(previous, recorded) != row[HASH]:
        findings.add(seq, Check.HASH, f"hash mismatch: {_short(row[HASH])} is recorded; the row or its place differs")
    elif recorded != written:
        names = [name for name, a, b in zip(COLUMNS, recorded, written, strict=False) if a != b]
        findings.add(seq, Check.COLUMNS, f"{', '.join(names)} do not say what the message says")
    if topic_of_subject(stored.subject) != _ANCHOR:
        return None
    decoded = decode(stored)
    event = decoded.message.event if isinstance(decoded, Recorded) else None
    return event if isinstance(event, LedgerAnchored) else None


def _short(digest: object) -> str:
    return digest.hex()[:12] if isinstance(digest, bytes) else repr(digest)


def _check_anchor(
    connection: sqlite3.Connection, seq: int, anchor: LedgerAnchored, first: int | None, findings: Findings
) -> None:
    """Compare the chain with a recorded head. ``first`` is the first row's sequence; None if rows are missing."""
    found = connection.execute("SELECT hash FROM events WHERE seq = ?", (anchor.through_seq,)).fetchone()
    if found is None:
        findings.add(seq, Check.ANCHOR, f"it vouches for row {anchor.through_seq}, which is missing")
    elif found[0] != bytes.fromhex(anchor.head):
        findings.add(seq, Check.ANCHOR, f"row {anchor.through_seq} has hash {_short(found[0])}, not {anchor.head[:12]}")
    elif first is not None and anchor.rows != (rows := anchor.through_seq - first + 1):
        findings.add(seq, Check.ANCHOR, f"it counts {anchor.rows} rows up to {anchor.through_seq}, not {rows}")
