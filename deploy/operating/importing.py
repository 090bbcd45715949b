"""Importing a bundle into an empty stream: at a named broker, or in a data folder in which no set runs."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from deploy.config.loading import Config
from deploy.processes.broker import ADMIN, EmbeddedBroker
from deploy.processes.broker.users import context_file
from deploy.processes.broker_access import BrokerChoice, access_of
from deploy.processes.running_set import DataFolder
from deploy.processes.supervising.supervisor import Supervisor
from events.bundles import Manifest, unpack
from events.errors import Misconfigured
from events.jetstream import Access, Connection
from events.jetstream.importing import Recording, append, begin, check, finish, import_progress
from events.ledger import LedgerReader
from events.replay.gaps import stretches_text
from events.sealing.bodies import HEADER as SEALED
from schemas.subjects import EVERYTHING

Progress = Callable[[str, int], None]
"""Called with what is being done (``checking``, ``importing``, ``reading back``) and the sequence reached."""


class Imported(msgspec.Struct, frozen=True):
    """The result of an import: the bundle's manifest, the sequence it went on from, and whether words are sealed."""

    manifest: Manifest
    after: int
    sealed: bool


class _Unpacked(msgspec.Struct, frozen=True):
    manifest: Manifest
    recording: Recording


async def into_broker(access: Access, bundle: Path, config: Config, progress: Progress) -> Imported:
    """Import into the stream that the configuration names, at a broker.

    The login must be one that may make streams: the embedded broker's ``admin``, and no other of its users.

    Raises:
        LedgerDamaged, Misconfigured: the bundle is not sound, or the stream is not empty.
        LogError: the broker cannot be reached, or refuses.
    """
    async with _unpacked(bundle, progress) as unpacked:
        return await _import(access, unpacked, config, progress)


async def into_folder(data: DataFolder, bundle: Path, config: Config, progress: Progress) -> Imported:
    """Import into the stream of a data folder; the folder's embedded broker is started before and stopped afterwards.

    Raises:
        FolderTaken: a set runs in the folder.
        ProgramFailed: the broker cannot be started.
        LedgerDamaged, LogError: as for :func:`into_broker`.
    """
    async with _unpacked(bundle, progress) as unpacked:
        os.umask(0o077)  # people's words are in the store
        with data.locked() as lock:
            broker = EmbeddedBroker(data.broker, config.broker, stream=config.log.stream, keep_fds=(lock,))
            async with _running(broker):
                context = BrokerChoice(context=str(context_file(broker.layout.contexts, ADMIN)))
                access = access_of(context, data, name="neuraxis log import")
                return await _import(access, unpacked, config, progress, data.ledger)


@asynccontextmanager
async def _running(broker: EmbeddedBroker) -> AsyncIterator[None]:
    """Run a broker for the length of the block; raises ProgramFailed if it does not start."""
    stop, ready = asyncio.Event(), asyncio.Event()
    keeping = asyncio.create_task(Supervisor([(broker,)]).run(stop, ready.set), name="broker")
    getting_ready = asyncio.create_task(ready.wait(), name="broker is awaited")
    try:
        await asyncio.wait((keeping, getting_ready), return_when=asyncio.FIRST_COMPLETED)
        if keeping.done():
            await keeping
        yield
    finally:
        getting_ready.cancel()
        stop.set()
        with suppress(Exception):  # an error of the block itself matters more
            await keeping


@asynccontextmanager
async def _unpacked(bundle: Path, progress: Progress) -> AsyncIterator[_Unpacked]:
    """Unpack a bundle, which proves it sound before anything of it is stored."""
    with TemporaryDirectory(prefix="neuraxis-") as folder:
        ledger = Path(folder) / "ledger.db"
        manifest = await unpack(bundle, ledger, partial(progress, "checking"))
        if manifest.missing:
            raise Misconfigured(
                f"{bundle} is of a log that lost {stretches_text(manifest.missing)}: no stream can be given its events "
                "at their sequences; read it with --log"
            )
        with LedgerReader(ledger) as reader:
            batches = partial(reader.history, [EVERYTHING], 0, manifest.last_seq)
            recording = Recording(
                partitions=manifest.partitions,
                events=manifest.events,
                head=manifest.head,
                sealed=any(SEALED in stored.headers for batch in batches() for stored in batch),
                batches=batches,
            )
            yield _Unpacked(manifest, recording)


async def _import(
    access: Access, unpacked: _Unpacked, config: Config, progress: Progress, ledger: Path | None = None
) -> Imported:
    recording, stream, replicas = unpacked.recording, config.log.stream, config.log.replicas
    connection = await Connection.open(access)
    try:
        standing = await import_progress(connection, stream, recording)
        if not standing.begun:
            _refuse(ledger)
            await begin(connection, stream, recording, replicas)
        if not standing.whole:
            await append(connection, stream, recording, standing.after, partial(progress, "importing"))
            await finish(connection, stream, recording, partial(progress, "reading back"), replicas)
        else:
            await check(connection, stream, recording, partial(progress, "reading back"))
        return Imported(unpacked.manifest, standing.after, recording.sealed)
    finally:
        await connection.close()


def _refuse(ledger: Path | None) -> None:
    if ledger is not None and ledger.exists():
        raise Misconfigured(f"{ledger} is the ledger of another log: move it away, or name another folder with --data")
