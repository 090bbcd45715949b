"""Whether each login has the rights that the catalogue gives it at a running server, and no others."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.deploying.logins import one_login_each
from deploy.deploying.writing_broker import PERMISSIONS
from deploy.health.findings import Finding, Verdict
from deploy.processes.broker.users import broker_users, workers_of_actors
from events.errors import LogError
from events.jetstream import Access, Connection
from events.jetstream.rights import LoginRights, ask_rights, covers, overlap
from schemas.permissions import BrokerUser, owners

_CHECK = "rights"
_REMEDY = (
    "write the configuration anew (`neuraxis deploy nats-conf`, by the command it was written with), copy it to every "
    "server, and have each take it (`nats-server --signal reload`); of a broker that others run, give them "
    "`neuraxis deploy nats-conf --permissions`"
)
_SHOWN = 3


def expected_users(stream: str, alert_consumers: Sequence[str], folder: Path | None) -> dict[str, BrokerUser]:
    """Return the logins that the catalogue knows, and those of the deployment whose logins are in ``folder``."""
    workers: dict[str, Sequence[str]] = {**one_login_each(), **workers_of_actors()}
    if folder is not None:
        try:
            rows = json.loads((folder.parent / PERMISSIONS).read_bytes())
            workers |= {row["login"]: row["owners"] for row in rows if row["owners"]}
        except (OSError, ValueError, TypeError, KeyError):
            pass  # they were copied without it: logins of names that nobody knows are passed over
    roles = {user.name for user in broker_users(stream, alert_consumers, {})}
    known = {name: tuple(each) for name, each in workers.items() if name not in roles and set(each) <= set(owners())}
    return {user.name: user for user in broker_users(stream, alert_consumers, known)}


async def examine_rights(logins: Mapping[str, Access], users: Mapping[str, BrokerUser]) -> Finding:
    """Ask the server, as each login, what it may do, and compare that with the catalogue."""
    lacking, beyond, unknown, good = [], [], [], 0
    for name, access in logins.items():
        user = users.get(name)
        if user is None:
            unknown.append(name)
            continue
        try:
            connection = await Connection.open(access)
            try:
                who = await ask_rights(connection)
            finally:
                await connection.close()
        except LogError as wrong:
            lacking.append(f"{name} does not get in ({wrong})")
            continue
        if who is None:
            unknown.append(name)
            continue
        less, more = differences(who.permissions, user)
        lacking += [f"{name} lacks {_some(less)}"] if less else []
        beyond += [f"{name} has {_some(more)} besides"] if more else []
        good += not less and not more
    return judge_rights(lacking, beyond, unknown, good)


def judge_rights(lacking: Sequence[str], beyond: Sequence[str], unknown: Sequence[str], good: int) -> Finding:
    """Judge what was found of logins: what some lack, what some have besides, and how many are as they should be."""
    if lacking:
        return Finding(_CHECK, Verdict.FAIL, "; ".join((*lacking, *beyond)), _REMEDY)
    if beyond:
        return Finding(_CHECK, Verdict.WARN, "; ".join(beyond), _REMEDY)
    if not good:
        return Finding(
            _CHECK, Verdict.SKIP, "nothing tells which login this is: name the folder of all logins with --context"
        )
    passed = f"; {', '.join(unknown)} not looked at" if unknown else ""
    has = "has" if good == 1 else "have"
    return Finding(_CHECK, Verdict.OK, f"{counted(good, 'login')} {has} the catalogue's rights and no others{passed}")


def differences(rights: LoginRights, user: BrokerUser) -> tuple[list[str], list[str]]:
    """Return what a login lacks of what the catalogue gives it, and what it has besides."""
    may, less, more = user.permissions, list[str](), list[str]()
    for kind, theirs, allow, deny in (
        ("publish", rights.publish, may.publish_allow, may.publish_deny),
        ("subscribe", rights.subscribe, may.subscribe_allow, may.subscribe_deny),
    ):
        allowed = theirs.allow or (">",)
        less += [f"{kind} {subject}" for subject in allow if not _within(subject, allowed)]
        more += [f"{kind} {subject}" for subject in allowed if not _within(subject, allow)]
        more += [
            f"{kind} {subject}"
            for subject in deny
            if not _within(subject, theirs.deny) and any(overlap(subject, pattern) for pattern in allowed)
        ]
        less += [
            f"{kind} {subject}"
            for subject in theirs.deny
            if not _within(subject, deny) and any(overlap(subject, pattern) for pattern in allow)
        ]
    if may.allow_responses and not rights.responds:
        less.append("answering requests")
    return less, more


def _within(subject: str, patterns: Sequence[str]) -> bool:
    return any(covers(pattern, subject) for pattern in patterns)


def _some(items: Sequence[str]) -> str:
    left = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {left} more" if left > 0 else "")


def name_of(access: Access) -> str:
    """Return the name of a login by its inbox prefix; empty where that tells none."""
    return access.inbox_prefix.partition("_INBOX.")[2]


def logins_in(folder: Path) -> list[str]:
    """Return the names of the logins in a folder of contexts."""
    names = []
    for file in sorted(folder.glob("*.json")):
        try:
            if msgspec.json.decode(file.read_bytes(), type=dict[str, object]).get("inbox_prefix"):
                names.append(file.stem)
        except (OSError, msgspec.DecodeError):
            continue
    return names
