"""The table of subjects: what each means, which owner alone may publish it, and where it is stored."""

import msgspec

from schemas.actor import Scope
from schemas.catalogue import CATALOGUE
from schemas.entry import Entry, Severity
from schemas.subjects import topic_filter


class SubjectRow(msgspec.Struct, frozen=True):
    """A subject of the catalogue, flat.

    ``subject`` is the public one, ``stored`` the filter over the log's partitions. No message leads to a
    ``spontaneous`` event: its owner's shell appends it.
    """

    subject: str
    stored: str
    owner: str
    scope: Scope
    version: int
    severity: Severity | None
    spontaneous: bool
    event: str
    meaning: str


def subjects_rows() -> tuple[SubjectRow, ...]:
    """Return a row for every subject of the catalogue, sorted by subject."""
    return tuple(_row(entry) for entry in CATALOGUE.values())


def subjects_table() -> str:
    """Return the rows of the whole catalogue as a Markdown table, ending in a newline."""
    header = ("Subject", "Owner", "Scope", "Version", "Alert", "Meaning")
    lines = [header, ("---",) * len(header), *map(_cells, subjects_rows())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _row(entry: Entry) -> SubjectRow:
    return SubjectRow(
        subject=entry.topic,
        stored=topic_filter(entry.topic),
        owner=entry.owner,
        scope=entry.scope,
        version=entry.version,
        severity=entry.severity,
        spontaneous=entry.spontaneous,
        event=entry.event.__name__,
        meaning=entry.meaning,
    )


def _cells(row: SubjectRow) -> tuple[str, ...]:
    severity = row.severity.value if row.severity else ""
    return (f"`{row.subject}`", row.owner, row.scope.value, str(row.version), severity, row.meaning.replace("|", "\\|"))
