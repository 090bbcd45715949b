"""What a login must not be able to do, told from the catalogue alone, and what a server says when it is tried."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import nats
from nats.aio.client import Client

from deploy.processes.broker.users import ADMIN, DECIDERS, GATEWAY, LEDGER, OBSERVER, OPERATOR, READER
from events.jetstream import Access
from schemas.catalogue import CATALOGUE
from schemas.permissions import (
    ALERT_CONSUMERS,
    MEMBERS_BUCKET,
    READ_SERVERS,
    SNAPSHOTS_BUCKET,
    STREAM,
    BrokerUser,
    durable_names,
    inbox_prefix,
    keys_bucket,
    owners,
    read_root,
)
from schemas.subjects import stored_subject

FORBIDDEN = "nobody.may.publish.here"
READING_ALL = (ADMIN, DECIDERS, OPERATOR, GATEWAY, LEDGER)
"""The logins that may read the whole stream."""

LISTENING = (GATEWAY, OPERATOR, OBSERVER, READER, ADMIN)
"""The logins that may listen to all public events."""

ANSWERING = frozenset({"llm", "responder"})
"""The owners that send to the inbox that an input names."""


class Attempts(msgspec.Struct, frozen=True):
    """Subjects to publish on, and to subscribe to, all of which must be denied."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def forbidden_to(user: BrokerUser, everybody: Sequence[str]) -> Attempts:
    """Return what a login of a deployment with the logins ``everybody`` must not do."""
    return Attempts(
        publish=tuple(dict.fromkeys((*_events(user), *_streams(user), *_consumers(user), *_buckets(user), *_system()))),
        subscribe=(
            "log.>",
            "nx-read.>",
            *(("nx-read.*.DURABLE.>",) if user.name != LEDGER else ()),
            *((f"nx-read.*.{call}.>" for call in READ_SERVERS[GATEWAY]) if user.name not in (GATEWAY, LEDGER) else ()),
            "$JS.ACK.>",
            "$JS.API.>",
            "$SYS.>",
            "_INBOX.>",
            *(f"{inbox_prefix(other)}.>" for other in everybody if other != user.name),
            *(("forged_id.>",) if user.name not in LISTENING else ()),
            *((f"$KV.{SNAPSHOTS_BUCKET}.>", f"$KV.{MEMBERS_BUCKET}.>", "$JS.EVENT.>") if user.name != ADMIN else ()),
        )
        if user.name != ADMIN
        else ("$SYS.>", "$JS.ACK.>", "_INBOX.>", *(f"{inbox_prefix(o)}.>" for o in everybody if o != user.name)),
    )


def _events(user: BrokerUser) -> Iterator[str]:
    for entry in CATALOGUE.values():
        yield entry.topic
        if entry.owner not in user.owners:
            yield stored_subject(entry.topic, "01", "07")
            yield stored_subject(entry.topic, "_", "07")
    if not ANSWERING.intersection(user.owners):
        yield "_INBOX.somebody.answer"


def _streams(user: BrokerUser) -> Iterator[str]:
    if user.name == ADMIN:
        return
    streams = (STREAM, *(f"KV_{bucket}" for bucket in (MEMBERS_BUCKET, SNAPSHOTS_BUCKET, keys_bucket(STREAM))))
    for stream in streams:
        for call in ("CREATE", "UPDATE", "DELETE", "PURGE", "SNAPSHOT", "RESTORE", "LEADER.STEPDOWN", "PEER.REMOVE"):
            yield f"$JS.API.STREAM.{call}.{stream}"
    yield f"$JS.API.STREAM.MSG.DELETE.{STREAM}"
    yield f"$JS.API.STREAM.MSG.DELETE.KV_{MEMBERS_BUCKET}"
    yield from ("$JS.API.STREAM.LIST", "$JS.API.STREAM.NAMES", "$JS.API.META.LEADER.STEPDOWN")
    yield from ("$JS.API.STREAM.CREATE.OTHER", "$JS.API.ACCOUNT.PURGE.NEURAXIS", "$JS.API.SERVER.REMOVE")


def _consumers(user: BrokerUser) -> Iterator[str]:
    if user.name == ADMIN:
        return
    yield from (f"$JS.API.CONSUMER.NAMES.{STREAM}", f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.mine")
    if user.name not in READING_ALL:
        yield from (f"$JS.API.CONSUMER.CREATE.{STREAM}", f"$JS.API.CONSUMER.CREATE.{STREAM}.nx-mine")
        yield from (f"$JS.API.STREAM.MSG.GET.{STREAM}", f"$JS.API.DIRECT.GET.{STREAM}")
        for entry in CATALOGUE.values():
            subject = stored_subject(entry.topic, "01", "07")
            yield f"$JS.API.CONSUMER.CREATE.{STREAM}.nx-mine.{subject}"
            yield f"$JS.API.DIRECT.GET.{STREAM}.{subject}"
    for owner in owners():
        if user.owners != (owner,) or user.name in READING_ALL:
            yield f"{read_root([owner])}.CONSUMER.CREATE.{STREAM}.nx-mine"
            yield f"{read_root([owner])}.LOG.GAPS.{STREAM}"
            yield f"{read_root([owner])}.DURABLE.CONSUMER.CREATE.{STREAM}.{durable_names(owner)[0]}"
    for stream in (f"KV_{MEMBERS_BUCKET}", f"KV_{SNAPSHOTS_BUCKET}", f"KV_{keys_bucket(STREAM)}"):
        yield from (f"$JS.API.CONSUMER.CREATE.{stream}.mine", f"$JS.API.CONSUMER.CREATE.{stream}.mine.>")
    for owner in owners():
        if owner in user.owners:
            continue
        for name in durable_names(owner):
            yield f"$JS.ACK.{STREAM}.{name}.1.1.1.1.0"
            yield f"$JS.ACK.hub.hash.{STREAM}.{name}.1.1.1.1.0"
            for call in ("INFO", "MSG.NEXT", "DELETE", "PAUSE", "RESET", "UNPIN", "LEADER.STEPDOWN"):
                yield f"$JS.API.CONSUMER.{call}.{STREAM}.{name}"
            if user.name != LEDGER:  # it creates them for effectors
                yield f"$JS.API.CONSUMER.CREATE.{STREAM}.{name}"
                yield f"$JS.API.CONSUMER.CREATE.{STREAM}.{name}.log.*.*.input.received"

    for name in () if user.name == READER else ALERT_CONSUMERS:
        yield from (f"$JS.ACK.{STREAM}.{name}.1.1.1.1.0", f"$JS.ACK.hub.hash.{STREAM}.{name}.1.1.1.1.0")
        for call in ("INFO", "MSG.NEXT", "DELETE", "PAUSE", "RESET", "UNPIN", "LEADER.STEPDOWN", "CREATE"):
            yield f"$JS.API.CONSUMER.{call}.{STREAM}.{name}"
        yield f"$JS.API.CONSUMER.CREATE.{STREAM}.{name}.log.*.*.alert.>"


def _buckets(user: BrokerUser) -> Iterator[str]:
    for owner in owners():
        if owner not in user.owners:
            yield f"$KV.{SNAPSHOTS_BUCKET}.{owner}.07"
            if user.name not in (ADMIN, OPERATOR, "ledger"):
                yield f"$JS.API.DIRECT.GET.KV_{SNAPSHOTS_BUCKET}.$KV.{SNAPSHOTS_BUCKET}.{owner}.07"
    if user.name != ADMIN:
        for call in ("DIRECT.GET", "STREAM.MSG.GET"):
            yield f"$JS.API.{call}.KV_{SNAPSHOTS_BUCKET}"
    if user.name not in (GATEWAY, OPERATOR, ADMIN):
        yield f"$KV.{keys_bucket(STREAM)}.{'0' * 64}"
    if user.name not in (ADMIN, OPERATOR):
        yield f"$JS.API.STREAM.MSG.DELETE.KV_{keys_bucket(STREAM)}"


def _system() -> Iterator[str]:
    yield from ("$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.JSZ", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.ACCOUNT.X.Y")


@asynccontextmanager
async def client_of(access: Access) -> AsyncIterator[tuple[Client, asyncio.Queue[str]]]:
    """Connect a plain client; the queue fills with the errors that the server reports to it."""
    errors: asyncio.Queue[str] = asyncio.Queue()

    async def report(error: Exception) -> None:
        errors.put_nowait(str(error).lower())

    how = {"nkeys_seed": access.nkey} if access.nkey else {"user": access.user, "password": access.password}
    client = await nats.connect(
        access.servers.split(","), inbox_prefix=access.inbox_prefix, error_cb=report, allow_reconnect=False, **how
    )
    try:
        yield client, errors
    finally:
        await client.close()


async def let_through(access: Access, attempts: Attempts) -> list[str]:
    """Try everything; return what the server did not deny."""
    async with client_of(access) as (client, errors):
        for subject in attempts.publish:
            await client.publish(subject, b"{}")
        for subject in attempts.subscribe:
            await client.subscribe(subject, cb=_ignore)
        # Denials come in order and nobody may publish this one: when it is reported, all are.
        await client.publish(FORBIDDEN, b"")
        reported: set[str] = set()
        async with asyncio.timeout(30):
            while FORBIDDEN not in (error := await errors.get()):
                reported.add(error)
    said = 'nats: permissions violation for {} to "{}"'
    return [
        f"{kind} {subject}"
        for kind, subjects in (("publish", attempts.publish), ("subscription", attempts.subscribe))
        for subject in subjects
        if said.format(kind, subject.lower()) not in reported
    ]


async def _ignore(_: object) -> None:
    return
