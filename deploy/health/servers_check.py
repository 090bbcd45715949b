"""The doctor's checks of the broker's servers: their versions, clocks and flushing, and the copies that they keep."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from nats.aio.msg import Msg

from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.deploying.stream_copies import stream_infos
from deploy.health.findings import Finding, Verdict
from events.errors import LogError
from events.jetstream import Access, Connection
from events.jetstream.stream import consumers_of, stream_config
from schemas.subjects import Partitions

_TIMEOUT_S = 2.0
_GATHER_S = 0.3
"""Seconds for which answers are collected if the servers' names are not known."""

APART_WARNING_S, APART_FAILURE_S = 0.5, 30.0
"""Seconds between two servers' clocks above which the check warns or fails.

Deadlines are set by the clock of the server that leads the stream.
"""

_MAKE_COPIES = (
    "name the deployment's neuraxis.toml with --config; `neuraxis deploy streams` then gives each as many copies as "
    "its log.replicas says"
)


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A server's report on itself; ``behind_s`` is how far its clock was behind ours when it answered, in seconds.

    ``storage`` has its settings of JetStream, such as how often it flushes to disk. ``stores`` says whether JetStream
    is on: a server of a cluster switches it off when its disk is full, until it is started again.
    """

    name: str
    version: str
    behind_s: float
    storage: Mapping[str, Any]
    stores: bool = True


async def ask_servers(system: Access | None, expected: Collection[str]) -> list[ServerFacts]:
    """Ask every server, with a login of the system account; empty if there is none, or nobody answers.

    It waits for the servers whose names are ``expected``, but no longer than two seconds.
    """
    if system is None:
        return []
    found: dict[str, ServerFacts] = {}
    complete = asyncio.Event()

    async def receive(msg: Msg) -> None:
        facts = _facts(msg.data)
        if facts is not None:
            found[facts.name] = facts
            if expected and set(expected) <= found.keys():
                complete.set()

    try:
        async with await Connection.open(system) as connection:
            inbox = connection.new_inbox()
            await connection.subscribe(inbox, receive)
            await connection.publish("$SYS.REQ.SERVER.PING.JSZ", b'{"config":true}', reply=inbox)
            try:
                async with asyncio.timeout(_TIMEOUT_S if expected else _GATHER_S):
                    await complete.wait()
            except TimeoutError:
                pass  # judge_servers reports the servers that have not answered
    except LogError:
        return []
    return [found[name] for name in sorted(found)]


def _facts(answer: bytes) -> ServerFacts | None:
    try:
        body = msgspec.json.decode(answer)
        server = body["server"]
        server_time = datetime.fromisoformat(server["time"]).timestamp()
        data = body.get("data") or {}
        storage, stores = data.get("config") or {}, not data.get("disabled")
        behind = datetime.now().timestamp() - server_time
        return ServerFacts(name=server["name"], version=server["ver"], behind_s=behind, storage=storage, stores=stores)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None


def worst_storage(servers: Sequence[ServerFacts]) -> Mapping[str, Any] | None:
    """Return the storage settings of the server that flushes to disk least often; None if no server reports them."""
    reported = [server.storage for server in servers if server.storage and server.stores]
    return max(reported, key=_interval) if reported else None


def _interval(storage: Mapping[str, Any]) -> int:
    """Return the nanoseconds between two flushes; 0: every append is flushed; 1: it is not stated."""
    return 0 if storage.get("sync_always") else int(storage.get("sync_interval", 0)) or 1


def judge_servers(servers: Sequence[ServerFacts], expected: Collection[str], count: int = 1) -> Finding:
    """Judge whether all servers answer, run one version, and have the same time.

    ``expected`` are their names, as far as known, and ``count`` is the number of addresses that clients were given.
    """
    if not servers:
        seen = "only a login of the broker's system account may ask each server"
        return Finding("servers", Verdict.SKIP, seen)
    silent = sorted(set(expected) - {server.name for server in servers})
    if silent or len(servers) < count:
        remedy = "start it, or look at it with `curl http://127.0.0.1:8222/healthz` on its machine"
        there = ", ".join(server.name for server in servers)
        seen = f"{', '.join(silent)} did not answer" if silent else f"of {count} servers only {there} answered"
        return Finding("servers", Verdict.FAIL, seen, remedy)
    if off := [server.name for server in servers if server.name in expected and not server.stores]:
        remedy = (
            "look at its log; if its disk was full, make room: it switches JetStream on only when it is started again"
        )
        return Finding("servers", Verdict.FAIL, f"{', '.join(off)} answers, but has JetStream switched off", remedy)
    versions = sorted({server.version for server in servers})
    behind = [server.behind_s for server in servers]
    apart = max(behind) - min(behind)
    seen = f"{counted(len(servers), 'server')}, nats-server {', '.join(versions)}, clocks {apart:.3f} s apart"
    if apart > APART_WARNING_S:
        verdict = Verdict.FAIL if apart > APART_FAILURE_S else Verdict.WARN
        return Finding(
            "servers", verdict, seen, "synchronise the servers' clocks by NTP: the one that leads sets times"
        )
    if len(versions) > 1:
        return Finding("servers", Verdict.WARN, seen, "bring all to one version, one server after the other")
    return Finding("servers", Verdict.OK, seen)


async def examine_copies(connection: Connection, stream: str, wanted: int) -> Finding:
    """Check how many copies stream, buckets and durable consumers have, and whether all are up to date."""
    differing, late = [], []
    async for name, info in stream_infos(connection, stream):
        if int(info["config"]["num_replicas"]) != wanted:
            differing.append(f"{name} has {info['config']['num_replicas']}")
        late += [f"{name} on {peer}" for peer in stale_peers(info.get("cluster") or {})]
    for consumer in await consumers_of(connection, stream):
        own = int(consumer["config"].get("num_replicas", 0))
        if consumer["config"].get("durable_name") and own not in (0, wanted):
            differing.append(f"consumer {consumer['name']} has {own}")
    return judge_copies(differing, late, wanted)


def members_of(cluster: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the servers that keep a copy of a stream."""
    names = (cluster.get("leader", ""), *(peer["name"] for peer in cluster.get("replicas") or ()))
    return tuple(sorted(filter(None, names)))


def stale_peers(cluster: Mapping[str, Any]) -> list[str]:
    """Return the servers whose copy of a stream is not up to date."""
    peers = cluster.get("replicas") or ()
    return [peer["name"] for peer in peers if peer.get("offline") or not peer.get("current")]


def judge_copies(differing: Sequence[str], late: Sequence[str], wanted: int) -> Finding:
    """Judge the copies; ``differing`` names what has not ``wanted`` copies, ``late`` what is not up to date."""
    configured = "1 copy" if wanted == 1 else f"{wanted} copies"
    if differing:
        return Finding("copies", Verdict.FAIL, f"{', '.join(differing)}; configured are {configured}", _MAKE_COPIES)
    if late:
        remedy = "start the server, and wait: it takes what it has missed from the others"
        return Finding("copies", Verdict.WARN, f"not up to date: {', '.join(late)}", remedy)
    return Finding("copies", Verdict.OK, f"stream, buckets and consumers have {configured}, all up to date")


def judge_settings(config: Mapping[str, Any], partitions: Partitions) -> Finding:
    """Judge whether the stream keeps every message, on disk, and for how long it recognises one that is sent twice."""
    wanted = stream_config(str(config["name"]), partitions, 1)
    wrong = [
        f"{field} is {config.get(field)!r} instead of {wanted[field]!r}"
        for field in ("storage", "discard", "max_msgs", "max_bytes", "max_age")
        if config.get(field, wanted[field]) != wanted[field]
    ]
    if int(config.get("duplicate_window", 0)) < wanted["duplicate_window"]:
        wrong.append(
            f"duplicate_window is {config.get('duplicate_window')!r} instead of {wanted['duplicate_window']!r}"
        )
    if wrong:
        remedy = f"put it right with `nats stream edit {config['name']}`; a stream in memory is to be made anew"
        return Finding("settings", Verdict.FAIL, "; ".join(wrong), remedy)
    return Finding("settings", Verdict.OK, "the stream keeps every message, on disk")
