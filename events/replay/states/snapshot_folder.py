"""Snapshots of partitions in a folder beside a ledger file: a state at any point is folded from the nearest one.

A fold of a large ledger saves them. One is used only if it is intact, was made by the same code, and lies on this
file's hash chain. That is so if it names the chain's head at the sequence up to which it was folded. Then it holds what
a fold from the first event would give. Where none can be used, more is folded; that is never an error.

Where the log has not yet shown what a partition decided about the last messages, a fold takes them to have led to
nothing. A snapshot of such a state names the last row of the file, and is used only until the file grows.
"""

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

import schemas
from events.partition_fold import Checkpoint
from events.snapshot import pack, unpack
from schemas.actor import Actor
from schemas.disk_cache import read_checked, write_checked

SUFFIX = "-snapshots"
"""What the folder's name has after the ledger's."""

_COMPRESSION_LEVEL = 1
"""Level of compression: states shrink to a fifth, and a higher one would take longer than folding again."""

_DIGITS = 16
"""Digits of the sequence in a file's name."""

_FOLDING_PACKAGES = ("schemas", "events", "actors")
"""The packages that say how events are folded."""


class FoldStart(msgspec.Struct, frozen=True):
    """Where a fold begins: with a partition's checkpoint, and behind sequence ``after``."""

    checkpoint: Checkpoint
    after: int


class _File(msgspec.Struct, frozen=True):
    """The content of a snapshot's file: a checkpoint (``snapshot``), and what must hold for it to be used.

    ``code`` is the :func:`code_fingerprint` of the code that made it, ``head`` the head of the ledger's chain at the
    sequence ``through``. Unless it is ``settled`` (see :meth:`SnapshotFolder.save`), the ledger must still end there.
    ``after`` is as in :class:`FoldStart`.
    """

    code: bytes
    settled: bool
    through: int
    head: bytes
    after: int
    snapshot: bytes


class SnapshotFolder:
    """The folder of one ledger file.

    Args:
        ledger: The ledger file.
        head_at: Sequence -> the chain's head after that row; None if there is no such row.
        last_seq: The sequence of the file's last row.
    """

    def __init__(self, ledger: Path, head_at: Callable[[int], bytes | None], last_seq: int) -> None:
        self._folder = ledger.with_name(ledger.name + SUFFIX)
        self._head_at = head_at
        self._last_seq = last_seq

    def nearest(self, actor: Actor[Any], partition: str, upto: int) -> FoldStart | None:
        """Return the latest usable snapshot of a partition that holds nothing after sequence ``upto``."""
        for seq, path in self._files(actor.name, partition):
            if seq > upto:
                continue
            if (found := self._read(path, actor, partition)) is not None:
                return found
            with suppress(OSError):  # it will be of no use later either; the fold saves a new one
                path.unlink()
        return None

    def save(self, actor: Actor[Any], partition: str, start: FoldStart, reached: int, *, settled: bool) -> None:
        """Keep a snapshot of a partition that was folded up to ``reached``, a sequence of the file.

        ``settled``: recorded events show what was decided about each of its messages.
        """
        through = reached if settled else self._last_seq
        head = self._head_at(through)
        if head is None:
            return
        content = _File(
            code_fingerprint(), settled, through, head, start.after, pack(actor, partition, start.checkpoint)
        )
        path = self._folder / f"{actor.name}.{partition}.{reached:0{_DIGITS}}"
        if not path.exists():
            write_checked(path, zlib.compress(msgspec.msgpack.encode(content), _COMPRESSION_LEVEL))

    def _files(self, actor: str, partition: str) -> Iterator[tuple[int, Path]]:
        """Yield the sequences and files of a partition's snapshots, the latest first."""
        prefix = f"{actor}.{partition}."
        try:
            names = sorted((name for name in os.listdir(self._folder) if name.startswith(prefix)), reverse=True)
        except OSError:
            return
        for name in names:
            seq = name.removeprefix(prefix)
            if seq.isascii() and seq.isdecimal():
                yield int(seq), self._folder / name

    def _read(self, path: Path, actor: Actor[Any], partition: str) -> FoldStart | None:
        content = read_checked(path)
        try:
            found = content and msgspec.msgpack.decode(zlib.decompress(content), type=_File)
        except (zlib.error, msgspec.DecodeError):
            return None
        if not found or found.code != code_fingerprint() or self._head_at(found.through) != found.head:
            return None
        if not found.settled and found.through != self._last_seq:
            return None
        checkpoint = unpack(actor, partition, found.snapshot)
        return None if checkpoint is None else FoldStart(checkpoint, found.after)


@cache
def code_fingerprint() -> bytes:
    """Return a hash of the names, sizes and times of the files that decide how events are folded.

    Another release, or an edited file, may fold the same events to another state.
    """
    digest = sha256()
    home = Path(next(iter(schemas.__path__))).parent
    for package in _FOLDING_PACKAGES:
        for folder, folders, names in os.walk(home / package):
            folders[:] = sorted(each for each in folders if each != "__pycache__")
            for name in sorted(names):
                status = os.stat(os.path.join(folder, name))
                digest.update(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.digest()
