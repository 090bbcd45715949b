"""Backing up a set: a copy of its ledger at one moment and, if asked for, the same events as a bundle."""

import asyncio
from contextlib import closing
from pathlib import Path

import msgspec

from deploy.copying.export import export_bundle
from events.bundles import read_events
from events.errors import LogError, Misconfigured, Unavailable
from events.files.private_files import make_private_folder, remove_if_empty
from events.ledger import back_up
from events.replay.presence_checks import NothingFound
from events.replay.sources import LedgerSource

LEDGER = "ledger.db"
BUNDLE = "log.nxb"
KEYS = "session-keys.json"
"""Names of the files in a backup's folder."""


class BackupResult(msgspec.Struct, frozen=True, kw_only=True):
    """The copy that was made and checked: its files, and its extent in rows and sequences.

    ``bundle`` is empty if none was asked for; ``head`` is the head of the hash chain.
    """

    ledger: str
    bundle: str
    rows: int
    first_seq: int
    last_seq: int
    head: str


def back_up_set(ledger: Path, to: Path, *, bundle: bool) -> BackupResult:
    """Copy a ledger into a folder, or into a file whose name ends with ``.db``.

    Args:
        ledger: The ledger file; a set may write to it meanwhile.
        to: The folder or file. A folder is made; no existing file is replaced.
        bundle: Write the copy's events as a bundle beside it, too.

    Raises:
        Misconfigured: there is no ledger, or one of the files exists already.
        NothingFound: the ledger holds no rows.
        LedgerDamaged, Unavailable: as for ``events.ledger.back_up``. Where the bundle alone fails, the copy stays.
    """
    if to.exists() and not to.is_dir():
        raise Misconfigured(f"{to} exists: name another file or folder, or delete it")
    is_file = to.suffix == ".db" and not to.is_dir()
    folder, copy = (to.parent, to) if is_file else (to, to / LEDGER)
    archive = copy.with_suffix(".nxb") if is_file else to / BUNDLE
    for path in (copy, archive):
        check_is_free(path, f"; {_bundle_hint(copy, archive)}" if bundle and not archive.exists() else "")
    try:
        made = make_private_folder(folder)
    except OSError as wrong:
        raise Unavailable(f"{folder} cannot be made: {wrong.strerror or wrong}") from wrong
    try:
        found = back_up(ledger, copy)
    except Exception:
        remove_if_empty(made)
        raise
    if not found.rows:
        copy.unlink()
        remove_if_empty(made)
        raise NothingFound(f"{ledger} holds no rows yet, so that nothing was copied: back up once something was stored")
    if bundle:
        try:
            asyncio.run(_write_bundle(copy, archive))
        except LogError as wrong:
            raise type(wrong)(f"{wrong}; {copy} is copied and sound: {_bundle_hint(copy, archive)}") from wrong
    return BackupResult(
        ledger=str(copy),
        bundle=str(archive) if bundle else "",
        rows=found.rows,
        first_seq=found.first_seq,
        last_seq=found.last_seq,
        head=found.head,
    )


def check_is_free(path: Path, hint: str = "") -> None:
    """Raise Misconfigured if a file of that name exists; ``hint`` ends the message."""
    if path.exists():
        raise Misconfigured(f"{path} exists: name another place, or move it away{hint}")


def _bundle_hint(copy: Path, archive: Path) -> str:
    return f"`neuraxis log export --format bundle --log {copy} -o {archive}` writes its bundle"


async def _write_bundle(copy: Path, archive: Path) -> None:
    with closing(LedgerSource(copy)) as source:
        await export_bundle(source, archive)
    for _ in read_events(archive):  # to its end, where the chain is checked
        pass
