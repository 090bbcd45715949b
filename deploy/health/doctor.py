"""The checks of ``neuraxis doctor``. Functions that measure ask the broker; those that judge (``judge_*``) are pure."""

import asyncio
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from actors.gateway.http.keys import is_loopback
from actors.runtime.membership.availability import readable_heartbeats
from actors.webhook.settings import Receiver
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.config.ignored_variables import REMEDY, ignored_variables
from deploy.health.findings import Finding, Verdict, not_made
from deploy.health.gateway_check import examine_gateway
from deploy.health.model_check import examine_effectors, examine_model
from deploy.health.readiness import NO_LEDGER, LedgerHealth, query_ledger
from deploy.health.resources import examine_resources, judge_left, storage_left
from deploy.health.rights_check import examine_rights
from deploy.health.servers_check import (
    ServerFacts,
    ask_servers,
    examine_copies,
    judge_servers,
    judge_settings,
    members_of,
    worst_storage,
)
from deploy.health.session_keys_check import PUT_BACK, examine_keys
from deploy.health.stage_check import judge_budgets, judge_snapshots, judge_stages
from deploy.health.subjects_check import examine_subjects
from deploy.health.upstream_check import examine_upstream
from deploy.health.webhook_check import examine_receivers
from deploy.processes.broker.storage_watch import (
    ROOM_BYTES,
    STORE_GONE,
    STORE_REMEDY,
    own_store,
    store_limit,
    storing_failure,
    storing_fault,
)
from deploy.processes.running_set import DataFolder, ModelInUse, RunFile
from deploy.processes.up import durability_promise
from events.errors import LogError, NoLeader
from events.jetstream import Access, Connection, KeyValueMembership
from events.jetstream.storage_check import (
    AT_LIMIT,
    KEYS_GONE,
    LEADERLESS,
    NO_STREAM,
    SWITCHED_OFF,
)
from events.jetstream.stream import consumers_of, ensure_stream, trimmed_through
from events.ledger import LedgerReader
from schemas.input_path import LEDGER
from schemas.permissions import BrokerUser, durable_names, owners
from schemas.subjects import Partitions

LAG_WARNING = 1_000
"""How many messages a consumer or the ledger may be behind without a warning."""

CLOCK_WARNING_S, CLOCK_FAILURE_S = 0.5, 30.0
"""Seconds between the broker's clock and ours above which the check warns or fails.

Deadlines are set by the broker's clock, and waited for by ours.
"""

_NEVER_S = 365 * 24 * 3600.0
"""A flush interval of this many seconds or more means never: ``--sync never``."""

DISK_WARNING = 0.1
"""The share of the disk that should be free; below it, the check warns."""

_NO_BROKER = (
    "start a set with `neuraxis up`; of one that runs, name the folder with --data; of a broker of your own, check "
    "--nats, the login (--creds or --context) and whether this machine reaches it"
)
_NO_STREAM = (
    "start the workers, which make the stream: `neuraxis up`, or `neuraxis worker all`; if the stream has another "
    "name, set log.stream, and if this login may not read it, name one that may with --context"
)
_NEW_LEDGER = "move the file aside: the ledger's process then writes a new one from the stream"
_WRITTEN_LATER = "nothing is lost: the ledger is written on once it can be"
_BAD_LEDGER = f"`neuraxis log verify` tells what is wrong with it; then {_NEW_LEDGER}"
_LEADERLESS = (
    "start the servers of the cluster that are away: more than half of them must run; the check of the servers names "
    "those that answer, with a login of the broker's system account"
)
_JETSTREAM_ON = "start nats-server with `jetstream { store_dir: ... }`"
_MAKE_ROOM = (
    "make room, or raise its limit on file descriptors (ulimit -n): `neuraxis up` then starts its broker anew; one of "
    "your own is yours to start"
)
_STORING_REMEDIES = {
    LEADERLESS: _LEADERLESS,
    SWITCHED_OFF: f"{_JETSTREAM_ON}; one that switched it off itself, on a full disk, is to be started again",
    AT_LIMIT: "raise that limit at the broker; what waits to be stored is stored then",
    KEYS_GONE: PUT_BACK,
    "not answered": "look whether its process runs, or stands still: its log, and the load of its machine",
    "is away": "look whether its process runs; `neuraxis up` starts its own anew",
}
"""Part of what a failure says -> what to do; any other failure is one of the disk."""

_NO_WORKERS = "run `neuraxis up`, or `neuraxis worker all`: the first worker makes the bucket in which all report"
_NOT_READY = (
    "wait a minute; then read what `neuraxis up` printed of it, and start the set again: nothing that is stored is lost"
)
_RESTARTED = "read what `neuraxis up` printed before each `program_restarts`; short of memory is the usual reason"


class SetToExamine(msgspec.Struct, frozen=True, kw_only=True):
    """The set to check, and what should be true of it.

    ``system`` gives access to the broker's system account; it is None where there is no login of it. ``expected`` are
    the configured partition counts. ``actors`` and ``effectors`` should be running, and ``stages`` should be served.
    ``model`` is the language model in use, if known; ``key_file`` holds its key, if the environment does not.
    ``receivers`` get alerts. ``upstream`` is the endpoint that requests are passed on to, empty if there is none, and
    ``upstream_key_file`` holds its key, if the environment does not. ``asking`` names the settings that make an actor
    ask a model. ``replicas`` is the configured number of copies. ``logins`` are the broker logins to check, and
    ``users`` the permissions that each should have, as derived from the catalogue of events.
    """

    access: Access
    system: Access | None
    stream: str
    expected: Partitions
    actors: tuple[str, ...]
    effectors: tuple[str, ...]
    stages: tuple[str, ...]
    model: ModelInUse | None
    key_file: str
    receivers: Mapping[str, Receiver]
    upstream: str
    upstream_key_file: str
    data: Path
    ledger: Path
    run: RunFile | None
    asking: tuple[str, ...] = ()
    replicas: int = 1
    logins: Mapping[str, Access] = {}
    users: Mapping[str, BrokerUser] = {}


async def examine(to_check: SetToExamine) -> list[Finding]:
    """Make all checks; one that cannot be made reports that, and the others go on."""
    # At the same time, since each may have to wait for somebody who does not answer.
    gateway, receivers, upstream = await asyncio.gather(
        examine_gateway(to_check.run),
        examine_receivers(to_check.receivers, os.environ),
        examine_upstream(to_check.upstream, os.environ, to_check.upstream_key_file),
    )
    findings = [
        judge_processes(to_check.run),
        gateway,
        judge_shared_agent(to_check.run, has_keys=DataFolder(to_check.data).keys.exists()),
        judge_disk(to_check.data, _disk(to_check.data)),
        *examine_resources(to_check.data, [process.pid for process in to_check.run.processes] if to_check.run else []),
        *receivers,
        upstream,
        *judge_variables(os.environ),
    ]
    try:
        connection = await Connection.open(to_check.access)
    except LogError as wrong:
        return [Finding("broker", Verdict.FAIL, str(wrong), _NO_BROKER), *findings]
    store = own_store(to_check.data, to_check.run.contexts if to_check.run is not None else "")
    try:
        version = connection.nc.connected_server_version
        seen = f"nats-server {version.major}.{version.minor}.{version.patch} at {to_check.access.servers}"
        broker = [Finding("broker", Verdict.OK, seen), *await _jetstream(connection, store)]
        if broker[1].verdict is Verdict.FAIL:
            servers = await ask_servers(to_check.system, ())
            return [*broker, _servers(servers, (), to_check), *findings]
        failure = await storing_failure(to_check.system) if to_check.system is not None else ""
        failure = failure or await storing_fault(connection, to_check.stream, store)
        return [*broker, judge_storage(failure), *await _log(connection, to_check), *findings]
    finally:
        await connection.close()


def judge_variables(environment: Mapping[str, str]) -> list[Finding]:
    """Warn of environment variables that look like ours, and that nothing reads."""
    if not (names := ignored_variables(environment)):
        return []
    return [Finding("variables", Verdict.WARN, f"nothing reads {', '.join(names)}", REMEDY)]


async def _jetstream(connection: Connection, store: Path | None) -> list[Finding]:
    """Check that JetStream serves, and what is left of a limit of the account, or of the set's own broker.

    ``store`` is the folder of the streams of that broker; None: the broker is another.
    """
    try:
        info = await connection.api("INFO")
    except NoLeader as wrong:
        return [Finding("jetstream", Verdict.FAIL, f"it serves nothing: {wrong}", _LEADERLESS)]
    except LogError as wrong:
        remedy = (
            f"{_JETSTREAM_ON}, and allow this user $JS.API.INFO; a cluster answers nothing for half a minute after it "
            "has lost most of its servers: look again"
        )
        return [Finding("jetstream", Verdict.FAIL, f"not on, or not for this user: {wrong}", remedy)]
    found = Finding("jetstream", Verdict.OK, f"on, {info['streams']} streams, {info['storage']:,} bytes stored")
    left = storage_left(info, store_limit(store))
    return [found] if left is None else [found, judge_left("storage", [left])]


def judge_storage(failure: str) -> Finding:
    """Judge whether the broker still writes; ``failure`` is why not, empty if it does."""
    if failure.startswith(NO_STREAM):
        return Finding("storing", Verdict.SKIP, failure)
    if not failure:
        return Finding("storing", Verdict.OK, "the broker writes what it is given")
    if failure.startswith(STORE_GONE):
        return Finding("storing", Verdict.FAIL, failure, STORE_REMEDY)
    remedy = next((remedy for part, remedy in _STORING_REMEDIES.items() if part in failure), _MAKE_ROOM)
    return Finding("storing", Verdict.FAIL, f"nothing is stored: {failure}", remedy)


async def _log(connection: Connection, to_check: SetToExamine) -> list[Finding]:
    try:
        partitions = (await ensure_stream(connection, to_check.stream, None, create=False)).partitions
        before = time.time()
        info = await connection.api(f"STREAM.INFO.{to_check.stream}")
        trimmed = trimmed_through(info)
        our_time = (before + time.time()) / 2  # the middle of the request, when the broker read its clock
    except LogError as wrong:
        servers = await ask_servers(to_check.system, ())
        return [Finding("stream", Verdict.FAIL, str(wrong), _NO_STREAM), _servers(servers, (), to_check)]
    replicas = int(info["config"]["num_replicas"])
    state = info["state"]
    members = members_of(info.get("cluster") or {})
    servers = await ask_servers(to_check.system, members)
    return [
        judge_stream(to_check.stream, state, replicas, trimmed),
        judge_settings(info["config"], partitions),
        await _copies(connection, to_check),
        _servers(servers, members, to_check),
        await examine_rights(to_check.logins, to_check.users),
        judge_partitions(partitions, to_check.expected),
        await examine_subjects(connection, to_check.stream, partitions, our_time),
        await examine_keys(connection, to_check.stream),
        judge_sync(worst_storage(servers), replicas),
        judge_clock(_seconds(info.get("ts", "")), our_time),
        await _consumers(connection, to_check.stream),
        *await _workers(connection, to_check, partitions),
        await _ledger(connection, to_check, trimmed),
        await examine_effectors(connection, to_check.stream, to_check.effectors),
        await examine_model(to_check.model, os.environ, to_check.key_file, to_check.asking),
    ]


def _servers(servers: Sequence[ServerFacts], members: Sequence[str], to_check: SetToExamine) -> Finding:
    return judge_servers(servers, members, len(to_check.access.servers.split(",")) if to_check.replicas > 1 else 1)


async def _copies(connection: Connection, to_check: SetToExamine) -> Finding:
    try:
        return await examine_copies(connection, to_check.stream, to_check.replicas)
    except LogError as wrong:
        return not_made("copies", "look at them", wrong)


async def _consumers(connection: Connection, stream: str) -> Finding:
    try:
        consumers = await consumers_of(connection, stream)
    except LogError as wrong:
        return not_made("readers", "list them", wrong)
    behind = {consumer["name"]: int(consumer["num_pending"]) for consumer in consumers}
    own = {name for owner in owners() for name in durable_names(owner)}
    durables = {each["name"] for each in consumers if each["config"].get("durable_name")} - own
    others = {name: behind.pop(name) for name in sorted(durables)}
    return judge_readers(list(behind.values()), others)


async def _workers(connection: Connection, to_check: SetToExamine, partitions: Partitions) -> list[Finding]:
    try:
        members = await KeyValueMembership(connection).members()
    except LogError as wrong:
        there = connection.connected
        return [not_made("workers", "ask who is alive", wrong, connected=there, if_gone=_NO_WORKERS)]
    alive = readable_heartbeats(members)
    # A worker stands in for actors that it runs as long as no other worker does.
    return [
        judge_workers(
            to_check.actors, [(*heartbeat.actors, *heartbeat.stands_in) for heartbeat in alive if heartbeat.actors]
        ),
        judge_stages(alive, partitions, (*to_check.stages, *(() if to_check.run is None else (LEDGER,)))),
        judge_budgets(alive),
        judge_snapshots(alive),
    ]


async def _ledger(connection: Connection, to_check: SetToExamine, trimmed: int) -> Finding:
    path = to_check.ledger
    try:
        health = await query_ledger(connection)
        position = None if to_check.run is None else await asyncio.to_thread(_ledger_position, path)
        # Where the stream ends now: it grew, and the ledger with it, while all else was looked at.
        last = int((await connection.api(f"STREAM.INFO.{to_check.stream}"))["state"]["last_seq"])
    except LogError as wrong:
        return not_made("ledger", "ask how far it is behind", wrong)
    if to_check.run is None:
        return judge_ledger_process(health, last, trimmed)  # a file here may be of another set
    if health.trouble and health.trouble != NO_LEDGER:
        return Finding("ledger", Verdict.FAIL, f"{path}: {health.trouble}", _WRITTEN_LATER)
    return judge_ledger(path, position, last, trimmed)


def _ledger_position(path: Path) -> int | str | None:
    """Return the last sequence in the ledger, None where there is no file, or what is wrong with it."""
    if not path.exists():
        return None
    try:
        with LedgerReader(path) as ledger:
            return ledger.info().last_seq
    except LogError as wrong:
        return str(wrong)


def judge_shared_agent(run: RunFile | None, *, has_keys: bool) -> Finding:
    """Judge whether people share an agent: it remembers across sessions, so one of them could learn of another.

    ``has_keys``: callers have API keys, as those have who come in through a reverse proxy on this machine.
    """
    if run is None or run.in_force is None:
        return Finding("agents", Verdict.SKIP, "nobody says here which agents inputs are for")
    per = run.in_force.agent_per
    if per != "shared":
        return Finding("agents", Verdict.OK, f"inputs that name no agent have one for each {per}")
    seen = "inputs that name no agent share one, which remembers across all sessions"
    is_remote = not is_loopback(urlsplit(run.http).hostname or "")
    if run.http and (is_remote or has_keys):
        remedy = 'set gateway.agent_per = "user" unless all who reach the gateway may know of each other'
        who = "other machines reach the gateway" if is_remote else "callers have API keys"
        return Finding("agents", Verdict.WARN, f"{seen}, and {who}", remedy)
    return Finding("agents", Verdict.OK, seen)


def judge_stream(name: str, state: Mapping[str, Any], replicas: int, trimmed: int = 0) -> Finding:
    """Judge whether the stream still holds every message that was appended to it, but those up to ``trimmed``, which
    `neuraxis log trim` has removed: a ledger keeps them.
    """
    first, last, held = int(state["first_seq"]), int(state["last_seq"]), int(state["messages"])
    expected = last - first + 1 if held else 0
    copies = "1 copy, not highly available" if replicas == 1 else f"{replicas} copies"
    if trimmed:
        copies += f"; what was trimmed, up to sequence {trimmed:,}, is in its ledger alone"
    if held < expected or first > trimmed + 1:
        missing = max(expected - held, 0) + max(first - 1 - trimmed, 0)
        remedy = "its files were damaged: compare with the ledger by `neuraxis log verify`, and restore a copy"
        return Finding("stream", Verdict.FAIL, f"{name} misses {missing:,} of {counted(last, 'message')}", remedy)
    return Finding("stream", Verdict.OK, f"{name}, {counted(held, 'message')}, {int(state['bytes']):,} bytes, {copies}")


def judge_partitions(found: Partitions, expected: Partitions) -> Finding:
    """Judge whether the stream's partition counts are the configured ones. Former counts do not matter."""
    seen = f"{found.agents} for agents, {found.sessions} for sessions"
    if (found.agents, found.sessions) == (expected.agents, expected.sessions):
        return Finding("partitions", Verdict.OK, seen)
    remedy = f"set log.agents = {found.agents} and log.sessions = {found.sessions}, or start a new stream"
    configured = f"{expected.agents} and {expected.sessions}"
    return Finding("partitions", Verdict.FAIL, f"{seen}; configured are {configured}", remedy)


def judge_sync(storage: Mapping[str, Any] | None, replicas: int) -> Finding:
    """Judge which failures an acknowledged message survives."""
    if storage is None:
        seen = "this user cannot see how the broker flushes"
        if replicas > 1:
            return Finding("durability", Verdict.OK, f"{seen}; {replicas} copies guard against the loss of a server")
        return Finding(
            "durability", Verdict.WARN, seen, "make sure that every server has `jetstream { sync_interval: always }`"
        )
    if storage.get("sync_always"):
        return Finding("durability", Verdict.OK, durability_promise("always", replicas))
    seconds = int(storage.get("sync_interval", 0)) / 1e9
    interval = f"{seconds:g} s" if seconds < _NEVER_S else "never"
    return Finding("durability", Verdict.WARN, durability_promise(interval, replicas), "start with `--sync always`")


def judge_clock(broker_time: float | None, our_time: float) -> Finding:
    """Judge how far the broker's clock and ours are apart; both are in Unix seconds."""
    if broker_time is None:
        return Finding("clock", Verdict.WARN, "the broker does not tell its time", "use nats-server 2.12 or later")
    apart = abs(broker_time - our_time)
    seen = f"broker and this machine are {apart:.3f} s apart"
    if apart <= CLOCK_WARNING_S:
        return Finding("clock", Verdict.OK, seen)
    verdict = Verdict.FAIL if apart > CLOCK_FAILURE_S else Verdict.WARN
    return Finding("clock", verdict, seen, "synchronise both by NTP: deadlines fire by the wrong clock")


def judge_readers(pending: Sequence[int], others: Mapping[str, int] = MappingProxyType({})) -> Finding:
    """Judge how far the stream's consumers are behind; each number counts one consumer's undelivered messages.

    ``others``, by name, are durable ones that are not of the set, such as the reader's: they stay if nobody reads them.
    """
    seen = f"{counted(len(pending), 'consumer')}, the slowest {counted(max(pending, default=0), 'message')} behind"
    if max(pending, default=0) > LAG_WARNING:
        return Finding("readers", Verdict.WARN, seen, "more load than the workers take: add processes with --processes")
    if late := [f"{name} {counted(count, 'message')}" for name, count in others.items() if count > LAG_WARNING]:
        remedy = "have their readers go on; one that nobody reads any more can be deleted by the login that made it"
        return Finding("readers", Verdict.WARN, f"{seen}; not of the set, and behind: {', '.join(late)}", remedy)
    return Finding("readers", Verdict.OK, seen)


def judge_workers(actors: Sequence[str], alive: Sequence[tuple[str, ...]]) -> Finding:
    """Judge whether every actor has a living worker; ``alive`` lists what each living worker hosts."""
    missing = [actor for actor in actors if not any(actor in hosted for hosted in alive)]
    if missing:
        remedy = f"run `neuraxis up`, or `neuraxis worker {' '.join(missing)}`"
        return Finding("workers", Verdict.FAIL, f"nobody runs {', '.join(missing)}", remedy)
    return Finding("workers", Verdict.OK, f"{len(alive)} alive, all {len(actors)} actors hosted")


def judge_ledger_process(health: LedgerHealth, last: int, trimmed: int = 0) -> Finding:
    """Judge by what the ledger's process says of itself how far it is behind the stream.

    A ledger alone has the events up to ``trimmed``: without its process nobody can be asked for them.
    """
    if health.trouble == NO_LEDGER and trimmed:
        seen = f"no process writes the ledger, which alone has the events up to sequence {trimmed:,}"
        remedy = "run `neuraxis worker ledger` where that file is, or with a backup of it; do not begin another"
        return Finding("ledger", Verdict.FAIL, f"{seen}: they were removed from the stream", remedy)
    if health.trouble == NO_LEDGER:
        return Finding("ledger", Verdict.WARN, "no process writes the ledger", "run `neuraxis worker ledger`")
    if health.trouble:
        return Finding("ledger", Verdict.FAIL, health.trouble, _WRITTEN_LATER)
    behind = last - health.position
    if behind < 0:
        remedy = "the stream lost what the ledger has, or is another: `neuraxis log verify` tells, where the ledger is"
        return Finding("ledger", Verdict.FAIL, f"its process is ahead of the stream by {-behind:,}", remedy)
    seen = f"its process is {counted(behind, 'event')} behind the stream's {last:,}"
    if behind <= LAG_WARNING:
        return Finding("ledger", Verdict.OK, seen)
    return Finding("ledger", Verdict.WARN, seen, "is its disk slow, or full? `neuraxis doctor` there tells")


def judge_ledger(path: Path, position: int | str | None, last: int, trimmed: int = 0) -> Finding:
    """Judge how far the ledger is behind the stream; it alone has the events up to ``trimmed``."""
    if position is None and trimmed:
        seen = f"there is no {path}: events up to sequence {trimmed:,} were removed from the stream, and it has them"
        remedy = "put a backup of the ledger there, or look where it is; do not begin another"
        return Finding("ledger", Verdict.WARN, seen, remedy)
    if position is None:
        return Finding("ledger", Verdict.WARN, f"there is no {path}", "run `neuraxis worker ledger`")
    if isinstance(position, str):
        return Finding("ledger", Verdict.FAIL, position, _BAD_LEDGER)
    behind = last - position
    seen = f"{path} is {counted(behind, 'event')} behind the stream's {last:,}"
    if behind < 0:
        return Finding(
            "ledger",
            Verdict.FAIL,
            f"{path} is ahead of the stream by {-behind:,}",
            f"it is another stream's: name its own folder with --data, or {_NEW_LEDGER}",
        )
    if behind <= LAG_WARNING:
        return Finding("ledger", Verdict.OK, seen)
    return Finding("ledger", Verdict.WARN, seen, "is `neuraxis worker ledger` running, and the disk not full?")


def judge_processes(run: RunFile | None) -> Finding:
    """Judge the processes that ``run.json`` names."""
    if run is None:
        return Finding("processes", Verdict.SKIP, "no set runs in this data folder")
    down = [process.name for process in run.processes if not process.ready]
    if down:
        return Finding("processes", Verdict.FAIL, f"{', '.join(down)} not ready", _NOT_READY)
    restarted = {process.name: process.restarts for process in run.processes if process.restarts}
    names = ", ".join(f"{name} {counted(times, 'time')}" for name, times in restarted.items())
    if names:
        return Finding("processes", Verdict.WARN, f"started again: {names}", _RESTARTED)
    return Finding("processes", Verdict.OK, f"{len(run.processes)} run, since {run.started}")


def judge_disk(folder: Path, free: tuple[int, int] | None) -> Finding:
    """Judge the free space on the data folder's disk; ``free`` is (free, total) bytes."""
    if free is None:
        return Finding("disk", Verdict.SKIP, f"there is no {folder}")
    share = free[0] / free[1]
    seen = f"{share:.0%} of the disk of {folder} is free ({free[0] / 1e9:,.1f} GB)"
    if share >= DISK_WARNING:
        return Finding("disk", Verdict.OK, seen)
    verdict = Verdict.WARN if free[0] >= ROOM_BYTES else Verdict.FAIL
    return Finding("disk", verdict, seen, "make room: appends are refused on a full disk")


def _disk(folder: Path) -> tuple[int, int] | None:
    if not folder.exists():
        return None
    usage = shutil.disk_usage(folder)
    return usage.free, usage.total


def _seconds(timestamp: str) -> float | None:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return None
