"""The ledger's projector: writes the whole log into one SQLite file, and notes the file's head in the log.

It decides nothing: it follows every event of the stream (``log.>``), stores each as it is, readable or not, and emits
``ledger.anchored`` alone. So it is no actor with a fold, and has no ``ACTOR``. Its source is the design's ledger: the
file is described in ``events.ledger``.
"""

from actors.ledger.projector import LedgerProjector, Progress
from actors.ledger.settings import LedgerSettings

PROJECTOR = LedgerProjector
"""The projector of the package, for whoever runs the set."""

__all__ = ["PROJECTOR", "LedgerProjector", "LedgerSettings", "Progress"]
