"""Gives a ledger file to read from: the named file, or one unpacked from the named bundle."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from events.bundles import is_bundle, unpack
from events.bundles.archive import SUFFIX
from events.errors import LedgerDamaged, Misconfigured
from events.ledger.checking.setting_aside import is_no_ledger


@contextmanager
def ledger_file(path: Path) -> Iterator[Path]:
    """Give a ledger file: ``path`` itself, or, if that is a bundle, one unpacked for the duration of the block.

    Raises:
        Misconfigured: the file is something else.
        LedgerDamaged, Misconfigured, Unavailable: the bundle is not sound, or cannot be unpacked.
    """
    if path.suffix == SUFFIX and not path.exists():
        raise Misconfigured(f"{path}: there is no such bundle; `neuraxis log export --format bundle` writes one")
    if not is_bundle(path):
        if path.suffix == SUFFIX and path.is_file():
            raise LedgerDamaged(f"{path} is no bundle, or damaged: take another copy, or export it anew")
        if is_no_ledger(path):
            raise Misconfigured(
                f"{path} is neither a ledger nor a bundle: name the ledger.db of a data folder, or a copy of one"
            )
        yield path
        return
    with TemporaryDirectory(prefix="neuraxis-") as folder, ThreadPoolExecutor(1) as thread:
        unpacked = Path(folder) / "ledger.db"
        # In a thread of its own: callers may be within an event loop, and writing a ledger needs one.
        thread.submit(lambda: asyncio.run(unpack(path, unpacked))).result()
        yield unpacked
