"""The text of a nats-server's configuration files. Pure functions."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from deploy.deploying.broker_plan import BrokerPlan, Node
from deploy.processes.broker.configuration import MAX_PAYLOAD, MEMORY_BYTES, NEVER
from deploy.processes.broker.users import SYSTEM, rendered_permissions

CONFIGURATION = "nats-server.conf"
USERS = "users.conf"
_ROUTES_USER = "routes"


def server_text(plan: BrokerPlan, node: Node, route_password: str) -> str:
    """Return a server's configuration; the servers of a cluster log in to each other with ``route_password``."""
    title = f"server {node.number} of {len(plan.nodes)}" if len(plan.nodes) > 1 else "the only server"
    parts = [
        f"# {title}, written by `neuraxis deploy nats-conf`: write it anew after an upgrade, by the same command",
        f"server_name: {_quoted(f'neuraxis-{node.number}')}",
        f"listen: {_quoted(f'{node.listen_host}:{node.port}')}",
        f"http: {_quoted(f'127.0.0.1:{node.monitor_port}')}  # GET /healthz",
        f"max_payload: {MAX_PAYLOAD}",
        "",
        "jetstream {",
        f"  store_dir: {_quoted(str(plan.store))}",
        f"  sync_interval: {NEVER if plan.sync == 'never' else plan.sync}",
        f"  max_memory_store: {MEMORY_BYTES}",
        f"  max_file_store: {plan.max_store}",
        "}",
        "",
    ]
    if plan.tls:
        parts += [*_tls(plan, verify=False, indent=""), ""]
    if len(plan.nodes) > 1:
        parts += [*_cluster(plan, node, route_password), ""]
    return "\n".join([*parts, f"include {_quoted('./' + USERS)}", ""])


def _cluster(plan: BrokerPlan, node: Node, password: str) -> list[str]:
    others = [each for each in plan.nodes if each is not node]
    login = f"{_ROUTES_USER}:{password}"
    return [
        "cluster {",
        "  name: neuraxis",
        f"  listen: {_quoted(f'{node.listen_host}:{node.routes_port}')}",
        "  no_advertise: true  # clients are given all servers, by the names that their certificates have",
        f"  authorization {{ user: {_quoted(_ROUTES_USER)}, password: {_quoted(password)}, timeout: 5 }}",
        "  routes: [",
        *(f"    {_quoted(f'nats-route://{login}@{other.host}:{other.routes_port}')}" for other in others),
        "  ]",
        *(_tls(plan, verify=True, indent="  ") if plan.tls else ()),
        "}",
    ]


def _tls(plan: BrokerPlan, *, verify: bool, indent: str) -> list[str]:
    folder = plan.folder / "tls"
    ca = [f"{indent}  ca_file: {_quoted(str(folder / 'ca.pem'))}"] if plan.tls_ca else []
    return [
        f"{indent}tls {{",
        f"{indent}  cert_file: {_quoted(str(folder / 'server.pem'))}",
        f"{indent}  key_file: {_quoted(str(folder / 'server-key.pem'))}",
        *ca,
        *([f"{indent}  verify: true"] if verify else []),
        f"{indent}  timeout: 5",
        f"{indent}}}",
    ]


def users_text(plan: BrokerPlan, secrets: Mapping[str, Mapping[str, str]]) -> str:
    """Return the accounts with their logins, the same for every server.

    ``secrets`` has for each login, the system account's too, what a server checks: ``nkey``, a public key, or
    ``password``.
    """
    listed: list[dict[str, Any]] = [
        {**_login(user.name, secrets), "permissions": rendered_permissions(user.permissions)} for user in plan.users
    ]
    document = {
        "accounts": {
            "NEURAXIS": {"jetstream": "enabled", "users": listed},
            "SYS": {"users": [_login(SYSTEM, secrets)]},
        },
        "system_account": "SYS",
    }
    text = msgspec.json.format(msgspec.json.encode(document)).decode()
    # The file is included in a block, so it has no braces of its own.
    return text.strip()[1:-1].strip("\n") + "\n"


def _login(name: str, secrets: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    secret = secrets[name]
    return dict(secret) if "nkey" in secret else {"user": name, **secret}


def _quoted(text: str) -> str:
    return json.dumps(text)
