"""The ledger file's tables, and opening it for writing and for reading."""

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from events.errors import LedgerDamaged, Misconfigured, Unavailable
from events.files.locking import lock
from events.files.sqlite_side_files import clear_side_files, write_ahead_log
from events.ledger import read_models
from events.ledger.rows import COLUMNS
from events.ledger.sqlite_errors import RECOVERY, translated_errors
from events.loggers import get_logger
from schemas.identity import content_hash
from schemas.intake.error_messages import error_line
from schemas.subjects import Partitions, former_text, is_repartitioned, read_former

FORMAT = 1
"""Version of the tables and of the hashed record. Files of another version are refused."""

APPLICATION_ID = 0x4E584C47
"""SQLite's application id of a ledger: the letters NXLG."""

BUSY_TIMEOUT_MS = 5_000
"""Milliseconds that a connection waits for another one's lock on the file."""

PAGE_SIZE = 16384
"""Bytes of a page. Rows have about 1 KB: of pages of 4 KB, a third would stay empty, since no further row fits."""

PRAGMAS = ("PRAGMA synchronous = FULL", "PRAGMA cache_size = -16000", "PRAGMA temp_store = MEMORY")
"""Settings of a writing connection: durable at every commit, a cache (16 MB) that holds a batch's pages, and no file in
the machine's temporary folder. SQLite would keep the journal of each statement there, and a full one would stop the
writer."""

AT_WORK: Literal["at work"] = "at work"
"""The state while a writer has the file open: the last rows may be only in the write-ahead log beside it."""

AT_REST: Literal["at rest"] = "at rest"
"""The state after the writer has closed the file: the file alone is complete."""

LEDGER_TOPICS = "topic >= 'forged_id.ledger.' AND topic < 'forged_id.ledger/'"
"""SQL condition for the ledger's own events: anchors (the chain's head, recorded in the log), losses and resources.

It must be written as in their index, or SQLite does not use the index.
"""

# There is no index over ids: they are random, so it would cost as much as everything else (measured: half the write
# rate). Exchange ids grow with time, so their index is written at its end. The last index holds only the
# ledger's own events.
EVENT_TABLES = (
    """
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        topic TEXT NOT NULL,
        subject TEXT NOT NULL,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        exchange TEXT NOT NULL,
        cause_seq INTEGER NOT NULL,
        version INTEGER,
        time INTEGER NOT NULL,
        headers TEXT NOT NULL,
        data BLOB NOT NULL,
        hash BLOB NOT NULL
    )
    """,
    "CREATE INDEX events_exchange ON events (exchange) WHERE exchange <> ''",
    f"CREATE INDEX events_ledger ON events (topic) WHERE {LEDGER_TOPICS}",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
)
"""The statements that create a ledger's own tables and indexes, or those of an archive, which has no read models."""

_logger = get_logger("neuraxis.ledger")
EVENT_COLUMNS = ", ".join(COLUMNS)
"""The columns of ``events``, in SQL."""

ARCHIVE_OF = "archive_of"
"""Key in the meta table of an archive: the name of its ledger."""

MOST_ARCHIVES = 8
"""Archives that a ledger may have: SQLite attaches ten files at most."""


class ArchiveFile(msgspec.Struct, frozen=True):
    """What a ledger notes of an archive: its file in the same folder, its rows, and the chain's head (hex) after it."""

    name: str
    rows: int
    first_seq: int
    last_seq: int
    head: str


class Meta(msgspec.Struct, frozen=True):
    """A ledger's metadata: format version, the stream that it follows, that stream's partitions, its row count.

    ``models`` is the fingerprint of its read models. ``seal`` is the hash of what never changes (:func:`seal_of`); it
    is empty in a file that was last written before seals were introduced. ``former`` are the partition counts that the
    stream had before it was repartitioned (``schemas.subjects.former_text``). ``state`` is :data:`AT_WORK` or
    :data:`AT_REST`; these are words, so that one flipped bit cannot turn one into the other. ``archives`` is a JSON
    list of :class:`ArchiveFile`, which hold the oldest rows; empty: there are none. ``rows`` counts theirs, too.
    """

    format: int
    stream: str
    agents: int
    sessions: int
    rows: int
    models: str
    seal: str = ""
    former: str = ""
    state: Literal["at work", "at rest"] = AT_REST
    archives: str = ""

    @property
    def partitions(self) -> Partitions:
        """The stream's partition counts."""
        return Partitions(self.agents, self.sessions, read_former(self.former))


def insert_rows_of(connection: sqlite3.Connection, archive: Path) -> None:
    """Insert the rows of an archive into the events of another file, whose transaction must not have begun."""
    connection.execute("ATTACH ? AS archive", (str(archive),))
    connection.execute(f"INSERT INTO main.events SELECT {EVENT_COLUMNS} FROM archive.events ORDER BY seq")
    connection.execute("DETACH archive")


def seal_of(meta: Meta) -> str:
    """Return the hash (64 hex digits) of a ledger's format, stream and partitions, which the chain does not cover."""
    former = [meta.former] if meta.former else []
    return content_hash([meta.format, meta.stream, meta.agents, meta.sessions, *former])


def _check_application(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise LedgerDamaged(f"{path}: is not a ledger, or its first page is damaged; {RECOVERY}")


def read_meta(connection: sqlite3.Connection, path: Path) -> Meta:
    """Read the meta table; raises LedgerDamaged when the file is no ledger, Misconfigured on another format."""
    with translated_errors(path, "read the ledger"):
        _check_application(connection, path)
        pairs = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    if ARCHIVE_OF in pairs:
        raise Misconfigured(
            f"{path} is an archive of {pairs[ARCHIVE_OF]}: name that ledger, which reads the archives beside it"
        )
    if pairs.get("format") != FORMAT:
        raise Misconfigured(
            f"{path}: has ledger format {pairs.get('format')!r}; this release knows {FORMAT}: use the one that wrote it"
        )
    try:
        meta = msgspec.convert(pairs, Meta)
        if fault := meta.partitions.fault:
            raise msgspec.ValidationError(fault)
        return meta
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise LedgerDamaged(
            f"{path}: the meta table is not what was written: {error_line(Meta, str(error))}; {RECOVERY}"
        ) from error


def lacks_wal(meta: Meta, path: Path) -> bool:
    """Whether this is a copy of a ledger in use, without its write-ahead log: it ends at the last checkpoint.

    It is also true for a copy that SQLite itself made while a writer had the file open. Such a copy is complete up to
    its last row.
    """
    wal = write_ahead_log(path)
    # A reader creates an empty write-ahead log; a writer writes a frame at once.
    return meta.state == AT_WORK and not (wal.exists() and wal.stat().st_size)


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Open a ledger for reading: one in use, or a copy, in a folder that may be read-only.

    Raises:
        Misconfigured: there is no such file.
        LedgerDamaged, Unavailable: see ``events.ledger.sqlite_errors``.
    """
    if not path.is_file():
        raise Misconfigured(f"{path}: no ledger is here; the ledger projector writes it while the set runs")
    try:
        return _connect(path, "mode=ro")
    except Unavailable:
        # To read a database in WAL mode, SQLite makes a shared-memory file beside it. In a read-only folder it cannot.
        # If there is no write-ahead log, nobody writes, and the file can be read as it is (immutable).
        wal = write_ahead_log(path)
        if wal.exists() and wal.stat().st_size:
            raise
        return _connect(path, "immutable=1")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    with translated_errors(path, "open the ledger"):
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?{mode}", uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000
        )
    try:
        attach_archives(connection, path, read_meta(connection, path))
    except BaseException:
        connection.close()
        raise
    return connection


def archives_in(meta: Meta, path: Path) -> tuple[ArchiveFile, ...]:
    """Return the archives of a ledger, the oldest first; raises LedgerDamaged if its note of them is damaged."""
    try:
        return msgspec.json.decode(meta.archives or "[]", type=tuple[ArchiveFile, ...])
    except msgspec.DecodeError as wrong:
        raise LedgerDamaged(f"{path}: its note of its archives is damaged: {wrong}; {RECOVERY}") from wrong


def attach_archives(connection: sqlite3.Connection, path: Path, meta: Meta) -> None:
    """Have ``events`` stand for the rows of a ledger's archives and its own, in this connection.

    Raises:
        Misconfigured: an archive is not beside the ledger.
        LedgerDamaged: it is another file, or damaged.
    """
    archives = archives_in(meta, path)
    for number, archive in enumerate(archives):
        file = path.with_name(archive.name)
        what = f"{file}, the archive of {path.name} for sequence {archive.first_seq} to {archive.last_seq},"
        if not file.is_file():
            raise Misconfigured(f"{what} is not there: put it back beside the ledger, or a link to where it is")
        with translated_errors(file, "open the archive"):
            connection.execute("ATTACH ? AS ?", (f"{file.resolve().as_uri()}?mode=ro", f"archive_{number}"))
            ends = connection.execute(
                f"SELECT (SELECT min(seq) FROM archive_{number}.events), seq, hash FROM archive_{number}.events "
                "ORDER BY seq DESC LIMIT 1"
            ).fetchone()
        if ends != (archive.first_seq, archive.last_seq, bytes.fromhex(archive.head)):
            raise LedgerDamaged(f"{what} is not the file that was written: {RECOVERY}")
    if archives:
        schemas = (*(f"archive_{number}" for number in range(len(archives))), "main")
        union = " UNION ALL ".join(f"SELECT {EVENT_COLUMNS} FROM {schema}.events" for schema in schemas)
        connection.execute(f"CREATE TEMP VIEW events AS {union}")


def connect_for_writing(path: Path) -> sqlite3.Connection:
    """Open an existing ledger file for writing, durable at every commit.

    Raises:
        LedgerDamaged, Misconfigured, Unavailable: see ``events.ledger.sqlite_errors``.
    """
    with translated_errors(path, "open the ledger"):
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000
        )
        try:
            _check_application(connection, path)
            # Another program may have changed the journal mode. To change it back, nobody else may use the file.
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode = WAL")
            for pragma in PRAGMAS:
                connection.execute(pragma)
        except BaseException:
            connection.close()
            raise
    return connection


def prepare(path: Path, stream: str, partitions: Partitions) -> None:
    """Make a ledger file, or check that the one there is of this release and of this stream.

    Read models that another release wrote are rebuilt.

    Raises:
        Misconfigured: the file follows another stream, other partitions, or has another format.
        LedgerDamaged, Unavailable: see ``events.ledger.sqlite_errors``.
    """
    if not path.exists():
        _make(path, stream, partitions)
    connection = connect_for_writing(path)
    try:
        meta = read_meta(connection, path)
        if meta.stream == stream and is_repartitioned(meta.partitions, partitions):
            meta = _note_repartitioning(connection, path, meta, partitions)
        if (meta.stream, meta.partitions) != (stream, partitions):
            raise Misconfigured(
                f"{path}: follows stream {meta.stream} with {meta.agents} agent and {meta.sessions} session "
                f"partitions, not {stream} with {partitions.agents} and {partitions.sessions}; "
                "give each stream a ledger of its own"
            )
        if not meta.seal:
            with translated_errors(path, "seal the ledger's description"):
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('seal', ?)", (seal_of(meta),))
        if meta.state != AT_WORK:
            with translated_errors(path, "note that it is written to"):
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('state', ?)", (AT_WORK,))
                # Checkpoint the state into the file itself, before this writer's first row. So a copy of the file
                # without its write-ahead log shows that it is one.
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        if meta.models != read_models.fingerprint():
            with translated_errors(path, "rebuild the read models"):
                attach_archives(connection, path, meta)
                connection.execute("BEGIN IMMEDIATE")
                read_models.rebuild_within(connection)
                connection.execute("COMMIT")
    finally:
        connection.close()


def _note_repartitioning(connection: sqlite3.Connection, path: Path, meta: Meta, partitions: Partitions) -> Meta:
    """Note that the stream was repartitioned: the rows up to then stay as they are."""
    agents, sessions, former = partitions.agents, partitions.sessions, former_text(partitions.former)
    meta = msgspec.structs.replace(meta, agents=agents, sessions=sessions, former=former)
    noted = {"agents": agents, "sessions": sessions, "former": former, "seal": seal_of(meta)}
    with translated_errors(path, "note the stream's partitions"):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", noted.items())
        connection.execute("COMMIT")
    return msgspec.structs.replace(meta, seal=noted["seal"])


def _make(path: Path, stream: str, partitions: Partitions) -> None:
    """Make an empty ledger under another name and rename it when it is complete, unless another process was first."""
    path, is_link = Path(os.path.realpath(path)), path.is_symlink()  # a link may lead to where no ledger is yet
    if is_link and not path.parent.is_dir():  # it may be that of a disk that is not mounted
        raise Unavailable(f"{path}: the folder that the ledger's link leads to is gone: mount its disk, or make it")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
            draft = Path(folder) / path.name
            with translated_errors(path, "make the ledger"):
                former = former_text(partitions.former)
                meta = Meta(FORMAT, stream, partitions.agents, partitions.sessions, 0, "", former=former, state=AT_WORK)
                _create(draft, msgspec.structs.replace(meta, seal=seal_of(meta)))
            with _locked(path.parent):
                if not path.exists():
                    # SQLite would apply the side files of a ledger that was moved or deleted alone to the new one.
                    if (kept := clear_side_files(path)) is not None:
                        _logger.warning("ledger_log_left_behind", path=str(path), kept=str(kept))
                    with contextlib.suppress(FileExistsError):
                        os.link(draft, path)
    except OSError as error:
        raise Unavailable(
            f"{path}: cannot make the ledger: {error}; free space, or grant the right to write"
        ) from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder against others that make a ledger there, for the length of the block."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            lock(descriptor)
        except TimeoutError:
            raise
        except OSError:
            pass  # some file systems have no such locks
        yield
    finally:
        os.close(descriptor)


def _create(path: Path, meta: Meta) -> None:
    path.touch(mode=0o600)  # SQLite gives the files beside it the same mode
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        for statement in EVENT_TABLES:
            connection.execute(statement)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", msgspec.structs.asdict(meta).items())
        read_models.rebuild_within(connection)
        connection.execute("COMMIT")
