"""The ledger: the log in one SQLite file that people can copy, query with any tool and replay offline.

``events`` holds every message exactly as the stream stored it; each row's hash covers the row and the hash before it.
``exchanges`` and ``routing_decisions`` are read models, which can be rebuilt from ``events`` at any time. The hash
chain has no key: it finds accidents and bit rot, but no clever forger. So the ledger appends the head of its chain to
the stream at intervals (``ledger.anchored``); this exposes a tail that was cut off.
"""

from events.ledger.archiving import Archived, archive
from events.ledger.backup import back_up
from events.ledger.checking.chain import Head
from events.ledger.checking.compare import compare
from events.ledger.checking.report import Check, Comparison, Finding, Verification
from events.ledger.checking.setting_aside import (
    belongs_to_other_program,
    delete_draft,
    path_aside,
    put_aside,
    put_in_place,
)
from events.ledger.checking.verify import verify
from events.ledger.exchange_list import ExchangeFilter, ExchangeRow, Page, list_exchanges
from events.ledger.exchange_result import ExchangeResult, exchange_result
from events.ledger.overview import Overview, PointRequest, overview_at
from events.ledger.reader import Extent, Folded, LedgerInfo, LedgerReader
from events.ledger.rebuild import rebuild
from events.ledger.trimmed_messages import LedgerArchive
from events.ledger.writer import LedgerWriter, Written

__all__ = [
    "Archived", "Check", "Comparison", "ExchangeFilter", "ExchangeResult", "ExchangeRow", "Extent", "Finding",
    "Folded", "Head", "LedgerArchive", "LedgerInfo", "LedgerReader", "LedgerWriter", "Overview",
    "Page", "PointRequest", "Verification", "Written", "archive", "back_up", "belongs_to_other_program", "compare",
    "delete_draft", "exchange_result", "list_exchanges", "overview_at", "path_aside", "put_aside", "put_in_place",
    "rebuild", "verify",
]  # fmt: skip
