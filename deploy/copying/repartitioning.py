"""Give a log more partitions: each is divided into several, which continue from its state.

Nothing that is stored changes: sequences, subjects, bodies and the chain over them stay as they are. After a sequence
that the stream's metadata names, the log has other counts (``schemas.subjects.Partitions``). A partition is never
joined with another, since the order in which two of them decided cannot be made one order afterwards.

A worker that was paused meanwhile must not append any more when it wakes. So the stream is marked and closed first: no
process starts on it, none begins to lead a partition, and nobody appends. Then the settings of each former partition
are recorded again, which moves its fence. Then the stream is opened with its new counts. A worker that wakes has lost
its fence, asks the broker for the stream's counts, and stops. If this is killed at any moment, it can be run again and
will finish; or ``cancel`` opens the stream, which is then as before.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import Any

import msgspec

from actors.registry import ACTORS
from actors.runtime.envelopes import to_record
from deploy.config.loading import Config
from deploy.copying.import_bundle import admin_in_folder
from deploy.processes.running_set import DataFolder
from events.division import owned_entries
from events.errors import LogError, Misconfigured
from events.jetstream import Access, Connection, JetStreamLog
from events.jetstream.connection import ApiError
from events.jetstream.importing import EXPECTED_LAST
from events.jetstream.key_value import MEMBERS_BUCKET, SNAPSHOTS_BUCKET, KeyValueMembership, KeyValueSnapshots
from events.jetstream.stream import (
    IMPORTED_THROUGH,
    IMPORTING,
    NOT_FOUND,
    REPARTITIONING,
    closed_config,
    counts_metadata,
    counts_of,
    opened_config,
)
from events.log import MAX_BATCH, Append
from events.make_decision import Cause, address_events
from events.partition_view import View
from events.replay.replay import Replay
from events.replay.run_replay import Point, read_into
from events.replay.sources import StreamSource
from events.routes import lineage, partition_names
from events.snapshot import partition_key
from schemas.actor import Scope
from schemas.event import Configured, topic_of
from schemas.identity import content_hash
from schemas.permissions import IMPORT_ROOT
from schemas.persistent import state_hash
from schemas.subjects import NO_PARTITION, FormerCounts, Partitions, topic_filter
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

Progress = Callable[[str, int], None]
"""Called with the step that is being done (``folding``, ``checking``) and the sequence reached."""

_SOURCE = "neuraxis://log-repartition"
_NO_CHANGES: Mapping[str, str] = MappingProxyType({})
_SCOPED = tuple(actor for actor in ACTORS.values() if actor.scope is not Scope.GLOBAL)


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
    """A partition would not begin with its part of its origin's state; nothing was changed."""

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
    access: Access, config: Config, agents: int | None, sessions: int | None, progress: Progress
) -> Repartitioned:
    """Give the configured stream these counts (None: as it has); the login must be one that may change streams.

    Raises:
        Misconfigured: the counts are no multiples of those there are, a worker runs, there is no such stream, or
            some exchange or decision in it is not complete.
        StatesDiffer: see there.
        LogError: the broker cannot be reached, or refuses.
    """
    stream = config.log.stream
    connection = await Connection.open(access)
    try:
        found = await _config_of(connection, stream)
        before = counts_of(stream, found)
        agents, sessions = agents or before.agents, sessions or before.sessions
        _check_counts(stream, before, agents, sessions)
        await refuse_members(connection, stream)
        await _close(connection, stream, f"{agents}:{sessions}")
        try:
            through = int(found["metadata"].get(IMPORTED_THROUGH, "0"))
            log = JetStreamLog(connection, stream, before, imported_through=through)
            folding = Replay(_SCOPED, before)
            folding.decides_tail = True
            source = StreamSource(log)
            await read_into(source, folding, progress=lambda seq: progress("folding", seq))
            _refuse_open(folding, await _open_exchanges(log))
            through = await _move_fences(log, folding)
            former = (*before.former, FormerCounts(through, before.agents, before.sessions))
            after = Partitions(agents, sessions, former)
            await read_into(source, folding, Point(seq=through), after=folding.reached, progress=lambda _: None)
            states = await _check_states(log, folding, after, through, progress)
            await _open(connection, stream, counts_metadata(after))
        except BaseException:
            with suppress(LogError):  # the first error explains more, and the mark on the stream says what to do
                await _open(connection, stream)
            raise
        await _drop_snapshots(connection, before)
        return Repartitioned(stream, before, after, through, states)
    finally:
        await connection.close()


async def cancel(access: Access, config: Config) -> bool:
    """Remove the mark that a killed repartitioning left on a stream; return whether there was one. Raises LogError."""
    connection = await Connection.open(access)
    try:
        found = await _config_of(connection, config.log.stream)
        if REPARTITIONING not in found["metadata"]:
            return False
        await _open(connection, config.log.stream)
        return True
    finally:
        await connection.close()


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


async def stream_info(connection: Connection, stream: str) -> dict[str, Any]:
    """Return the broker's information of a log's stream.

    Raises:
        Misconfigured: there is none, or it holds an incomplete import.
        LogError: the broker cannot be asked.
    """
    try:
        found = await connection.api(f"STREAM.INFO.{stream}")
    except ApiError as error:
        if error.number != NOT_FOUND:
            raise
        raise Misconfigured(
            f"the broker holds no stream {stream}: name the stream (log.stream), the broker or the folder of a log"
        ) from error
    metadata = found["config"].setdefault("metadata", {})
    if IMPORTING in metadata:
        raise Misconfigured(f"stream {stream} holds an import that is not whole: finish that first")
    return found


async def refuse_members(connection: Connection, stream: str) -> None:
    """Raise Misconfigured if a worker lives that may lead partitions of the log."""
    if not await _has_bucket(connection, MEMBERS_BUCKET):
        return  # the broker has restarted since the last worker left
    if members := await KeyValueMembership(connection).members():
        count = len(members)
        raise Misconfigured(
            f"{count} worker{'s' * (count > 1)} run{'s' * (count == 1)} on stream {stream}: stop them all, wait three "
            "seconds, and run this again; gateways may stay until you start the workers with the new counts"
        )


async def _has_bucket(connection: Connection, bucket: str) -> bool:
    try:
        await connection.api(f"STREAM.INFO.KV_{bucket}")
    except ApiError as error:
        if error.number != NOT_FOUND:
            raise
        return False
    return True


async def _close(connection: Connection, stream: str, counts: str) -> None:
    config = closed_config(await _config_of(connection, stream))
    await connection.api(
        f"STREAM.UPDATE.{stream}", config | {"metadata": config["metadata"] | {REPARTITIONING: counts}}
    )


async def _open(connection: Connection, stream: str, counts: Mapping[str, str] = _NO_CHANGES) -> None:
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
    """Refuse a log with incomplete exchanges or decisions: it is not known to which partition they would belong."""
    if open_exchanges:
        some = "1 exchange of the log has" if open_exchanges == 1 else f"{open_exchanges} exchanges of the log have"
        raise Misconfigured(
            f"{some} no end yet: start the workers as they were, stop what sends inputs, wait until all have ended, "
            "and run this again"
        )
    pending = sorted({view.actor.name for view in folding.views.values() if has_pending(view)})
    if pending:
        raise Misconfigured(
            f"{', '.join(pending)} have yet to decide what came last: start the workers as they were, stop what sends "
            "inputs, wait for a few seconds, and run this again"
        )


def has_pending(view: View) -> bool:
    """Whether a partition has yet to decide a message; earlier messages that lead to no event are folded."""
    while view.waiting:
        if not view.fold_silent():
            return True
    return bool(view.open_decision)


async def _open_exchanges(log: JetStreamLog) -> int:
    open_exchanges: set[str] = set()
    last = (await log.info()).last_seq
    inputs, ends = topic_of(InputReceived), topic_of(ResponseEmitted)
    async for batch in log.history([topic_filter(inputs), topic_filter(ends)], 0, last):
        for stored in batch:
            exchange = stored.headers.get("ce-exchange", "")
            if stored.headers.get("ce-type") == inputs:
                open_exchanges.add(exchange)
            else:
                open_exchanges.discard(exchange)
    return len(open_exchanges)


async def _check_states(log: JetStreamLog, before: Replay, after: Partitions, through: int, progress: Progress) -> int:
    """Fold the log with its new counts, and compare every state with the one that it comes from; return how many.

    Raises:
        StatesDiffer: a state is not a part of its origin's, or an entry of a session or an agent is in none, or in two.
    """
    source = StreamSource(JetStreamLog(log.connection, log.stream, after, imported_through=log.imported_through))
    dividing = Replay(_SCOPED, after)
    await read_into(source, dividing, Point(seq=through), progress=lambda seq: progress("checking", seq))
    checked = 0
    for (name, partition), origin in sorted(before.views.items()):
        has_pending(origin)  # folds the rest, which leads to no event
        actor = ACTORS[name]
        children = [
            part
            for part in partition_names(actor, after)
            if lineage(actor, part, after)[-2] == partition and (name, part) in dividing.views
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


def _differs(name: str, partition: str) -> StatesDiffer:
    return StatesDiffer(
        f"the state of {name} partition {partition} would not be what it was: nothing was changed; please report this, "
        "with the log if you may"
    )


async def _drop_snapshots(connection: Connection, before: Partitions) -> None:
    """Delete the snapshots of former partitions: nobody would renew them when a person is to be forgotten."""
    if not await _has_bucket(connection, SNAPSHOTS_BUCKET):
        return  # no worker has run on this broker: the log was imported
    snapshots = KeyValueSnapshots(connection)
    for actor in _SCOPED:
        for partition in partition_names(actor, before):
            await snapshots.drop(partition_key(actor.name, partition))
