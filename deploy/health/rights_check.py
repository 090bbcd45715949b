"""The doctor's check that each broker login has, at the running server, the catalogue's permissions and no others.

The catalogue lists every event with its owner, the one part of the system that may append it, and with its
readers; what a login may publish and read follows from it.
"""

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
_MOST_SHOWN = 3


def expected_users(stream: str, alert_consumers: Sequence[str], folder: Path | None) -> dict[str, BrokerUser]:
    """Return the logins of the deployment in ``folder``; without one, those that the catalogue of events leads to.

    Files of logins that a deployment had once may still lie in its folder: they do not count, whatever their names.
    """
    workers: dict[str, Sequence[str]] = {**one_login_each(), **workers_of_actors()}
    if folder is not None:
        try:
            rows = json.loads((folder.parent / PERMISSIONS).read_bytes())
            workers = {row["login"]: row["owners"] for row in rows if row["owners"]}
        except (OSError, ValueError, TypeError, KeyError):
            pass  # the folder was copied without that file: logins with unknown names are skipped
    roles = {user.name for user in broker_users(stream, alert_consumers, {})}
    known = {name: tuple(each) for name, each in workers.items() if name not in roles and set(each) <= set(owners())}
    return {user.name: user for user in broker_users(stream, alert_consumers, known)}


async def examine_rights(logins: Mapping[str, Access], users: Mapping[str, BrokerUser]) -> Finding:
    """Ask the server, as each login, what it may do, and compare that with the catalogue."""
    lacking, excess, unknown, good = [], [], [], 0
    for name, access in logins.items():
        user = users.get(name)
        if user is None:
            unknown.append(name)
            continue
        try:
            async with await Connection.open(access) as connection:
                rights = await ask_rights(connection)
        except LogError as wrong:
            lacking.append(f"{name} does not get in ({wrong})")
            continue
        if rights is None:
            unknown.append(name)
            continue
        missing, extra = differences(rights.permissions, user)
        lacking += [f"{name} lacks {_shortened(missing)}"] if missing else []
        excess += [f"{name} has {_shortened(extra)} besides"] if extra else []
        good += not missing and not extra
    return judge_rights(lacking, excess, unknown, good)


def judge_rights(lacking: Sequence[str], excess: Sequence[str], unknown: Sequence[str], good: int) -> Finding:
    """Judge the logins by texts on those that lack rights or have extra ones, unknown names, and how many are good."""
    if lacking:
        return Finding(_CHECK, Verdict.FAIL, "; ".join((*lacking, *excess)), _REMEDY)
    if excess:
        return Finding(_CHECK, Verdict.WARN, "; ".join(excess), _REMEDY)
    if not good:
        return Finding(
            _CHECK, Verdict.SKIP, "nothing tells which login this is: name the folder of all logins with --context"
        )
    skipped = f"; {', '.join(unknown)} not looked at" if unknown else ""
    has = "has" if good == 1 else "have"
    return Finding(_CHECK, Verdict.OK, f"{counted(good, 'login')} {has} the catalogue's rights and no others{skipped}")


def differences(rights: LoginRights, user: BrokerUser) -> tuple[list[str], list[str]]:
    """Return the catalogue's permissions that a login is missing, and those that it has in addition."""
    expected, missing, extra = user.permissions, list[str](), list[str]()
    for kind, found, allow, deny in (
        ("publish", rights.publish, expected.publish_allow, expected.publish_deny),
        ("subscribe", rights.subscribe, expected.subscribe_allow, expected.subscribe_deny),
    ):
        allowed = found.allow or (">",)
        missing += [f"{kind} {subject}" for subject in allow if not _is_covered(subject, allowed)]
        extra += [f"{kind} {subject}" for subject in allowed if not _is_covered(subject, allow)]
        extra += [
            f"{kind} {subject}"
            for subject in deny
            if not _is_covered(subject, found.deny) and any(overlap(subject, pattern) for pattern in allowed)
        ]
        missing += [
            f"{kind} {subject}"
            for subject in found.deny
            if not _is_covered(subject, deny) and any(overlap(subject, pattern) for pattern in allow)
        ]
    if expected.allow_responses and not rights.responds:
        missing.append("answering requests")
    return missing, extra


def _is_covered(subject: str, patterns: Sequence[str]) -> bool:
    return any(covers(pattern, subject) for pattern in patterns)


def _shortened(items: Sequence[str]) -> str:
    left = len(items) - _MOST_SHOWN
    return ", ".join(items[:_MOST_SHOWN]) + (f" and {left} more" if left > 0 else "")


def login_name(access: Access) -> str:
    """Return the name of a login, which its inbox prefix begins with; empty if that is not one of ours."""
    return access.inbox_prefix.partition("_INBOX.")[2]


def logins_in(folder: Path) -> list[str]:
    """Return the names of the logins in a folder of NATS contexts."""
    names = []
    for file in sorted(folder.glob("*.json")):
        try:
            if msgspec.json.decode(file.read_bytes(), type=dict[str, object]).get("inbox_prefix"):
                names.append(file.stem)
        except (OSError, msgspec.DecodeError):
            continue
    return names
