"""Give a log more partitions: each is divided into several, which continue from its state.

Nothing that is stored changes: sequences, subjects, bodies and the chain over them stay as they are. After a sequence
that the stream's metadata names, the log has other counts (``schemas.subjects.Partitions``). A partition is never
joined with another, since the order in which two of them decided cannot be made one order afterwards.

A worker that was paused meanwhile must not append any more when it wakes. So the stream is marked and closed first: no
process starts on it, none begins to lead a partition, and nobody appends. Then the settings of each former partition
are recorded again, which moves its fence: the sequence of its last own event, which every append of a worker has to
name. Then the stream is opened with its new counts. The append of a worker that wakes is refused, for it names the
former fence; so it asks the broker for the stream's counts, and stops. If this is killed at any moment, it can be run
again and will finish; or ``cancel`` opens the stream, which is then as before.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from actors.registry import ACTORS
from actors.runtime.envelopes import to_record
from deploy.config.loading import Config
from deploy.copying.import_bundle import admin_in_folder
from deploy.copying.stopped_log import (
    fold_silent_messages,
    has_pending,
    refuse_members,
    stream_info,
    views_of_partitions,
)
from deploy.copying.written_snapshots import check_archive, close_bucket, open_bucket, write_snapshots
from deploy.processes.running_set import DataFolder
from events.decoding import Recorded, decode
from events.errors import LogError, Misconfigured
from events.jetstream import Access, Connection, JetStreamLog, KeyValueSnapshots
from events.jetstream.importing import EXPECTED_LAST
from events.jetstream.stream import (
    IMPORTED_THROUGH,
    REPARTITIONING,
    closed_config,
    counts_metadata,
    counts_of,
    find_stream,
    opened_config,
    trimmed_through,
)
from events.ledger import LedgerArchive
from events.log import MAX_BATCH, Append
from events.make_decision import Cause, address_events
from events.partition_fold import View
from events.replay.replay import Replay
from events.replay.run_replay import Point, read_into
from events.replay.sources import StreamSource
from events.routes import lineage, partition_names
from events.snapshot import partition_key
from events.state_division import owned_entries
from events.unroutable import why_unroutable
from schemas.actor import Scope
from schemas.envelope import exchange_in
from schemas.event import Configured, topic_of
from schemas.identity import content_hash
from schemas.permissions import IMPORT_ROOT, SNAPSHOTS_BUCKET
from schemas.persistent import state_hash
from schemas.subjects import NO_PARTITION, FormerCounts, Partitions, topic_filter
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

Progress = Callable[[str, int], None]
"""Called with the step that is being done (``folding``, ``checking``) and the sequence reached."""

_SOURCE = "neuraxis://log-repartition"
"""The beginning of ``ce-source`` of the events that are appended here."""

_NO_CHANGES: Mapping[str, str] = MappingProxyType({})
_SCOPED = tuple(actor for actor in ACTORS.values() if actor.scope is not Scope.GLOBAL)
"""The actors with several partitions, by agent or by session; the others have one, which is not divided."""


class Repartitioned(msgspec.Struct, frozen=True):
    """What was done.

    ``before`` and ``after`` are the counts, ``through`` the last sequence under the former ones, and ``states`` the
    number of states that were compared with those they come from.
    """

    stream: str
    before: Partitions
    after: Partitions
    through: int
    states: int


class StatesDiffer(LogError):
    """A new partition would not begin with its part of the former one's state; nothing was changed."""

    code = "states_differ"


@asynccontextmanager
async def within_folder(data: DataFolder, config: Config) -> AsyncIterator[Access]:
    """Run the embedded broker of a data folder in which no set runs, and give its admin's access.

    Raises:
        FolderTaken: a set runs in the folder.
        Misconfigured: the folder holds no log.
        ProgramFailed: the broker cannot be started.
    """
    if not data.broker.exists():
        raise Misconfigured(f"{data.path} holds no log: name the folder of a set with --data, or a broker with --nats")
    async with admin_in_folder(data, config, "neuraxis log") as access:
        yield access


async def repartition(
    access: Access,
    config: Config,
    agents: int | None,
    sessions: int | None,
    progress: Progress,
    ledger: Path | None = None,
) -> Repartitioned:
    """Give the configured stream these counts of partitions; the login must be one that may change streams.

    None keeps the count that it has.

    A stream whose beginning was removed is read from ``ledger``, too, and every new partition gets a snapshot.

    Raises:
        Misconfigured: the counts are no multiples of those there are, a worker runs, there is no such stream, some
            exchange or decision in it is not complete, or the ledger does not hold what was removed.
        LedgerDamaged: the ledger is not sound.
        StatesDiffer: a new partition would not begin with its part of the former one's state; nothing was changed.
        LogError: the broker cannot be reached, or refuses.
    """
    stream = config.log.stream
    async with await Connection.open(access) as connection:
        info = await stream_info(connection, stream)
        found = info["config"]
        before = counts_of(stream, found)
        agents, sessions = agents or before.agents, sessions or before.sessions
        _check_counts(stream, before, agents, sessions)
        await refuse_members(connection, stream, " until you start the workers with the new counts of partitions")
        imported = int(found["metadata"].get(IMPORTED_THROUGH, "0"))
        log = JetStreamLog(connection, stream, before, imported_through=imported, trimmed_through=trimmed_through(info))
        await _read_removed(log, info, ledger)
        await _close(connection, stream, f"{agents}:{sessions}")
        try:
            folding = Replay(_SCOPED, before)
            folding.decides_tail = True  # so that _refuse_open sees messages whose decision is not recorded
            source = StreamSource(log)
            await read_into(source, folding, progress=lambda seq: progress("folding", seq))
            _refuse_open(folding, await _open_exchanges(log))
            through = await _move_fences(log, folding)
            former = (*before.former, FormerCounts(through, before.agents, before.sessions))
            after = Partitions(agents, sessions, former)
            await read_into(source, folding, Point(seq=through), after=folding.reached, progress=lambda _: None)
            dividing = await _divided(log, after, through, progress)
            states = _check_states(folding, dividing, after)
            if log.trimmed_through:
                await _write_snapshots(log, dividing, after, config.log.replicas)
            await _open(connection, stream, counts_metadata(after))
        except BaseException:
            with suppress(LogError):  # the first error explains more, and the mark on the stream says what to do
                await _open(connection, stream)
            raise
        await _drop_snapshots(connection, before)
        return Repartitioned(stream, before, after, through, states)


async def cancel(access: Access, config: Config) -> bool:
    """Remove the mark that a killed repartitioning left on a stream; return whether there was one. Raises LogError."""
    async with await Connection.open(access) as connection:
        found = await _config_of(connection, config.log.stream)
        if REPARTITIONING not in found["metadata"]:
            return False
        await _open(connection, config.log.stream)
        return True


def _check_counts(stream: str, before: Partitions, agents: int, sessions: int) -> None:
    if (agents, sessions) == (before.agents, before.sessions):
        raise Misconfigured(f"stream {stream} has {agents} agent and {sessions} session partitions already")
    for kind, there, wanted in (("agent", before.agents, agents), ("session", before.sessions, sessions)):
        if wanted < there or wanted % there:
            raise Misconfigured(
                f"stream {stream} has {there} {kind} partitions, and {wanted} is no multiple of that: a partition is "
                f"divided, and never joined with another; name {there}, {2 * there} or another multiple"
            )


async def _config_of(connection: Connection, stream: str) -> dict[str, Any]:
    config: dict[str, Any] = (await stream_info(connection, stream))["config"]
    return config


async def _close(connection: Connection, stream: str, counts: str) -> None:
    config = closed_config(await _config_of(connection, stream))
    await connection.api(
        f"STREAM.UPDATE.{stream}", config | {"metadata": config["metadata"] | {REPARTITIONING: counts}}
    )


async def _open(connection: Connection, stream: str, counts: Mapping[str, str] = _NO_CHANGES) -> None:
    await open_bucket(connection)  # it is closed while snapshots are written
    config = opened_config(await _config_of(connection, stream))
    kept = {name: value for name, value in config["metadata"].items() if name != REPARTITIONING}
    await connection.api(f"STREAM.UPDATE.{stream}", config | {"metadata": kept | dict(counts)})


async def _move_fences(log: JetStreamLog, folding: Replay) -> int:
    """Record the settings of every partition again, which moves its fence; return the last sequence."""
    partitions, last, now_ns = log.partitions, (await log.info()).last_seq, time.time_ns()
    records = []
    for actor in _SCOPED:
        for partition in partition_names(actor, partitions):
            view = folding.views.get((actor.name, partition)) or View(actor, partition, partitions)
            decided = address_events(actor.name, _cause(view), (_settings_of(view),), partitions)
            record = to_record(decided[0], f"{_SOURCE}/{actor.name}/{partition}", "", now_ns, 0)
            # The stream is closed: it stores only what is published there, by a login that may import.
            subject = f"{IMPORT_ROOT}.{record.subject.partition('.')[2]}"
            records.append(msgspec.structs.replace(record, subject=subject))
    for start in range(0, len(records), MAX_BATCH):
        first, *rest = records[start : start + MAX_BATCH]
        headers = {**first.headers, EXPECTED_LAST: str(last)}
        last = await log.append([Append((msgspec.structs.replace(first, headers=headers), *rest))])
    return last


def _cause(view: View) -> Cause:
    """Return the cause of settings that are recorded again; its id is derived from the partition's last own event."""
    identity = f"{view.actor.name}/{view.partition}/{view.own_last}/repartitioned"
    tokens = (NO_PARTITION, view.partition) if view.actor.scope is Scope.SESSION else (view.partition, NO_PARTITION)
    return Cause(identity, view.position, view.time_ns, "", "", "", *tokens)


def _settings_of(view: View) -> Configured:
    if view.configured is not None:
        return view.configured
    settings = msgspec.to_builtins(view.actor.settings_type())
    hashed = content_hash(settings)
    return view.actor.configured(settings=settings, settings_hash=hashed, behaviour=view.actor.behaviour)


def _refuse_open(folding: Replay, open_exchanges: int) -> None:
    """Refuse a log with incomplete exchanges or decisions: it is not known to which partition they would belong.

    Also refuse states that only a newer release can fold.
    """
    if open_exchanges:
        some = "1 exchange of the log has" if open_exchanges == 1 else f"{open_exchanges} exchanges of the log have"
        raise Misconfigured(
            f"{some} no end yet: start the workers as they were, stop what sends inputs, wait until all have ended, "
            "and run this again"
        )
    pending = sorted({view.actor.name for view in views_of_partitions(folding) if has_pending(view)})
    if pending:
        raise Misconfigured(
            f"{', '.join(pending)} have yet to decide what came last: start the workers as they were, stop what sends "
            "inputs, wait for a few seconds, and run this again"
        )
    for view in views_of_partitions(folding):
        if view.why_passed_over:
            raise Misconfigured(view.why_passed_over)


async def _open_exchanges(log: JetStreamLog) -> int:
    """Return how many exchanges wait for their end. Inputs that nobody can read get none, and wait for nothing."""
    open_exchanges: set[str] = set()
    last = (await log.info()).last_seq
    inputs, ends = topic_of(InputReceived), topic_of(ResponseEmitted)
    async for batch in log.history([topic_filter(inputs), topic_filter(ends)], 0, last):
        for stored in batch:
            exchange = exchange_in(stored.headers)
            if stored.subject.endswith(f".{inputs.partition('.')[2]}"):
                if isinstance(decode(stored), Recorded) and not why_unroutable(stored.subject, log.partitions):
                    open_exchanges.add(exchange)
            else:
                open_exchanges.discard(exchange)
    return len(open_exchanges)


async def _divided(log: JetStreamLog, after: Partitions, through: int, progress: Progress) -> Replay:
    """Fold the log with its new counts."""
    divided = JetStreamLog(
        log.connection,
        log.stream,
        after,
        imported_through=log.imported_through,
        trimmed_through=log.trimmed_through,
    )
    divided.archive = log.archive
    dividing = Replay(_SCOPED, after)
    await read_into(StreamSource(divided), dividing, Point(seq=through), progress=lambda seq: progress("checking", seq))
    return dividing


def _check_states(before: Replay, dividing: Replay, after: Partitions) -> int:
    """Compare every new partition's state with that of the partition it was divided from; return how many.

    Raises:
        StatesDiffer: it is not a part of the former state, or an entry of a session or an agent is in none, or in two.
    """
    checked = 0
    for origin in views_of_partitions(before):
        fold_silent_messages(origin)
        actor, name, partition = origin.actor, origin.actor.name, origin.partition
        children = [
            part
            for part in partition_names(actor, after)
            if lineage(actor, part, after)[-2] == partition  # the one that it was divided from last
            and (name, part) in dividing.views
        ]
        states = {part: dividing.views[name, part].state for part in children}
        entries = Counter(
            entry for state in states.values() for entry in owned_entries(state, actor.scope, origin.agents)
        )
        if entries != Counter(owned_entries(origin.state, actor.scope, origin.agents)):
            raise _differs(name, partition)
        for part, state in states.items():
            if state_hash(state) != state_hash(origin.divided(part, after).state):
                raise _differs(name, part)
            checked += 1
    return checked


async def _read_removed(log: JetStreamLog, info: Mapping[str, Any], ledger: Path | None) -> None:
    """Attach the ledger, if events were removed from the stream, so that the log reads them from there."""
    if not log.trimmed_through:
        if (first := int(info["state"]["first_seq"])) > 1:
            raise Misconfigured(
                f"stream {log.stream} begins at sequence {first}, and no ledger is known to hold what was before it: "
                "its states cannot be folded"
            )
        return
    if ledger is None:
        raise Misconfigured(
            f"events up to sequence {log.trimmed_through} were removed from stream {log.stream}: run this where the "
            "ledger is that holds them, or name it with --ledger"
        )
    await check_archive(log, ledger)
    log.archive = LedgerArchive(ledger)


async def _write_snapshots(log: JetStreamLog, dividing: Replay, after: Partitions, replicas: int) -> None:
    """Write a snapshot of every new partition, which no worker could fold from a stream without its beginning."""
    await close_bucket(log.connection, replicas)
    views = [
        dividing.views.get((actor.name, partition)) or View(actor, partition, after)
        for actor in _SCOPED
        for partition in partition_names(actor, after)
    ]
    await write_snapshots(log.connection, views, dividing.reached, (await log.losses()).last_seq)


def _differs(name: str, partition: str) -> StatesDiffer:
    return StatesDiffer(
        f"the state of {name} partition {partition} would not be what it was: nothing was changed; please report this, "
        "with the log if you may"
    )


async def _drop_snapshots(connection: Connection, before: Partitions) -> None:
    """Delete the snapshots of former partitions: nobody would renew them when a person is to be forgotten."""
    if await find_stream(connection, f"KV_{SNAPSHOTS_BUCKET}") is None:
        return  # no worker has run on this broker: the log was imported
    snapshots = KeyValueSnapshots(connection)
    for actor in _SCOPED:
        for partition in partition_names(actor, before):
            await snapshots.drop(partition_key(actor.name, partition))
