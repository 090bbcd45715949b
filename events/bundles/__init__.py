"""Bundles: a log, or its beginning, in one file that another machine reads, replays and imports.

A bundle (``*.nxb``) is a zip archive of ``events.jsonl``, one CloudEvent per line in the JSON format, and
``manifest.json``, which holds the head of the hash chain over the events. The chain is the ledger's: sequence, server
time, subject, headers and body of every event are under it.
"""

from events.bundles.archive import Manifest, is_bundle, read_events, read_manifest, write_bundle
from events.bundles.cloudevents import BadLine, from_line, to_line
from events.bundles.redaction import Redaction, redacted
from events.bundles.unpacking import unpack

__all__ = [
    "BadLine", "Manifest", "Redaction", "from_line", "is_bundle", "read_events", "read_manifest", "redacted",
    "to_line", "unpack", "write_bundle",
]  # fmt: skip
