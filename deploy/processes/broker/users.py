"""The broker's users: their names, their secrets, and what each may do.

Secrets of the embedded broker are random, made once, and kept in the data folder: a file for each user that only its
owner can read, in the NATS CLI's context format, so that ``nats`` and ``neuraxis --context`` can use it.
"""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from events.files.whole_files import PRIVATE, replace_file
from schemas.permissions import (
    ALERT_CONSUMERS,
    BrokerUser,
    Permissions,
    admin_user,
    inbox_prefix,
    observer_user,
    owners,
    reader_user,
    specialist_user,
    worker_user,
)

OPERATOR = "operator"
"""The person at the command line, who sends inputs and orders, reads the log and asks queries."""

ADMIN = "admin"
"""Makes and checks streams and buckets."""

DECIDERS = "deciders"
"""The worker processes that run actors."""

EFFECTORS = "effectors"
"""The worker process that runs effectors: the only one that speaks to the world outside."""

SPECIALIST = "specialist"
"""Specialists: services outside that answer requests of the ``delegate`` effector."""

LEDGER = "ledger"
"""The ledger's process."""

GATEWAY = "gateway"
"""The gateway's process, which appends what comes in over HTTP, and reads."""

OBSERVER = "observer"
"""Listens to public events and alerts, and does nothing else."""

READER = "reader"
"""Listens as the observer does, and has durable consumers of alerts."""

SYSTEM = "system"
"""A user of the broker's system account, who asks the server about itself."""

# Every event has an owner, the one part of the system that may append it. These owners run in no group of actors.
_CLIENT_OWNERS = ("gateway", "operator")
_LEDGER_OWNERS = ("ledger",)
_EFFECTOR_OWNERS = ("delegate", "llm", "webhook")

_READING_ALL = (OPERATOR, LEDGER, GATEWAY)
"""Users that read the whole stream although they do not run all actors."""


class Login(msgspec.Struct, frozen=True):
    """A user's secret; never shown in a repr or a log."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login(user={self.user!r})"


Logins = Mapping[str, Login]
"""User name -> login."""


class Context(msgspec.Struct, omit_defaults=True):
    """The fields of a NATS CLI context that neuraxis uses: an address, and a login or the files of one."""

    description: str = ""
    url: str = ""
    user: str = ""
    password: str = ""
    creds: str = ""
    nkey: str = ""
    ca: str = ""
    inbox_prefix: str = ""

    def __repr__(self) -> str:
        return f"Context(user={self.user!r})"


ROLES = (OPERATOR, ADMIN, LEDGER, GATEWAY, OBSERVER, READER, SPECIALIST)
"""The users of every broker, whatever processes run the actors."""


def workers_of_actors() -> dict[str, tuple[str, ...]]:
    """Return the worker users of an embedded broker, each with the owners that its processes run."""
    actors = tuple(owner for owner in owners() if owner not in (*_CLIENT_OWNERS, *_LEDGER_OWNERS, *_EFFECTOR_OWNERS))
    return {DECIDERS: actors, EFFECTORS: _EFFECTOR_OWNERS}


def broker_users(
    stream: str,
    alert_consumers: Sequence[str] = ALERT_CONSUMERS,
    workers: Mapping[str, Sequence[str]] | None = None,
) -> tuple[BrokerUser, ...]:
    """Return the users of a broker that holds the log in ``stream``, with permissions from the catalogue.

    Args:
        stream: The stream that holds the log.
        alert_consumers: The durable consumers of alerts that the reader may have.
        workers: User -> the owners that its processes run; None for those of an embedded broker. They read what their
            owners consume, and nothing else. A user that runs all actors reads the whole stream: its actors consume
            nearly everything.
    """
    groups = workers_of_actors() if workers is None else workers
    actors = set(workers_of_actors()[DECIDERS])

    def worker(name: str, runs: Sequence[str]) -> BrokerUser:
        narrow = name not in _READING_ALL and not actors.issubset(runs)
        return worker_user(name, tuple(runs), stream, narrow=narrow, alert_consumers=alert_consumers)

    return (
        _with_consumer_lists(worker(OPERATOR, _CLIENT_OWNERS)),
        admin_user(ADMIN, stream),
        *(worker(name, owner_names) for name, owner_names in groups.items()),
        worker(LEDGER, _LEDGER_OWNERS),
        worker(GATEWAY, ("gateway",)),
        observer_user(OBSERVER),
        reader_user(READER, stream, alert_consumers),
        specialist_user(SPECIALIST),
    )


def _with_consumer_lists(user: BrokerUser) -> BrokerUser:
    # A person may list consumers and see how far behind they are. Workers may not: who knows a consumer's name can use
    # it.
    allowed = (*user.permissions.publish_allow, "$JS.API.CONSUMER.LIST.*", "$JS.API.STREAM.INFO.*")
    return msgspec.structs.replace(user, permissions=msgspec.structs.replace(user.permissions, publish_allow=allowed))


def load_logins(folder: Path, users: Sequence[str]) -> dict[str, Login]:
    """Read the users' logins from their context files in ``folder``; make passwords for those without one."""
    logins = {}
    for user in users:
        path = context_file(folder, user)
        try:
            context = msgspec.json.decode(path.read_bytes(), type=Context)
        except (FileNotFoundError, msgspec.DecodeError):
            context = Context()
        logins[user] = Login(user, context.password or secrets.token_urlsafe(32))
    return logins


def write_contexts(folder: Path, logins: Logins, url: str) -> None:
    """Write every user's context file for a broker at ``url``, readable by the owner alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for login in logins.values():
        context = Context(
            description=f"embedded broker of neuraxis, user {login.user}",
            url=url,
            user=login.user,
            password=login.password,
            inbox_prefix=inbox_of(login.user),
        )
        write_context(context_file(folder, login.user), context)


def write_context(path: Path, context: Context) -> None:
    """Write a context file that its owner alone can read."""
    write_private(path, msgspec.json.format(msgspec.json.encode(context)) + b"\n")


def context_file(folder: Path, user: str) -> Path:
    """Return the path of a user's context file."""
    return folder / f"{user}.json"


def inbox_of(user: str) -> str:
    """Return the inbox prefix that a user's client must use; the system user may use any, and gets the default one."""
    return "_INBOX" if user == SYSTEM else inbox_prefix(user)


def accounts(users: Sequence[BrokerUser], logins: Logins) -> dict[str, Any]:
    """Return the ``accounts`` block of a server's configuration."""
    listed = [
        {
            "user": user.name,
            "password": logins[user.name].password,
            "permissions": rendered_permissions(user.permissions),
        }
        for user in users
    ]
    system = [{"user": SYSTEM, "password": logins[SYSTEM].password}]
    return {"NEURAXIS": {"jetstream": "enabled", "users": listed}, "SYS": {"users": system}}


def rendered_permissions(permissions: Permissions) -> dict[str, Any]:
    """Return permissions as a server's configuration writes them."""
    rendered: dict[str, Any] = {
        "publish": {"allow": permissions.publish_allow, "deny": permissions.publish_deny},
        "subscribe": {"allow": permissions.subscribe_allow, "deny": permissions.subscribe_deny},
    }
    if permissions.allow_responses:
        rendered["allow_responses"] = True
    return rendered


def write_private(path: Path, content: bytes) -> None:
    """Replace a file as a whole; only its owner can read and write it. Raises OSError, which names the file."""
    replace_file(path, content, PRIVATE)
