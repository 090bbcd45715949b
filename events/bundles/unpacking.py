"""Unpacking a bundle into a ledger file, so that all code that reads ledgers reads bundles too."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from events.bundles.archive import Manifest, read_events, read_manifest
from events.errors import Misconfigured
from events.files.sqlite_side_files import SIDE_FILES, side_file_left
from events.ledger import LedgerWriter


async def unpack(bundle: Path, ledger: Path, progress: Callable[[int], None] = lambda _: None) -> Manifest:
    """Write a bundle's events into a new ledger file, whose chain is the bundle's; return the manifest.

    The ledger appears under its name only when the whole bundle has proved sound. ``progress`` is called with the
    sequence reached.

    Raises:
        Misconfigured: the ledger exists, or its folder does not, or cannot be written; or as ``read_events`` does.
        LedgerDamaged: the bundle is not sound.
        Unavailable: the ledger cannot be written.
    """
    manifest = read_manifest(bundle)
    part = await asyncio.to_thread(_new_part_file, ledger)
    try:
        async with await LedgerWriter.open(part, manifest.stream, manifest.partitions) as writer:
            for batch in read_events(bundle):
                await writer.append(batch)
                progress(batch[-1].seq)
        part.replace(ledger)
    finally:
        _remove(part)
    return manifest


def _new_part_file(ledger: Path) -> Path:
    if ledger.exists():
        raise Misconfigured(f"{ledger} exists: name a new file, or move that one aside")
    if (left := side_file_left(ledger)) is not None:
        raise Misconfigured(f"{left} is of a ledger that was there, and holds rows of it: name a new file, or move it")
    if not ledger.parent.is_dir():
        raise Misconfigured(f"there is no folder {ledger.parent}: make it, or name another file")
    part = ledger.with_name(ledger.name + ".part")
    try:
        _remove(part)
    except OSError as wrong:
        raise Misconfigured(f"{ledger} cannot be written ({wrong.strerror}): name another file") from wrong
    return part


def _remove(part: Path) -> None:
    for suffix in ("", *SIDE_FILES):
        part.with_name(part.name + suffix).unlink(missing_ok=True)
