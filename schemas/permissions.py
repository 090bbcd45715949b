"""What each user of the broker may do, derived from the catalogue. Data only: deployment renders it.

A worker's user may append to its owners' stored subjects and record losses of the log, and append nothing else. It may
read the stream through consumers, write its heartbeats, keep its own snapshots and answer its own queries. Nobody may
publish under the public root: only the stream's republished messages appear there.

Five things cannot be expressed by the broker's permissions. For each, what holds instead:

- A wildcard matches whole tokens, so "consumers whose names start with mine" cannot be written. Instead, names of
  consumers have a random part, and no user may list names or receive advisories: so nobody can guess another user's
  consumer. Durable consumers have fixed names (:func:`durable_name`, and those of the reader), which are denied to all
  other users.
- Reply subjects are not checked. A hostile worker can make the broker copy a stored message to the log again through
  a pull request's reply subject, once the id has left the dedupe window. The copy keeps subject, headers, body and
  id: it repeats a fact, and can neither alter nor invent one.
- A user with the right to create a stream's consumers reads the whole stream: their filters are in a request's body. A
  *narrow* worker lacks that right, and asks a read service instead (:data:`READ_ROOT`). In a sealed stream people's
  words are encrypted, and can be read only with the right to the bucket of keys, too: every worker has it,
  the observer has not. The reader has a right to consumers of alerts alone.
- Who may store a session's key may replace it: a hostile gateway can put a false one in its place, and nobody can open
  the session's words then. Buckets refuse roll-ups, so it cannot remove all keys by one message.
- A consumer's configuration names the subject to which it delivers. The broker checks only that it is no subject of a
  stream. A hostile reader can have alerts, which are public facts, delivered to a subject of its choice.
"""

from collections.abc import Mapping, Sequence

import msgspec

from schemas.catalogue import CATALOGUE, owned_by, prefixes_of
from schemas.event import ROOT, topic_of
from schemas.subjects import NO_PARTITION, STORED_ROOT, stored_subject, topic_filter
from schemas.vocabulary.ledger import LossRecorded

STREAM = "NEURAXIS"
"""The stream that is the log, by default."""

MEMBERS_BUCKET = "NEURAXIS_members"
"""The key-value bucket of the workers' heartbeats."""

SNAPSHOTS_BUCKET = "NEURAXIS_snapshots"
"""The key-value bucket of the actors' snapshots."""

LOSS_SUBJECT = stored_subject(topic_of(LossRecorded), NO_PARTITION, NO_PARTITION)
"""The subject on which a loss of the log is recorded: by the ledger, or by a worker that finds it first. That worker
may go on only after the loss is recorded."""

QUERY_ROOT = f"{ROOT}.query"
"""Requests that read a state and change nothing: ``forged_id.query.<owner>.<name>``."""

EXCHANGE_QUERY = f"{QUERY_ROOT}.ledger.exchange"
"""The query for how an exchange ended. Its answer holds people's words in clear, even those encrypted in the stream."""

IMPORT_ROOT = "nx-import"
"""First token of the subjects that an import publishes recorded events on; only a stream that imports takes them."""

READ_ROOT = "nx-read"
"""First token of the subjects on which narrow workers ask for consumers and messages: ``nx-read.<owners>.<call>``."""
DURABLE_CALL = "DURABLE"
"""Token before a call that creates a durable consumer."""

READ_SERVERS: Mapping[str, tuple[str, ...]] = {
    "gateway": ("CONSUMER", "STREAM", "LOG"),
    "ledger": ("CONSUMER", "STREAM", "LOG", DURABLE_CALL),
}
"""Owners whose processes serve narrow workers' reads -> first tokens of the calls that they answer. A gateway creates
no durable consumers: strangers reach it, and whoever creates one again can change what it delivers to effectors."""

SPECIALIST_ROOT = "specialist"
"""First token of the subjects on which specialists, services outside, are asked: ``specialist.<name>``."""

INBOX_PUBLISHERS = frozenset({"llm", "responder"})
"""Owners that publish to the inbox that an input names in ``reply_to``.

The responder's shell sends a copy of the answer there, and llm the text in parts while a model speaks.
"""

SPECIALIST_CALLERS = frozenset({"delegate"})
"""Owners that ask specialists."""

QUERY_CALLERS = frozenset({"gateway"})
"""Owners whose shell sends queries to other owners."""

KEY_CREATORS = frozenset({"gateway", "operator"})
"""Owners whose events come in from outside. They create the keys that a session's words are encrypted with."""

KEY_DESTROYERS = frozenset({"operator"})
"""Owners that may destroy such keys, so that the words become unreadable."""

SNAPSHOT_READERS = frozenset({"ledger", "operator"})
"""Owners that read all snapshots: the ledger searches them for lost messages, the operator for words to forget."""

OWN_RIGHTS = "$SYS.REQ.USER.INFO"
"""The subject on which a server tells a login who it is and what it may do."""

ORDERED_QUEUES: Mapping[str, tuple[str, ...]] = {"webhook": tuple(map(str, range(1, 9)))}
"""Owner of an effector -> the names of its ordered queues; each queue has a durable consumer of its own."""

ALERT_CONSUMERS = ("alerts",)
"""Names of the durable consumers that the reader may have by default."""

_ALERTS = "log.*.*.alert.>"
"""The filter of alerts among the stored subjects."""

_QUERIES = (f"{QUERY_ROOT}.>",)
"""Queries, which listeners may not receive, though they may all else below the public root: a listener in the queue
group of those who answer would be given a share of the queries, and whoever asks would wait in vain."""

_SERVICE_ROOT = "$SRV"
"""First token of the subjects on which NATS micro services are discovered."""

_ACK_ROOTS = ("$JS.ACK", "$JS.ACK.*.*")  # the second form names domain and account


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects a user may publish to and subscribe to. A subject that is not allowed, or is also denied, is denied.

    ``allow_responses``: the user may answer the requests it receives, on the inbox that each names.
    """

    publish_allow: tuple[str, ...] = ()
    publish_deny: tuple[str, ...] = ()
    subscribe_allow: tuple[str, ...] = ()
    subscribe_deny: tuple[str, ...] = ()
    allow_responses: bool = False


class BrokerUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user of the broker: the owners whose events it may append (none for a reader), and its permissions."""

    name: str
    owners: tuple[str, ...] = ()
    permissions: Permissions

    @property
    def inbox_prefix(self) -> str:
        """The only prefix under which the user may subscribe to answers; its client must be given it."""
        return inbox_prefix(self.name)


def inbox_prefix(user: str) -> str:
    """Return the inbox prefix of a user. It has two tokens, so that ``_INBOX.>`` matches the inboxes of all users."""
    return f"_INBOX.{user}"


def keys_bucket(stream: str) -> str:
    """Return the bucket of the keys that people's words in a stream are sealed (encrypted) with."""
    return f"{stream}_keys"


def read_root(owner_names: Sequence[str]) -> str:
    """Return the subject below which a narrow worker that runs these owners asks for consumers and messages."""
    return f"{READ_ROOT}.{'-'.join(sorted(owner_names))}"


def read_owners(token: str) -> tuple[str, ...]:
    """Return the owners that the second token of a read request names; raises ValueError for one that is unknown."""
    named = tuple(token.split("-"))
    if unknown := [owner for owner in named if not owned_by(owner)]:
        raise ValueError(f"{', '.join(unknown)}: no such owner")
    return named


def served_reads(owner_names: Sequence[str]) -> tuple[str, ...]:
    """Return the subjects of the read requests that processes of these owners answer; none for most."""
    calls = READ_SERVERS.get(owner_names[0], ()) if len(owner_names) == 1 else ()
    return tuple(f"{READ_ROOT}.*.{call}.>" for call in calls)


def durable_name(owner: str, queue: str = "") -> str:
    """Return the name of a durable consumer that an effector's workers share: the effector's, or one of its queues'."""
    return f"nx-{owner}-{queue}" if queue else f"nx-{owner}"


def durable_names(owner: str) -> tuple[str, ...]:
    """Return the names of all durable consumers that an owner's workers may share."""
    return tuple(durable_name(owner, queue) for queue in ("", *ORDERED_QUEUES.get(owner, ())))


def owners() -> tuple[str, ...]:
    """Return every owner of the catalogue, sorted."""
    return tuple(sorted({entry.owner for entry in CATALOGUE.values()}))


def stored_filters(owner: str) -> tuple[str, ...]:
    """Return the filters over the stored subjects that ``owner`` alone may append to."""
    deep = [topic_filter(f"{ROOT}.{prefix}.>") for prefix in prefixes_of(owner) if _has_subtopics(owner, prefix)]
    bare = [topic_filter(entry.topic) for entry in owned_by(owner) if entry.topic == f"{ROOT}.{entry.prefix}"]
    return (*deep, *bare)


def worker_user(
    name: str,
    owner_names: Sequence[str],
    stream: str = STREAM,
    *,
    narrow: bool = False,
    alert_consumers: Sequence[str] = ALERT_CONSUMERS,
) -> BrokerUser:
    """Return the user of the processes that run ``owner_names``.

    A ``narrow`` one creates no consumers of the stream: it asks for them, and gets what its owners consume. None may
    touch ``alert_consumers``: to pull from the reader's, or delete one, takes alerts away from people.

    Raises:
        ValueError: the catalogue lacks an owner.
    """
    if unknown := [owner for owner in owner_names if not owned_by(owner)]:
        raise ValueError(f"{', '.join(unknown)}: no such owner; the catalogue has {', '.join(owners())}")
    others = [owner for owner in owners() if owner not in owner_names]
    sends_queries = any(owner in QUERY_CALLERS for owner in owner_names)
    publish = [OWN_RIGHTS, *(filter for owner in owner_names for filter in stored_filters(owner))]
    publish += (f"{read_root(owner_names)}.>", *_consumer_use(stream)) if narrow else _stream_reading(stream)
    publish += _bucket_access(owner_names)
    publish += _key_access(owner_names, stream)
    own = [name for owner in owner_names for name in durable_names(owner)]
    publish += [f"{root}.{stream}.{name}.>" for name in own for root in _ACK_ROOTS]
    if not KEY_CREATORS.issuperset(owner_names):
        publish.append(LOSS_SUBJECT)
    if sends_queries:
        publish += [f"{QUERY_ROOT}.>", f"{_SERVICE_ROOT}.>"]
    if any(owner in SPECIALIST_CALLERS for owner in owner_names):
        publish += [f"{SPECIALIST_ROOT}.>", f"{_SERVICE_ROOT}.INFO.*"]
    if any(owner in INBOX_PUBLISHERS for owner in owner_names):
        publish.append("_INBOX.>")
    return BrokerUser(
        name=name,
        owners=tuple(owner_names),
        permissions=Permissions(
            publish_allow=tuple(publish),
            publish_deny=(
                *_public_subjects(sends_queries),
                *_foreign_durables(others, stream, created=_creates_durables(owner_names)),
                *_every_use(alert_consumers, stream),
            ),
            subscribe_allow=(
                f"{inbox_prefix(name)}.>",
                f"{_SERVICE_ROOT}.>",
                f"$KV.{keys_bucket(stream)}.>",
                *(f"{QUERY_ROOT}.{owner}.>" for owner in owner_names),
                *((f"{ROOT}.>",) if sends_queries else ()),
                *served_reads(owner_names),
            ),
            allow_responses=True,
        ),
    )


def observer_user(name: str = "observer") -> BrokerUser:
    """Return a user that may read public events and alerts and send queries, and may do nothing else.

    It may not ask how an exchange ended: the answer holds people's words, even those that are sealed in the stream.
    """
    return BrokerUser(
        name=name,
        permissions=Permissions(
            publish_allow=(OWN_RIGHTS, f"{QUERY_ROOT}.>", f"{_SERVICE_ROOT}.>"),
            publish_deny=(*_public_subjects(sends_queries=True), EXCHANGE_QUERY),
            subscribe_allow=(f"{ROOT}.>", f"{inbox_prefix(name)}.>"),
            subscribe_deny=_QUERIES,
        ),
    )


def specialist_user(name: str = "specialist") -> BrokerUser:
    """Return the user of specialists: they may be discovered, receive requests and answer them."""
    return BrokerUser(
        name=name,
        permissions=Permissions(
            publish_allow=(OWN_RIGHTS,),
            subscribe_allow=(f"{SPECIALIST_ROOT}.>", f"{_SERVICE_ROOT}.>", f"{inbox_prefix(name)}.>"),
            allow_responses=True,
        ),
    )


def reader_user(name: str = "reader", stream: str = STREAM, consumers: Sequence[str] = ALERT_CONSUMERS) -> BrokerUser:
    """Return a user that may listen to public events, and that misses no alert, since alerts have durable consumers.

    It may create, inspect, read, acknowledge and delete the consumers named in ``consumers``, and no others. The
    subject of a request that creates a consumer contains the consumer's filter, and the server compares it with the
    request's body: so these consumers receive alerts alone. The user may also ask for the stream's information, as most
    clients do first.
    """
    own = [subject for consumer in consumers for subject in _alert_consumer(consumer, stream)]
    return BrokerUser(
        name=name,
        permissions=Permissions(
            publish_allow=(OWN_RIGHTS, f"$JS.API.STREAM.INFO.{stream}", *own),
            publish_deny=(f"{STORED_ROOT}.>", f"{ROOT}.>"),
            subscribe_allow=(f"{ROOT}.>", f"{inbox_prefix(name)}.>"),
            subscribe_deny=_QUERIES,
        ),
    )


def admin_user(name: str = "admin", stream: str = STREAM) -> BrokerUser:
    """Return the user that makes and checks streams and buckets at deployment, and imports a log into an empty one.

    It, too, cannot append an event to a stream in use. It may store keys: those of a backup's sealed sessions.
    """
    keys = f"$KV.{keys_bucket(stream)}.>"
    return BrokerUser(
        name=name,
        permissions=Permissions(
            publish_allow=(OWN_RIGHTS, "$JS.API.>", f"{IMPORT_ROOT}.>", keys, f"{QUERY_ROOT}.>", f"{_SERVICE_ROOT}.>"),
            publish_deny=(f"{STORED_ROOT}.>", *_public_subjects(sends_queries=True)),
            subscribe_allow=(f"{ROOT}.>", f"{inbox_prefix(name)}.>", "$JS.EVENT.ADVISORY.>", "$KV.>"),
        ),
    )


def _has_subtopics(owner: str, prefix: str) -> bool:
    return any(entry.prefix == prefix and entry.topic != f"{ROOT}.{prefix}" for entry in owned_by(owner))


def _public_subjects(sends_queries: bool) -> tuple[str, ...]:
    """Return the subjects that no user may publish on: those of public events."""
    if not sends_queries:
        return (f"{ROOT}.>",)
    # Query subjects have the same root, so the events' prefixes are denied one by one.
    prefixes = dict.fromkeys(entry.prefix for entry in CATALOGUE.values())
    return tuple(subject for prefix in prefixes for subject in (f"{ROOT}.{prefix}", f"{ROOT}.{prefix}.>"))


def _stream_reading(stream: str) -> tuple[str, ...]:
    return (
        *_consumer_use(stream),
        f"$JS.API.STREAM.MSG.GET.{stream}",
        f"$JS.API.DIRECT.GET.{stream}",
        f"$JS.API.DIRECT.GET.{stream}.>",
        f"$JS.API.CONSUMER.CREATE.{stream}.>",
    )


def _consumer_use(stream: str) -> tuple[str, ...]:
    return (
        "$JS.API.INFO",
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.CONSUMER.INFO.{stream}.*",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.*",
        f"$JS.API.CONSUMER.DELETE.{stream}.*",
    )


def _alert_consumer(name: str, stream: str) -> tuple[str, ...]:
    return (
        f"$JS.API.CONSUMER.CREATE.{stream}.{name}.{_ALERTS}",
        *(f"$JS.API.CONSUMER.{call}.{stream}.{name}" for call in ("INFO", "MSG.NEXT", "DELETE")),
        *(f"{root}.{stream}.{name}.>" for root in _ACK_ROOTS),
    )


def _creates_durables(owner_names: Sequence[str]) -> bool:
    return f"{READ_ROOT}.*.{DURABLE_CALL}.>" in served_reads(owner_names)


def _foreign_durables(others: Sequence[str], stream: str, *, created: bool = False) -> tuple[str, ...]:
    """Return what a user is denied of others' durable consumers: every use, but creation if it makes them."""
    names = [name for other in others for name in durable_names(other)]
    if not created:
        return _every_use(names, stream)
    calls = ("INFO", "DELETE", "MSG.NEXT")
    return tuple(f"$JS.API.CONSUMER.{call}.{stream}.{name}" for name in names for call in calls)


def _every_use(names: Sequence[str], stream: str) -> tuple[str, ...]:
    """Return the subjects by which durable consumers are made, asked about, read and deleted."""
    return tuple(
        subject
        for name in names
        for subject in (
            f"$JS.API.CONSUMER.*.{stream}.{name}",
            f"$JS.API.CONSUMER.*.{stream}.{name}.>",
            f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}",
        )
    )


def _bucket_access(owner_names: Sequence[str]) -> tuple[str, ...]:
    # A false heartbeat or a lost snapshot costs only work. A false snapshot would make decisions wrong, and a snapshot
    # holds what its actor has read. So each owner may write its own snapshots alone, and read those alone unless it is
    # one of SNAPSHOT_READERS.
    erasing = f"$JS.API.STREAM.MSG.DELETE.KV_{SNAPSHOTS_BUCKET}"
    getting = f"$JS.API.DIRECT.GET.KV_{SNAPSHOTS_BUCKET}.$KV.{SNAPSHOTS_BUCKET}"
    whose = ("",) if SNAPSHOT_READERS.intersection(owner_names) else tuple(f"{owner}." for owner in owner_names)
    return (
        *_bucket_info(),
        f"$KV.{MEMBERS_BUCKET}.>",
        erasing,
        *(f"{getting}.{owner}>" for owner in whose),
        *(f"$KV.{SNAPSHOTS_BUCKET}.{owner}.>" for owner in owner_names),
    )


def _key_access(owner_names: Sequence[str], stream: str) -> tuple[str, ...]:
    bucket = keys_bucket(stream)
    allowed = [f"$JS.API.{call}.KV_{bucket}" for call in ("STREAM.INFO", "STREAM.MSG.GET", "DIRECT.GET")]
    if KEY_CREATORS.intersection(owner_names):
        allowed.append(f"$KV.{bucket}.>")
    if KEY_DESTROYERS.intersection(owner_names):
        allowed.append(f"$JS.API.STREAM.MSG.DELETE.KV_{bucket}")
    return tuple(allowed)


def _bucket_info() -> tuple[str, ...]:
    """Return the subjects of reading heartbeats, and of checking that the buckets exist."""
    return (
        f"$JS.API.STREAM.INFO.KV_{MEMBERS_BUCKET}",
        f"$JS.API.DIRECT.GET.KV_{MEMBERS_BUCKET}",
        f"$JS.API.DIRECT.GET.KV_{MEMBERS_BUCKET}.>",
        f"$JS.API.STREAM.INFO.KV_{SNAPSHOTS_BUCKET}",
    )
