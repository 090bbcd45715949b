"""Writing the files of a deployment's broker: a folder for each server, one of logins, and the common settings.

Secrets that exist are kept: after an upgrade, the files can be written again and all logins stay valid.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from deploy.deploying.broker_plan import BrokerPlan
from deploy.deploying.development_ca import DevelopmentCa
from deploy.deploying.nats_files import CONFIGURATION, USERS, server_text, users_text
from deploy.deploying.nkey_files import nkey_in, password_in
from deploy.deploying.permissions_document import permissions_rows
from deploy.deploying.shared_settings import settings_to_write
from deploy.processes.broker.users import SYSTEM, Context, inbox_of, write_context, write_private
from events.files.private_files import make_private_folder

LOGINS = "logins"
PERMISSIONS = "permissions.json"
SETTINGS = "neuraxis.toml"
_CA = "ca.pem"


class Written(msgspec.Struct, frozen=True):
    """A file or folder that was written, and what it is for."""

    file: str
    what: str


def write_broker(
    plan: BrokerPlan, out: Path, *, passwords: bool = False, ca: bytes = b"", development: bool = False
) -> list[Written]:
    """Write everything below ``out``; return a list of what is there.

    Args:
        plan: What the files are made from.
        out: The folder; made if need be.
        passwords: Whether logins have passwords instead of nkeys.
        ca: CA certificates that clients and servers trust, as PEM; empty: those of the system.
        development: Whether to make the servers' certificates, too, by a development authority that alone is trusted.

    Raises:
        BadSecret: a file that should hold a secret holds something else.
        SettingsDiffer: the file of settings holds those of the processes, too, and contradicts the plan.
        OSError: a file cannot be written.
    """
    settings = settings_to_write(plan, out / SETTINGS)
    logins = out / LOGINS
    make_private_folder(logins)
    authority = DevelopmentCa() if development else None
    trusted = authority.pem if authority is not None else ca
    secrets = {name: _secret(logins, name, passwords) for name in (*(user.name for user in plan.users), SYSTEM)}
    route_password = password_in(out / "route.password") if len(plan.nodes) > 1 else ""
    for node in plan.nodes:
        folder = out / f"broker-{node.number}"
        make_private_folder(folder)
        write_private(folder / CONFIGURATION, server_text(plan, node, route_password).encode())
        write_private(folder / USERS, users_text(plan, secrets).encode())
        if plan.tls:
            make_private_folder(folder / "tls")
        if trusted:
            write_private(folder / "tls" / _CA, trusted)
        if authority is not None:
            certificate = authority.sign(node.host)
            write_private(folder / "tls" / "server.pem", certificate.pem)
            write_private(folder / "tls" / "server-key.pem", certificate.key)
    if trusted:
        write_private(logins / _CA, trusted)
    for name, secret in secrets.items():
        write_context(logins / f"{name}.json", _context(plan, name, secret, bool(trusted)))
    rows = permissions_rows(plan.users, plan.stream)
    write_private(out / PERMISSIONS, msgspec.json.format(msgspec.json.encode(rows)) + b"\n")
    if settings is not None:
        write_private(out / SETTINGS, settings)
    own_certificates = plan.tls and not development
    return _summary(plan, out, passwords, own_certificates=own_certificates, keeps_settings=settings is None)


def _secret(logins: Path, name: str, passwords: bool) -> Mapping[str, str]:
    if passwords:
        return {"password": password_in(logins / f"{name}.password")}
    return {"nkey": nkey_in(logins / f"{name}.nk")}


def _context(plan: BrokerPlan, name: str, secret: Mapping[str, str], ca: bool) -> Context:
    with_password = "password" in secret
    return Context(
        description=f"broker of neuraxis, login {name}",
        url=plan.url,
        user=name if with_password else "",
        password=secret.get("password", ""),
        nkey="" if with_password else f"{name}.nk",
        ca=_CA if ca else "",
        inbox_prefix=inbox_of(name),
    )


def _summary(
    plan: BrokerPlan, out: Path, passwords: bool, own_certificates: bool, keeps_settings: bool
) -> list[Written]:
    found = []
    for node in plan.nodes:
        copy_it = f"server {node.number}: copy it to {plan.folder} on {node.host}"
        what = f"{copy_it}, run nats-server -c {CONFIGURATION} there"
        if own_certificates:
            what += ", with its certificate tls/server.pem and key tls/server-key.pem"
        found.append(Written(str(out / f"broker-{node.number}"), what))
    kind = "password" if passwords else "nkey seed"
    return [
        *found,
        Written(
            str(out / LOGINS), f"{len(plan.users) + 1} logins, a context and its {kind} each: give a process its own"
        ),
        Written(str(out / SETTINGS), f"settings for every process{', kept as they are' if keeps_settings else ''}"),
        Written(str(out / PERMISSIONS), "what each login may do"),
    ]
