"""Ends a query that takes too long: nobody waits for it any more, and others wait behind it."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from events.errors import Unavailable

_STEPS = 10_000
"""Steps of SQLite's virtual machine between two looks at the clock: well below a millisecond."""


@contextmanager
def ended_after(seconds: float, connection: sqlite3.Connection) -> Iterator[None]:
    """End what a connection does within the block after ``seconds``; infinite: never.

    Raises:
        Unavailable: it would have taken longer.
    """
    until = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        raise Unavailable(
            f"this takes more than {seconds:g} s in so long a ledger: ask without conditions, or for what is frequent"
        ) from None
    finally:
        connection.set_progress_handler(None, 0)
