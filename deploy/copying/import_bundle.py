"""Importing a bundle or a ledger into an empty stream: at a named broker, or in a data folder in which no set runs."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from deploy.config.loading import Config
from deploy.operating.session_keys import NO_KEYS, SessionKeys, restore_keys
from deploy.processes.broker import ADMIN, EmbeddedBroker
from deploy.processes.broker.storage_watch import room_on_disk
from deploy.processes.broker.users import context_file
from deploy.processes.broker_access import BrokerChoice, access_of
from deploy.processes.running_set import DataFolder
from deploy.processes.supervising.supervisor import Supervisor
from events.bundles import is_bundle, unpack
from events.errors import LedgerDamaged, LogError, Misconfigured, Unavailable, UnknownOutcome
from events.jetstream import Access, Connection
from events.jetstream.importing import Recording, append, begin, check, finish, import_progress
from events.ledger import LedgerReader
from events.ledger.checking.verify import verify
from events.replay.gaps import Range, ranges_text
from events.replay.presence_checks import NothingFound
from events.sealing.sealed_texts import SEALED_HEADER
from schemas.subjects import EVERYTHING, Partitions

Progress = Callable[[str, int], None]
"""Called with what is being done (``checking``, ``importing``, ``reading back``) and the sequence reached."""


class ImportResult(msgspec.Struct, frozen=True):
    """The result of an import: how many events, the head of their chain (hex digits), and the counts of partitions.

    ``resumed_after`` is the sequence that an interrupted import went on from. ``sealed``: people's words in it are
    encrypted, with a key for each session. ``keys`` counts the keys that were put back, ``keys_given`` all that came
    with the copy.
    """

    events: int
    head: str
    partitions: Partitions
    resumed_after: int
    sealed: bool
    keys: int = 0
    keys_given: int = 0


async def into_broker(
    access: Access, copy: Path, config: Config, progress: Progress, keys: SessionKeys = NO_KEYS
) -> ImportResult:
    """Import a bundle or a ledger into the stream that the configuration names, at a broker.

    The login must be one that may make streams: the embedded broker's ``admin``, and no other of its users. ``keys``
    are those that sessions' words are encrypted with; a key that the broker already has is left as it is.

    Raises:
        LedgerDamaged, Misconfigured: the copy is not sound, or the stream is not empty.
        LogError: the broker cannot be reached, or refuses.
    """
    async with _opened(copy, progress) as recording:
        return await _import(access, recording, config, progress, keys)


async def into_folder(
    data: DataFolder, copy: Path, config: Config, progress: Progress, keys: SessionKeys = NO_KEYS
) -> ImportResult:
    """Import into the stream of a data folder; the folder's embedded broker is started before and stopped afterwards.

    Raises:
        FolderTaken: a set runs in the folder.
        ProgramFailed: the broker cannot be started.
        LedgerDamaged, LogError: as for :func:`into_broker`.
    """
    async with _opened(copy, progress) as recording, admin_in_folder(data, config, "neuraxis log import") as access:
        return await _import(access, recording, config, progress, keys, data.ledger)


@asynccontextmanager
async def admin_in_folder(data: DataFolder, config: Config, name: str) -> AsyncIterator[Access]:
    """Run the embedded broker of a data folder in which no set runs; give its admin's access, under a client's name.

    Raises:
        FolderTaken: a set runs in the folder.
        ProgramFailed: the broker cannot be started.
        Unavailable, UnknownOutcome: an error of the block, whose message says so if the disk is full.
    """
    os.umask(0o077)  # people's words are in the store
    with data.locked() as lock:
        broker = EmbeddedBroker(data.broker, config.broker, stream=config.log.stream, keep_fds=(lock,))
        async with _running(broker):
            context = BrokerChoice(context=str(context_file(broker.layout.contexts, ADMIN)))
            try:
                yield access_of(context, data, name=name)
            except LogError as wrong:
                # A full disk shows in different errors of the server (an incomplete batch, a file that it cannot write)
                # or in none. A small file may still be written.
                room = room_on_disk(data.path)
                if room.is_enough or isinstance(wrong, (Misconfigured, LedgerDamaged)):
                    raise
                kind = UnknownOutcome if isinstance(wrong, UnknownOutcome) else Unavailable
                raise kind(f"the disk of {data.path} is full, or nearly so ({room}): make room; {wrong}") from wrong


@asynccontextmanager
async def _running(broker: EmbeddedBroker) -> AsyncIterator[None]:
    """Run a broker for the length of the block; raises ProgramFailed if it does not start."""
    stop, ready = asyncio.Event(), asyncio.Event()
    supervising = asyncio.create_task(Supervisor([(broker,)]).run(stop, ready.set), name="broker")
    getting_ready = asyncio.create_task(ready.wait(), name="broker is awaited")
    try:
        await asyncio.wait((supervising, getting_ready), return_when=asyncio.FIRST_COMPLETED)
        if supervising.done():
            await supervising
        yield
    finally:
        getting_ready.cancel()
        stop.set()
        with suppress(Exception):  # an error of the block itself matters more
            await supervising


@asynccontextmanager
async def _opened(copy: Path, progress: Progress) -> AsyncIterator[Recording]:
    """Open a bundle or a ledger as a recording; its chain is verified before any of its events is stored."""
    with TemporaryDirectory(prefix="neuraxis-") as folder:
        ledger = copy
        if is_bundle(copy):
            ledger = Path(folder) / "ledger.db"
            await unpack(copy, ledger, partial(progress, "checking"))  # which proves its chain
        elif not (found := await asyncio.to_thread(verify, ledger)).ok:
            first = found.findings[0]
            raise LedgerDamaged(f"{copy}: not imported: {first.check} at sequence {first.seq}: {first.detail}")
        with LedgerReader(ledger) as reader:
            info = reader.info()
            if not info.rows:
                raise NothingFound(f"{copy} holds no events: nothing was imported; take a copy of a log that has some")
            if info.lacks_wal:
                raise LedgerDamaged(
                    f"{copy} was copied while a set wrote to it, and may lack its last rows: take one that "
                    "`neuraxis backup` made"
                )
            if info.rows != info.last_seq:
                raise Misconfigured(
                    f"{copy} is of a log that lost {ranges_text(_missing(reader, info.last_seq))}: no stream can be "
                    "given its events at their sequences; read it with --log"
                )
            batches = partial(reader.history, [EVERYTHING], 0, info.last_seq)
            yield Recording(
                partitions=info.partitions,
                events=info.rows,
                head=reader.head().hash.hex(),
                sealed=any(SEALED_HEADER in stored.headers for batch in batches() for stored in batch),
                batches=batches,
            )


def _missing(reader: LedgerReader, last_seq: int) -> list[Range]:
    missing, expected = [], 1
    for batch in reader.history([EVERYTHING], 0, last_seq):
        for stored in batch:
            if stored.seq > expected:
                missing.append((expected, stored.seq - 1))
            expected = stored.seq + 1
    return missing


async def _import(
    access: Access,
    recording: Recording,
    config: Config,
    progress: Progress,
    keys: SessionKeys,
    ledger: Path | None = None,
) -> ImportResult:
    stream, replicas = config.log.stream, config.log.replicas
    async with await Connection.open(access) as connection:
        reached = await import_progress(connection, stream, recording)
        if not reached.begun:
            _check_no_other_ledger(ledger)
            await begin(connection, stream, recording, replicas)
        # Before workers can write to the stream: they would make another key for a session that goes on.
        put_back = await restore_keys(connection, stream, keys, replicas) if recording.sealed else 0
        if not reached.whole:
            await append(connection, stream, recording, reached.after, partial(progress, "importing"))
            await finish(connection, stream, recording, partial(progress, "reading back"), replicas)
        else:
            await check(connection, stream, recording, partial(progress, "reading back"))
        return ImportResult(
            recording.events,
            recording.head,
            recording.partitions,
            reached.after,
            recording.sealed,
            put_back,
            len(keys.keys),
        )


def _check_no_other_ledger(ledger: Path | None) -> None:
    if ledger is not None and ledger.exists():
        raise Misconfigured(f"{ledger} is the ledger of another log: move it away, or name another folder with --data")
