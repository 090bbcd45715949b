"""The losses of the log that a ledger's rows record, found by the index over the ledger's own events."""

import sqlite3

from events.ledger.rows import MESSAGE_COLUMNS, to_stored
from events.ledger.schema import LEDGER_TOPICS
from events.ledger.sqlite_errors import DamagedRow
from events.losses import LOSS_TOPIC, Losses


def losses_in(connection: sqlite3.Connection) -> Losses:
    """Return what the log has recorded as lost; a record that cannot be read is left out."""
    losses = Losses()
    condition = f"topic = '{LOSS_TOPIC}' AND {LEDGER_TOPICS} ORDER BY seq"
    for row in connection.execute(f"SELECT {MESSAGE_COLUMNS} FROM events WHERE {condition}"):
        try:
            losses.note(to_stored(*row))
        except DamagedRow:  # a reader of all rows reports it
            continue
    return losses
