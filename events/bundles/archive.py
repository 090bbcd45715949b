"""The bundle's zip archive: writing one in one pass, and reading one that may come from anywhere.

Equal events give equal bytes (with the same build of zlib): an archive holds no times and no names of users or
machines. A reader trusts nothing that it has not checked against a limit or a hash, and otherwise says what is wrong.
"""

import struct
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from events.bundles.cloudevents import BadLine, from_line, to_line
from events.bundles.partition_check import PartitionCheck
from events.errors import LedgerDamaged, Misconfigured
from events.files.private_files import open_private
from events.ledger.checking.chain import GENESIS
from events.ledger.rows import link_row, to_row
from events.log import MAX_RECORD_BYTES, Stored
from schemas.intake.strict import BadInput, quoted_name, read
from schemas.intake.whole_numbers import read_whole_number
from schemas.subjects import FormerCounts, Partitions

FORMAT = 1
"""Version of the bundle's format; a reader refuses any other."""

SUFFIX = ".nxb"
"""End of a bundle's file name."""

MAX_EVENTS_BYTES = 16 * 1024**3
"""Largest ``events.jsonl`` that is read: an archive of a few megabytes can claim any size."""

MAX_LINE_BYTES = 4 * MAX_RECORD_BYTES
"""Longest line: a record in base64, and its headers escaped."""

_EVENTS, _MANIFEST = "events.jsonl", "manifest.json"
_MAX_MANIFEST_BYTES = 1024 * 1024
_ALLOWED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # forms of compression
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive can give a member
_BATCH = 1024  # events that are yielded at once

# What zipfile raises for damaged archives; RuntimeError for features that it does not support.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, struct.error)


Count = Annotated[int, msgspec.Meta(ge=0)]
PartitionCount = Annotated[int, msgspec.Meta(ge=1, le=99)]
"""A partition's name has two digits."""

Head = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""The head of a hash chain: the hash after its last event, 64 hex digits."""

StreamName = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,255}$")]


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The description of a bundle. ``head`` (64 hex digits) is the head of the hash chain over all its events.

    ``project`` is the version that wrote it, ``versions`` the data version of each subject in it. ``original_head`` is
    the head of the chain that a redacted bundle was made from; in one that is not redacted, the same as ``head``.
    ``chosen`` names the exchanges whose events it was made for; none: all of them. ``missing`` are ranges (first and
    last sequence) that the log had recorded as lost. ``former_partitions`` are the counts from before the log was
    repartitioned.
    """

    format: int
    project: str
    stream: StreamName
    agent_partitions: PartitionCount
    session_partitions: PartitionCount
    events: Count
    last_seq: Count
    head: Head
    redacted: bool
    original_head: Head
    versions: dict[str, int]
    chosen: tuple[str, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()
    former_partitions: tuple[FormerCounts, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def partitions(self) -> Partitions:
        """The partition counts of the log it was taken from."""
        former = () if isinstance(self.former_partitions, msgspec.UnsetType) else self.former_partitions
        return Partitions(self.agent_partitions, self.session_partitions, former)


def is_bundle(path: Path) -> bool:
    """Whether a file begins like a zip archive, which no ledger does. Reading it shows whether it is undamaged."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


async def write_bundle(path: Path, batches: AsyncIterator[Sequence[Stored]], origin: Manifest) -> Manifest:
    """Write events, from sequence 1 on, as a bundle; return its manifest.

    ``origin`` is the manifest without what is counted and hashed here: ``events``, ``last_seq``, ``head``,
    ``versions``, and, unless ``redacted``, ``original_head``. Its ``missing`` are the gaps that are allowed; the
    returned manifest has those that were found. A file of that name is replaced when all is written.

    Raises:
        Misconfigured: any other event is missing, or the file cannot be written.
    """
    part = path.with_name(path.name + ".part")
    last, events, head = 0, 0, GENESIS
    missing: list[tuple[int, int]] = []
    versions: dict[str, int] = {}
    try:
        with open_private(part) as file, zipfile.ZipFile(file, "w") as archive:
            with archive.open(_member(_EVENTS), "w", force_zip64=True) as lines:
                async for batch in batches:
                    for stored in batch:
                        if stored.seq != last + 1:
                            missing.append(_known_missing(origin, last + 1, stored.seq - 1))
                        events, last, head = events + 1, stored.seq, link_row(head, to_row(stored))
                        _note_version(versions, stored)
                        lines.write(to_line(stored) + b"\n")
            manifest = msgspec.structs.replace(
                origin,
                events=events,
                last_seq=last,
                head=head.hex(),
                missing=tuple(missing),
                original_head=origin.original_head if origin.redacted else head.hex(),
                versions=versions,
            )
            archive.writestr(_member(_MANIFEST), msgspec.json.encode(manifest, order="deterministic"))
        part.replace(path)
    except OSError as wrong:
        raise Misconfigured(f"{path} cannot be written: {wrong.strerror or wrong}") from wrong
    finally:
        with suppress(OSError):  # the file does not exist, or cannot be removed
            part.unlink()
    return manifest


def _known_missing(origin: Manifest, first: int, last: int) -> tuple[int, int]:
    """Return a gap that the log has recorded as lost; raises Misconfigured for another."""
    if any(begin <= first and last <= end for begin, end in origin.missing):
        return first, last
    raise Misconfigured(
        f"a bundle holds every event that the log did not record as lost: {first} is missing before {last + 1}; a set "
        "that is started on that log records it, or name another copy"
    )


def read_manifest(path: Path) -> Manifest:
    """Return a bundle's manifest; raises LedgerDamaged or Misconfigured as :func:`read_events` does."""
    with _opened(path) as archive:
        return _manifest(archive, path)


def read_events(path: Path) -> Iterator[Sequence[Stored]]:
    """Read a bundle's events in batches. The chain, and whether the events lie in the partitions that the manifest
    claims, are checked at its end: only a bundle that was read to its end is proved complete.

    Raises:
        Misconfigured: there is no such file, or it has a format or a manifest that this release does not know.
        LedgerDamaged: it is no bundle, cut, altered, or beyond a limit; the message says where.
    """
    with _opened(path) as archive:
        manifest = _manifest(archive, path)
        partition_check = PartitionCheck(manifest.partitions)
        last, events, head = 0, 0, GENESIS
        batch: list[Stored] = []
        try:
            with archive.open(_EVENTS) as lines:
                while line := lines.readline(MAX_LINE_BYTES + 1):
                    if not line.endswith(b"\n"):
                        raise LedgerDamaged(
                            f"{path}: line {events + 1} has no end, or more than {MAX_LINE_BYTES} bytes"
                        )
                    stored = from_line(line[:-1])
                    if stored.seq != last + 1 and (last + 1, stored.seq - 1) not in manifest.missing:
                        raise LedgerDamaged(f"{path}: event {last + 1} is missing before {stored.seq}")
                    events, last, head = events + 1, stored.seq, link_row(head, to_row(stored))
                    partition_check.take(stored)
                    batch.append(stored)
                    if len(batch) == _BATCH:
                        yield batch
                        batch = []
        except BadLine as wrong:
            raise LedgerDamaged(f"{path}: line {events + 1} is no event: {wrong}") from wrong
        except _UNREADABLE as wrong:
            raise LedgerDamaged(f"{path}: its events cannot be read behind {last}: {wrong}") from wrong
        if (manifest.events, manifest.last_seq, manifest.head) != (events, last, head.hex()):
            raise LedgerDamaged(
                f"{path}: the chain over its {events} events ends in {head.hex()[:12]}, the manifest says "
                f"{manifest.head[:12]} after {manifest.events}; get a sound copy"
            )
        if complaint := partition_check.complaint:
            raise LedgerDamaged(f"{path}: {complaint}; get a sound copy")
        if batch:
            yield batch


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError as missing:
        raise Misconfigured(f"{path}: there is no such file") from missing
    except _UNREADABLE as wrong:
        if isinstance(wrong, OSError) and wrong.filename is not None:  # it could not be opened
            raise Misconfigured(f"{path} cannot be read: {wrong.strerror}") from wrong
        raise LedgerDamaged(f"{path} is no bundle, or cut: {wrong}") from wrong
    # No file is unpacked under a name from the archive. Other members mean that it is another kind of file.
    members = archive.infolist()
    sound = (
        [member.filename for member in members] == [_EVENTS, _MANIFEST]
        and all(member.compress_type in _ALLOWED and not member.flag_bits & 1 for member in members)
        and members[0].file_size <= MAX_EVENTS_BYTES
        and members[1].file_size <= _MAX_MANIFEST_BYTES
    )
    if not sound:
        archive.close()
        raise LedgerDamaged(
            f"{path} is no bundle: it does not hold just {_EVENTS} and {_MANIFEST}, within their limits"
        )
    return archive


def _manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    try:
        raw = archive.read(_MANIFEST)
        found = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        format = msgspec.json.decode(found.get("format", b"0"), type=int)
        if format != FORMAT:
            raise Misconfigured(
                f"{path} has bundle format {format}, this release reads {FORMAT}: {_writer(found)}; use that one"
            )
        try:
            manifest = read(raw, Manifest, "the manifest")
        except BadInput as wrong:
            if wrong.code != "unknown_field":
                raise
            # A field that this release does not know may say how to read the events.
            raise Misconfigured(
                f"{path}: its manifest has a field {quoted_name(wrong.field)}, which this release does not know: "
                f"{_writer(found)}; use that one or a later one"
            ) from wrong
        if fault := manifest.partitions.fault:
            raise ValueError(fault)
        return manifest
    except (*_UNREADABLE, msgspec.MsgspecError) as wrong:
        raise LedgerDamaged(f"{path}: its manifest cannot be read: {wrong}") from wrong


def _writer(manifest: Mapping[str, msgspec.Raw]) -> str:
    """Return who wrote a manifest, as a part of a message; it may claim anything."""
    try:
        return f"neuraxis {quoted_name(msgspec.json.decode(manifest['project'], type=str))} wrote it"
    except (KeyError, msgspec.MsgspecError):
        return "it does not say which release wrote it"


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.create_system = 3
    member.external_attr = 0o644 << 16
    return member


def _note_version(versions: dict[str, int], stored: Stored) -> None:
    topic, version = stored.headers.get("ce-type", ""), read_whole_number(stored.headers.get("ce-dataversion", "1"))
    if topic and version is not None:
        versions[topic] = max(versions.get(topic, 0), version)
