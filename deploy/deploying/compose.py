"""A deployment as a file for Docker Compose (or Podman's)."""

from collections.abc import Iterator
from typing import Any

import yaml

from deploy.deploying.plan import GRACE_S, IN_CONTAINER, START_S, Deployment, Process
from deploy.deploying.writing_files import HEADER, Files
from neuraxis_server.probe import HEALTH_FILE_VARIABLE

USER = "10001:10001"
"""The user of the image, who is nobody on the host."""

_LEDGER_VOLUME = "ledger"

_MERGE = "x-merge"
"""Stands for YAML's merge key ``<<``, which PyYAML does not write unquoted; it is replaced in the text."""


def compose_files(deployment: Deployment, image: str) -> Files:
    """Return ``compose.yaml`` and the files that it names, except the secrets."""
    document: dict[str, Any] = {
        "x-neuraxis": _shared(deployment, image),
        "services": {process.name: _service(process, deployment.port) for process in deployment.processes},
        "networks": {"default": {}},
        "secrets": {_secret_id(secret.source): {"file": f"./{secret.source}"} for secret in deployment.secrets},
    }
    if any(process.is_ledger for process in deployment.processes):
        document["volumes"] = {_LEDGER_VOLUME: {}}
    body = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=110)
    for process in deployment.processes:
        body = body.replace(f"  {process.name}:\n    {_MERGE}: true\n", f"  {process.name}:\n    <<: *neuraxis\n")
    body = body.replace("x-neuraxis:\n", "x-neuraxis: &neuraxis\n")
    return {
        "compose.yaml": "".join(_head(deployment)).encode() + body.encode(),
        "neuraxis.toml": deployment.configuration,
    }


class _Dumper(yaml.SafeDumper):
    """Writes no anchors with made-up names: the file's one anchor, ``neuraxis``, is put in afterwards."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _head(deployment: Deployment) -> Iterator[str]:
    yield f"# {HEADER.format(command='compose', version=deployment.version)}\n"
    yield "# `docker compose up --detach`, once these files are here, readable by user 10001 of the image:\n"
    yield from (f"#   {source}\n" for source in ("neuraxis.toml", *(secret.source for secret in deployment.secrets)))


def _shared(deployment: Deployment, image: str) -> dict[str, Any]:
    return {
        "image": image,
        "user": USER,
        "restart": "unless-stopped",
        "stop_signal": "SIGTERM",
        "stop_grace_period": f"{GRACE_S}s",
        "read_only": True,
        "tmpfs": ["/tmp:mode=1777,size=64m,noexec,nosuid,nodev"],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "environment": {**deployment.environment, HEALTH_FILE_VARIABLE: "/tmp/health.json"},
        "pids_limit": 200,
        "healthcheck": {
            "test": ["CMD", "neuraxis-probe", "ready"],
            "interval": "10s",
            "timeout": "5s",
            "retries": 3,
            "start_period": f"{START_S}s",
        },
        "logging": {"driver": "json-file", "options": {"max-size": "20m", "max-file": "5"}},
    }


def _service(process: Process, port: int) -> dict[str, Any]:
    service: dict[str, Any] = {
        _MERGE: True,
        "command": list(process.command(IN_CONTAINER)),
        "volumes": [f"./neuraxis.toml:{IN_CONTAINER.configuration}:ro"],
        "secrets": [{"source": _secret_id(secret.source), "target": secret.name} for secret in process.secrets],
        "deploy": {
            "replicas": process.group.replicas,
            "resources": {
                "limits": {
                    "cpus": f"{process.limits.cpus:g}",
                    "memory": f"{process.limits.memory_mb}M",
                }
            },
        },
    }
    if process.is_ledger:
        # Its events about scarce resources name the host. By default each new container has another name, and would
        # never report that what was scarce under the former name suffices again.
        service["hostname"] = process.name
        service["volumes"].append(f"{_LEDGER_VOLUME}:{IN_CONTAINER.data}")
    if process.is_gateway:
        first, last = port, port + process.group.replicas - 1
        published = f"{first}" if first == last else f"{first}-{last}"
        service["ports"] = [f"127.0.0.1:{published}:{port}"]
    return service


def _secret_id(source: str) -> str:
    """Return the name of a secret within the file, such as ``logins_senses.json``."""
    return source.replace("/", "_")
