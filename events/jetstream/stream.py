"""The stream behind the log: made once, checked at every start."""

from collections.abc import Mapping
from typing import Any

import msgspec

from events.errors import Misconfigured, NoLeader, NotPermitted, Unavailable, UnknownOutcome
from events.jetstream.connection import ApiError, Connection
from events.jetstream.reading.leader import confirmed_end
from schemas.event import ROOT
from schemas.permissions import IMPORT_ROOT
from schemas.subjects import STORED_ROOT, Partitions, former_text, read_former

DEDUPE_WINDOW = 120
"""Seconds in which the stream recognises a repeated message id."""

IMPORTING = "neuraxis.importing"
"""Key in the stream's metadata during an import: the head of the hash chain over the imported events."""

IMPORTED_THROUGH = "neuraxis.imported-through"
"""Key in the metadata after an import: the last imported sequence."""

IMPORTED_HEAD = "neuraxis.imported-head"
"""Key in the metadata after an import: the head of the hash chain over the imported events."""

ARCHIVED = "neuraxis.archived"
"""In the metadata of a stream whose beginning a ledger keeps: the last sequence that ledger and snapshots hold."""

TRIMMING = "neuraxis.trimming"
"""In the metadata while the stream's beginning is being removed."""

FORMER_COUNTS = "neuraxis.former"
"""In the metadata of a stream that was repartitioned: the counts before (``schemas.subjects.former_text``)."""

REPARTITIONING = "neuraxis.repartitioning"
"""In the metadata while the stream is being repartitioned: the counts that it is to have, such as ``8:32``."""

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
"""Header with the sequence that the last message on a subject must have, or the server refuses the record."""

# JetStream error codes.
NOT_FOUND = 10059
JETSTREAM_OFF = (10039, 10076)
WRONG_LAST_SEQUENCE = (10071, 10164)
_NS_PER_S = 1_000_000_000


class StreamFacts(msgspec.Struct, frozen=True):
    """What was fixed when the stream was made: its partitions, and whether people's words in it are sealed (encrypted).

    ``imported_through`` is the last sequence that was imported, 0 in a log that began here; ``trimmed_through`` the
    last that was removed from its beginning, and is in a ledger.
    """

    partitions: Partitions
    sealed: bool
    imported_through: int
    trimmed_through: int = 0


def stream_config(name: str, partitions: Partitions, replicas: int, sealed: bool = False) -> dict[str, Any]:
    """Return the configuration that a log's stream is made with."""
    return {
        "name": name,
        "subjects": [f"{STORED_ROOT}.*.*.>"],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "num_replicas": replicas,
        "duplicate_window": DEDUPE_WINDOW * _NS_PER_S,
        "deny_delete": True,
        "deny_purge": True,
        "allow_direct": True,
        "allow_atomic": True,
        "republish": {"src": f"{STORED_ROOT}.*.*.>", "dest": f"{ROOT}.>"},
        "metadata": counts_metadata(partitions) | {"neuraxis.sealed": "yes" if sealed else "no"},
    }


def counts_metadata(partitions: Partitions) -> dict[str, str]:
    """Return what a stream's metadata says of its partition counts."""
    counts = {"neuraxis.agents": str(partitions.agents), "neuraxis.sessions": str(partitions.sessions)}
    return counts | ({FORMER_COUNTS: former_text(partitions.former)} if partitions.former else {})


def importing_config(name: str, partitions: Partitions, replicas: int, head: str) -> dict[str, Any]:
    """Return the configuration of a log's stream while it accepts an import, and nothing else."""
    config = stream_config(name, partitions, replicas)
    config["metadata"][IMPORTING] = head
    return closed_config(config)


def closed_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a log's configuration in which nobody can append but the login that may import (``IMPORT_ROOT``)."""
    source, wanted = f"{IMPORT_ROOT}.*.*.>", f"{STORED_ROOT}.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}.>"
    kept = {name: value for name, value in config.items() if name != "republish"}
    return kept | {"subjects": [source], "subject_transform": {"src": source, "dest": wanted}}


def opened_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a log that was closed (:func:`closed_config`), open to its owners again."""
    kept = {name: value for name, value in config.items() if name != "subject_transform"}
    ours = stream_config(config["name"], Partitions(), config["num_replicas"])
    return kept | {"subjects": ours["subjects"], "republish": ours["republish"]}


async def find_stream(connection: Connection, name: str) -> dict[str, Any] | None:
    """Return the broker's information of a stream, None if it does not exist; raises LogError."""
    try:
        return await connection.api(f"STREAM.INFO.{name}")
    except ApiError as error:
        if error.number != NOT_FOUND:
            raise
        return None


async def ensure_stream(
    connection: Connection,
    name: str,
    partitions: Partitions | None,
    replicas: int = 1,
    create: bool = True,
    sealed: bool | None = None,
) -> StreamFacts:
    """Make the stream, or check an existing one; return its facts.

    With ``partitions`` and ``sealed`` None, those of an existing stream are accepted; a new one gets the default counts
    and is not sealed. ``create``: make the stream if it does not exist.

    Raises:
        Misconfigured: no JetStream; no stream (with ``create`` off); other partition counts or sealing than wanted; a
            stream that could lose events; an unfinished import; a stream that lost its end, with the last
            repartitioning in it.
    """
    try:
        found = await connection.api(f"STREAM.INFO.{name}")
    except Unavailable as error:
        # A server without JetStream may belong to a cluster that has no leader now: that passes by itself.
        if connection.claims_jetstream or isinstance(error, NoLeader | NotPermitted):
            raise
        raise _without_jetstream(connection) from error
    except ApiError as error:
        if error.number in JETSTREAM_OFF:
            raise _without_jetstream(connection) from error
        if error.number != NOT_FOUND:
            raise
        if not create:
            raise Misconfigured(
                f"the broker holds no stream {name}: start the workers first, or name another"
            ) from error
        made = partitions or Partitions()
        await make_stream(connection, stream_config(name, made, replicas, bool(sealed)))
        found = await connection.api(f"STREAM.INFO.{name}")
    config = found["config"]
    imported_through = _check_import(name, config)
    if wanted := config.get("metadata", {}).get(REPARTITIONING):
        agents, _, sessions = wanted.partition(":")
        raise Misconfigured(
            f"stream {name} is being repartitioned, or was when that was stopped: run `neuraxis log repartition "
            f"--agents {agents} --sessions {sessions}` again, which goes on; or with --cancel, which leaves the stream "
            "as it was"
        )
    if TRIMMING in config.get("metadata", {}):
        raise Misconfigured(
            f"the beginning of stream {name} is being removed, or was when that was stopped: run `neuraxis log trim` "
            "again"
        )
    counts, is_sealed = _check(name, config, partitions), _check_seal(name, config, sealed)
    await _check_end(connection, name, counts, int(found["state"]["last_seq"]))
    return StreamFacts(counts, is_sealed, imported_through, trimmed_through(found))


async def _check_end(connection: Connection, name: str, partitions: Partitions, last_seq: int) -> None:
    """Refuse a stream that ends before it got its present partitions; ``last_seq`` is where it was said to end.

    Up to the sequence at which it got them, the former partitions are read: nobody would fold what is stored in the
    present ones before that.
    """
    through = partitions.former[-1].through if partitions.former else 0
    if last_seq < through and (end := await confirmed_end(connection, name, through)) < through:
        raise Misconfigured(
            f"stream {name} ends at sequence {end:,}, and was repartitioned after sequence {through:,}: it has lost "
            "its end, and what is stored from here on would be passed over; put back a copy of the broker's store, or "
            "restore the log from its ledger (`neuraxis restore`)"
        )


def trimmed_through(found: Mapping[str, Any]) -> int:
    """Return the last sequence that was removed from a stream's beginning and is in a ledger, by the stream's info."""
    archived = str(found["config"].get("metadata", {}).get(ARCHIVED, "0"))
    gone = max(0, int(found["state"]["first_seq"]) - 1)
    return gone if archived.isdecimal() and gone <= int(archived) else 0


async def make_stream(connection: Connection, config: dict[str, Any]) -> None:
    """Make a stream; raises Misconfigured where this login may not, else as ``Connection.api`` does."""
    name = config["name"]
    try:
        await connection.api(f"STREAM.CREATE.{name}", config)
    except (NotPermitted, UnknownOutcome) as unanswered:
        # A server does not answer a request that it denies. Its "permissions violation", if it could not be matched to
        # the request, stands in the text of the timeout's error.
        if isinstance(unanswered, UnknownOutcome) and "ermission" not in str(unanswered):
            raise
        raise Misconfigured(
            f"the broker holds no stream {name}, and this login may not make it: run `neuraxis deploy streams` with "
            "one that may, such as admin"
        ) from unanswered


def _without_jetstream(connection: Connection) -> Misconfigured:
    return Misconfigured(
        f"the broker at {connection.access.servers} has JetStream switched off: start nats-server with "
        "`jetstream { store_dir: ... }` in its configuration"
    )


def _check_import(name: str, config: dict[str, Any]) -> int:
    metadata = config.get("metadata", {})
    if IMPORTING in metadata:
        raise Misconfigured(
            f"stream {name} holds an import that is not whole (head {metadata[IMPORTING][:12]}): run `neuraxis log "
            "import` with the same bundle again, which goes on where it stopped; or start a new stream"
        )
    through = str(metadata.get(IMPORTED_THROUGH, "0"))
    if not through.isdecimal():
        raise Misconfigured(f"stream {name} has {through!r} as {IMPORTED_THROUGH} in its metadata: restore the number")
    return int(through)


def is_sealed(config: Mapping[str, Any]) -> bool:
    """Return whether people's words are sealed in a stream, by its configuration."""
    return bool((config.get("metadata") or {}).get("neuraxis.sealed") == "yes")


def _check_seal(name: str, config: dict[str, Any], wanted: bool | None) -> bool:
    sealed = is_sealed(config)
    if wanted is not None and wanted != sealed:
        raise Misconfigured(
            f"stream {name} was made {'with' if sealed else 'without'} sealing: that is fixed for a stream's life, "
            f"so leave out {'--no-seal' if sealed else '--seal'} (log.sealed), or start a new stream"
        )
    return sealed


async def subject_counts(connection: Connection, stream: str, filter: str = ">") -> dict[str, int]:
    """Return how many messages of a stream each subject has that a filter matches; raises LogError."""
    by_subject: dict[str, int] = {}
    while True:
        # The broker answers in pages; an empty one is the end.
        page = await connection.api(f"STREAM.INFO.{stream}", {"subjects_filter": filter, "offset": len(by_subject)})
        found = page["state"].get("subjects") or {}
        by_subject |= found
        if not found or len(by_subject) >= int(page.get("total", 0)):
            return by_subject


async def consumers_of(connection: Connection, stream: str) -> list[dict[str, Any]]:
    """Return what the broker says of each consumer of a stream; raises LogError."""
    found: list[dict[str, Any]] = []
    offset = 0
    while True:
        # The broker answers in pages, of 256. In a cluster, a page lacks consumers whose servers did not answer.
        page = await connection.api(f"CONSUMER.LIST.{stream}", {"offset": offset})
        found += page.get("consumers") or ()
        step = int(page.get("limit", 0))
        offset += step
        if step <= 0 or offset >= int(page.get("total", 0)):
            return found


def counts_of(name: str, config: dict[str, Any]) -> Partitions:
    """Return the partition counts in a stream's metadata; raises Misconfigured if there are none."""
    metadata = config.get("metadata", {})
    try:
        former = read_former(metadata.get(FORMER_COUNTS, ""))
        counts = Partitions(int(metadata["neuraxis.agents"]), int(metadata["neuraxis.sessions"]), former)
    except (KeyError, ValueError, TypeError) as missing:
        raise Misconfigured(
            f"stream {name} was not made by neuraxis (its metadata has no partition counts): use another stream name"
        ) from missing
    if counts.fault:
        raise Misconfigured(f"the metadata of stream {name} is damaged: {counts.fault}; restore it, or import a copy")
    return counts


def _check(name: str, config: dict[str, Any], partitions: Partitions | None) -> Partitions:
    counts = counts_of(name, config)
    if partitions is not None and (counts.agents, counts.sessions) != (partitions.agents, partitions.sessions):
        raise Misconfigured(
            f"stream {name} has {counts.agents} agent and {counts.sessions} session partitions, but "
            f"{partitions.agents} and {partitions.sessions} are configured: configure those it has, or raise "
            "them with `neuraxis log repartition`, or start a new stream"
        )
    wanted = stream_config(name, counts, 1)
    for field in ("deny_delete", "deny_purge", "allow_atomic", "allow_direct"):
        if not config.get(field):
            raise Misconfigured(f"stream {name} has {field} switched off: events could be lost; restore it")
    for field in ("subjects", "republish", "retention"):
        ours = wanted[field]
        theirs = config.get(field)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            theirs = {key: theirs.get(key) for key in ours}
        if theirs != ours:
            raise Misconfigured(f"stream {name} has {field} {theirs!r} instead of {ours!r}: restore it")
    return counts
