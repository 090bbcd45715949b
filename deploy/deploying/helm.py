"""A deployment as a Helm chart, and a kustomization that makes the chart's secrets from files."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from deploy.deploying.plan import GRACE_S, IN_CONTAINER, Deployment, Process
from deploy.deploying.writing_files import HEADER, Files

DRAIN_S = 5
"""Seconds that a gateway still serves after the signal to stop, until no Kubernetes node routes to it any more."""


def helm_files(deployment: Deployment, image: str) -> Files:
    """Return the chart below ``chart/``, and the kustomization of its secrets beside it."""
    note = f"# {HEADER.format(command='helm', version=deployment.version)}\n"
    metadata = {
        "apiVersion": "v2",
        "name": "neuraxis",
        "description": "A decision control plane for LLM agents, beside a NATS of yours",
        "type": "application",
        "version": deployment.version,
        "appVersion": deployment.version,
        "kubeVersion": ">=1.27.0-0",
    }
    chart = {f"chart/{name}": content for name, content in _templates(files("deploy.deploying") / "chart", "")}
    return {
        **chart,
        "chart/Chart.yaml": (note + _dumped(metadata)).encode(),
        "chart/values.yaml": (note + _dumped(_values(deployment, image))).encode(),
        "kustomization.yaml": (note + _dumped(_secrets(deployment))).encode(),
    }


def _templates(folder: Traversable, below: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            yield from _templates(entry, f"{below}{entry.name}/")
        else:
            yield f"{below}{entry.name}", entry.read_bytes()


def _values(deployment: Deployment, image: str) -> dict[str, Any]:
    return {
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "imagePullSecrets": [],
        "configuration": deployment.configuration.decode(),
        "environment": deployment.environment,
        "port": deployment.port,
        "graceSeconds": GRACE_S + DRAIN_S,
        "drainSeconds": DRAIN_S,
        "ledger": {"size": "20Gi", "storageClass": ""},
        "network": {
            "brokerPort": 4222,
            "brokerTo": [],
            "gatewayFrom": [],
            "metricsPort": deployment.metrics_port,
            "metricsFrom": [],
        },
        "groups": {process.name: _group(process) for process in deployment.processes},
    }


def _group(process: Process) -> dict[str, Any]:
    """Return the values of a group, which are the processes with the same command.

    ``serves``: it is the gateway, which is reached from outside. ``keeps``: it is the ledger, which has a volume for
    its file. ``outside``: it calls more than the broker, such as models.
    """
    memory = f"{process.limits.memory_mb}Mi"
    found: dict[str, Any] = {
        "args": list(process.command(IN_CONTAINER)),
        "replicas": process.group.replicas,
        "resources": {
            "requests": {"cpu": f"{round(process.limits.cpus * 250)}m", "memory": memory},
            "limits": {"cpu": f"{process.limits.cpus:g}", "memory": memory},
        },
    }
    kinds = {"serves": process.is_gateway, "keeps": process.is_ledger, "outside": process.speaks_outside}
    return found | {kind: True for kind, is_so in kinds.items() if is_so}


def _secrets(deployment: Deployment) -> dict[str, Any]:
    """Return a kustomization: a Secret for each group, of the files that it reads."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "generatorOptions": {"disableNameSuffixHash": True},
        "secretGenerator": [
            {
                "name": f"neuraxis-{process.name}",
                "files": [f"{secret.name}={secret.source}" for secret in process.secrets],
            }
            for process in deployment.processes
        ],
    }


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as a block (``|``), and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _dumped(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=110)
