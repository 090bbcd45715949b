"""Rebuilding a ledger's read models."""

from pathlib import Path

from events.errors import Misconfigured
from events.ledger.read_models import rebuild_within
from events.ledger.schema import AT_REST, attach_archives, connect_for_writing, read_meta
from events.ledger.sqlite_errors import translated_errors


def rebuild(path: Path) -> None:
    """Drop a ledger's read models and fold them again from its events, in one transaction.

    Readers see the old ones until it is done; a live projector waits.

    Raises:
        Misconfigured, LedgerDamaged, Unavailable: see ``events.ledger.sqlite_errors``; the file is unchanged.
    """
    if not path.is_file():
        raise Misconfigured(f"{path}: no ledger is here")
    connection = connect_for_writing(path)
    try:
        with translated_errors(path, "rebuild the read models"):
            attach_archives(connection, path, read_meta(connection, path))
            connection.execute("BEGIN IMMEDIATE")
            rebuild_within(connection)
            # Everything in the write-ahead log was read. A live writer records AT_WORK again with its next batch.
            connection.execute("UPDATE meta SET value = ? WHERE key = 'state'", (AT_REST,))
            connection.execute("COMMIT")
    finally:
        connection.close()
