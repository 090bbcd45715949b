"""The ledger's projector: writes the whole log into one SQLite file, and anchors the file's head in the log.

It decides nothing. It follows every event of the stream (``log.>``), stores each as it is, readable or not, and emits
only events of its own: an anchor (``ledger.anchored``) holds the last hash of the file's hash chain, and a loss
(``ledger.loss_recorded``) is what the log lacks. So it is not an actor with a fold, and has no ``ACTOR``.
``events.ledger`` describes the file.
"""

from actors.ledger.projector import LedgerProjector, Progress
from actors.ledger.settings import LedgerSettings

PROJECTOR = LedgerProjector
"""What a worker runs as the package's projector."""

__all__ = ["PROJECTOR", "LedgerProjector", "LedgerSettings", "Progress"]
