"""The files for Compose, systemd and Kubernetes: what they promise, and what the tools that read them say of them."""

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from deploy.config.loading import all_sections, load
from deploy.deploying.plan import GRACE_S
from deploy.processes.supervising.stopping import STOP_DEADLINE
from tests.deploy.deploying.written import Unit, deploy, options, refusal, written

KINDS = ("compose", "systemd", "helm")
CONFIGURATION = """\
[llm]
base_url = "http://llm.example/v1"
api_key_file = "key"
[gateway.upstream]
url = "http://models.example/v1"
key_file = "key"
[webhook.receivers.ops-desk]
style = "slack"
url_file = "url"
token_file = "token"
"""
SECRETS = ("llm-key", "upstream-key", "webhook-ops-desk-url", "webhook-ops-desk-token", "keys.jsonl")
PLACES = {"%d/neuraxis.toml": "/etc/neuraxis/neuraxis.toml", "%d": "/run/secrets", "%S": "/var/lib"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deployment")
    for kind in KINDS:
        written(kind, folder, configuration=CONFIGURATION)
    return folder


@pytest.fixture(scope="module")
def services(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    return found


@pytest.fixture(scope="module")
def values(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "chart/values.yaml").read_text())
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_input_gives_the_same_bytes_and_nothing_is_overwritten_unasked(kind: str, tmp_path: Path) -> None:
    first = written(kind, tmp_path / "a", configuration=CONFIGURATION)
    assert written(kind, tmp_path / "b", configuration=CONFIGURATION) == first
    assert written(kind, tmp_path / "a") == first, "what is there already is no obstacle"
    changed = tmp_path / "a" / min(first)
    changed.write_text("mine")
    assert str(changed) in refusal(kind, "--out", str(tmp_path / "a"))
    assert changed.read_text() == "mine"
    assert written(kind, tmp_path / "a", "--force") == first


def test_what_has_the_configuration_in_it_is_its_owners_alone(tmp_path: Path) -> None:
    given = tmp_path / "given.toml"
    given.write_text(CONFIGURATION)

    for kind in KINDS:
        written(kind, tmp_path / kind, "--config", str(given))

    modes = {
        str(file.relative_to(tmp_path)): stat.S_IMODE(file.stat().st_mode)
        for file in tmp_path.rglob("*")
        if file.is_file() and file != given and "llm.example" in file.read_text()
    }
    assert modes == dict.fromkeys(
        ("compose/neuraxis.toml", "systemd/etc/neuraxis/neuraxis.toml", "helm/chart/values.yaml"), 0o600
    )


def test_neither_environment_nor_working_folder_change_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written("compose", tmp_path / "a")
    monkeypatch.setenv("NEURAXIS_GATEWAY__HTTP", "0.0.0.0:9999")
    monkeypatch.setenv("NEURAXIS_LLM_URL", "http://elsewhere.example/v1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "neuraxis.toml").write_text(CONFIGURATION)
    assert written("compose", tmp_path / "b") == before


def test_all_three_run_the_same_commands(folder: Path, services: dict[str, Any], values: dict[str, Any]) -> None:
    assert services.keys() == values["groups"].keys()
    for name, service in services.items():
        assert service["command"] == values["groups"][name]["args"]
        unit = Unit(folder, "neuraxis-gateway.service" if name == "gateway" else f"neuraxis-worker@{name}-1.service")
        command = [
            word.replace("/run/secrets/neuraxis.toml", "/etc/neuraxis/neuraxis.toml") for word in unit.command(PLACES)
        ]
        assert sorted(command[1:]) == sorted(service["command"])


def test_each_process_is_given_its_own_login_and_only_secrets_that_it_reads(services: dict[str, Any]) -> None:
    given = {name: {secret["target"] for secret in service["secrets"]} for name, service in services.items()}
    logins = {name: {f"{name}.json", f"{name}.nk"} for name in given}
    logins["gateway"] |= {"operator.json", "operator.nk"}
    assert {name: found - set(SECRETS) for name, found in given.items()} == logins
    assert {name: found & set(SECRETS) for name, found in given.items() if found & set(SECRETS)} == {
        "llm": {"llm-key"},
        "webhook": {"webhook-ops-desk-url", "webhook-ops-desk-token"},
        "gateway": {"upstream-key", "keys.jsonl"},
    }
    for name, service in services.items():
        for secret in given[name] & set(SECRETS):
            assert any(value.endswith(f"=/run/secrets/{secret}") for value in options(service["command"], "--set"))


def test_no_secret_is_in_a_file_or_in_an_environment(folder: Path) -> None:
    """A key that stands in the configuration is refused as an unknown setting; a variable for one is not written."""
    for file in (each for each in folder.rglob("*") if each.is_file()):
        text = file.read_text()
        assert "API_KEY=" not in text
        assert "NEURAXIS_API_KEYS" not in text
        assert "NEURAXIS_OPERATOR_KEYS" not in text


@pytest.mark.parametrize("what", ["url", "token"])
def test_a_secret_of_the_environment_is_refused_with_the_way_out(what: str, tmp_path: Path) -> None:
    files = "" if what == "url" else 'url_file = "url"\n'
    (tmp_path / "neuraxis.toml").write_text(
        f'[webhook.receivers.ops]\nstyle = "slack"\n{files}{what}_env = "THE_VARIABLE"\n'
    )
    told = refusal("compose", "--out", str(tmp_path))
    assert f"takes its {what} from the environment variable THE_VARIABLE: write {what}_file" in told


def test_a_login_says_which_files_it_needs_beside_it(tmp_path: Path) -> None:
    logins = tmp_path / "logins"
    logins.mkdir()
    (logins / "ledger.json").write_text('{"url": "tls://a:4222", "user": "ledger", "password": "p", "ca": "ca.pem"}')
    (logins / "clock.json").write_text('{"url": "tls://a:4222", "creds": "clock.creds", "ca": "ca.pem"}')
    document = yaml.safe_load(written("compose", tmp_path)["compose.yaml"])
    assert [each["target"] for each in document["services"]["ledger"]["secrets"]] == ["ledger.json", "ca.pem"]
    assert [each["target"] for each in document["services"]["clock"]["secrets"]] == [
        "clock.json", "clock.creds", "ca.pem",
    ]  # fmt: skip
    (logins / "clock.json").write_text('{"creds": "/elsewhere/clock.creds"}')
    told = refusal("compose", "--out", str(tmp_path), "--force")
    assert "names /elsewhere/clock.creds: put that file beside it" in told
    (logins / "clock.json").write_text("{")
    assert "is no NATS context" in refusal("compose", "--out", str(tmp_path), "--force")


def test_a_configuration_that_cannot_go_along_is_refused(tmp_path: Path) -> None:
    (tmp_path / "soul.md").write_text("Be kind.")
    (tmp_path / "neuraxis.toml").write_text('[responder]\nsoul = { file = "soul.md" }\n')
    assert "names other files" in refusal("compose", "--out", str(tmp_path))
    (tmp_path / "neuraxis.toml").write_text('[gateway]\nhttp = "off"\n')
    assert "a deployment needs a port" in refusal("compose", "--out", str(tmp_path))
    assert "there is no configuration file" in refusal(
        "compose", "--out", str(tmp_path), "--config", str(tmp_path / "none.toml")
    )


def test_a_configuration_from_a_pipe_goes_along_whole(tmp_path: Path) -> None:
    """It can be read only once, and was written as an empty one after that."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = Thread(target=pipe.write_text, args=("[log]\nsealed = true\n",), daemon=True)
    writing.start()
    written("compose", tmp_path / "out", "--config", str(pipe))
    assert (tmp_path / "out" / "neuraxis.toml").read_text() == "[log]\nsealed = true\n"


def test_the_time_to_stop_is_longer_than_a_process_takes_at_most(folder: Path, values: dict[str, Any]) -> None:
    shared = yaml.safe_load((folder / "compose.yaml").read_text())["x-neuraxis"]
    assert shared["stop_grace_period"] == f"{GRACE_S}s"
    assert Unit(folder, "neuraxis-worker@mind-1.service").of("TimeoutStopSec") == [str(GRACE_S)]
    assert GRACE_S >= STOP_DEADLINE + 5
    assert values["graceSeconds"] >= GRACE_S + values["drainSeconds"]


def test_a_model_that_is_configured_is_asked_as_up_would_have_it(services: dict[str, Any], tmp_path: Path) -> None:
    environment = services["path"]["environment"]
    config = load(all_sections(), environment=environment)
    assert config.origins["responder.backend"] == "NEURAXIS_RESPONDER__BACKEND"
    assert "NEURAXIS_RESPONDER__BACKEND" not in written("compose", tmp_path)["compose.yaml"]


def test_a_machine_may_run_some_groups_only(tmp_path: Path) -> None:
    files = written("systemd", tmp_path, "--only", "mind", "--only", "gateway")
    assert Unit(tmp_path, "neuraxis.target").of("Wants") == ["neuraxis-worker@mind-1.service neuraxis-gateway.service"]
    assert len(files) == 5
    # By the settings, logins and keys of the other machines: defaults would be others, and new logins strangers.
    told = deploy("systemd", "--out", str(tmp_path / "second"), "--only", "mind").stderr
    assert "default settings. Name the file of the other machines with --config" in told
    assert "Copy those of the other machines" in told
    assert "nats-conf" not in told
    settings = tmp_path / "neuraxis.toml"
    settings.write_text("[log]\nsealed = true\n")
    told = deploy("systemd", "--out", str(tmp_path / "third"), "--only", "mind", "--config", str(settings)).stderr
    assert "default settings" not in told
    assert (tmp_path / "third/etc/neuraxis/neuraxis.toml").read_text() == settings.read_text()
    assert "write an absolute path" in refusal(
        "systemd", "--out", str(tmp_path), "--program", "/opt/neuraxis\nUser=root"
    )
    assert "'a b' is no image" in refusal("compose", "--out", str(tmp_path), "--image", "a b")
    assert "--only minds: there is no such group" in refusal("systemd", "--out", str(tmp_path), "--only", "minds")


def test_a_ledger_keeps_its_host_s_name_when_its_container_is_made_anew(services: dict[str, Any]) -> None:
    """What is scarce on a machine is ended by the ledger of a machine of that name."""
    assert {name: service["hostname"] for name, service in services.items() if "hostname" in service} == {
        "ledger": "ledger"
    }


def test_a_service_is_hardened(services: dict[str, Any]) -> None:
    for service in services.values():
        assert service["read_only"] is True
        assert service["user"] == "10001:10001"
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"] == ["CMD", "neuraxis-probe", "ready"]
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}
        assert all(volume.endswith(":ro") or volume.startswith("ledger:") for volume in service["volumes"])


# From here on, each by the tool that reads the files.


def said_by(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_compose_takes_its_file(folder: Path) -> None:
    plugin = shutil.which("docker") and subprocess.run(
        ["docker", "compose", "version"], capture_output=True, check=False
    )
    if plugin and plugin.returncode == 0:
        command = ["docker", "compose"]
    elif (alone := shutil.which("docker-compose")) is not None:
        command = [alone]
    else:
        pytest.skip("neither `docker compose` nor docker-compose is installed")
    told = yaml.safe_load(said_by(*command, "-f", "compose.yaml", "config", cwd=folder))
    assert set(told["services"]) == {"senses", "path", "clock", "mind", "llm", "webhook", "ledger", "gateway"}


def test_systemd_takes_its_units_and_finds_little_exposed(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    program = Path(sys.executable).with_name("neuraxis")
    files = written("systemd", tmp_path, "--program", str(program), configuration=CONFIGURATION)
    units = tmp_path / "etc/systemd/system"
    target = Unit(tmp_path, "neuraxis.target").of("Wants")[0].split()
    assert len(target) == 2 + 2 + 2 + 1 + 2 + 1 + 1 + 1
    assert len({name for name in files if name.endswith(".d/group.conf")}) == len(target) - 1
    # The colon at the end stands for the machine's own units, which these are ordered after.
    verifying = {"SYSTEMD_UNIT_PATH": f"{units}:", "PATH": "/usr/bin:/bin"}
    for unit in ("neuraxis-gateway.service", "neuraxis-worker@ledger-1.service", "neuraxis-worker@llm-2.service"):
        done = subprocess.run(
            [analyze, "verify", "--man=no", unit], env=verifying, cwd=units, capture_output=True, text=True, check=False
        )
        assert not [line for line in done.stderr.splitlines() if "neuraxis" in line], done.stderr
        # 2.0 of 10: the network alone is left, which they need.
        command = [analyze, "security", "--offline=yes", "--threshold=20", "--no-pager", unit]
        done = subprocess.run(command, env=verifying, cwd=units, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr


@pytest.fixture(scope="module")
def manifests(folder: Path) -> list[dict[str, Any]]:
    return rendered_by_helm(folder)


def rendered_by_helm(folder: Path) -> list[dict[str, Any]]:
    """Return the chart as Helm renders it: by its command, or by the package helm-python-sdk, which holds Helm 4."""
    chart = folder / "chart"
    if (helm := shutil.which("helm")) is not None:
        said_by(helm, "lint", "--strict", str(chart), cwd=folder)
        rendered = said_by(helm, "template", "neuraxis", str(chart), cwd=folder)
    elif importlib.util.find_spec("helm_python") is not None:
        from helm_python import chart as helm_chart

        report = helm_chart.lint(str(chart), strict=True)
        assert not [each for each in report["messages"] if each["severity"] >= 2] + report["errors"], report
        with helm_chart.Chart.load(str(chart)) as loaded:
            loaded.validate_schema()
            with pytest.raises(Exception, match="graceSeconds"):
                loaded.validate_schema({"graceSeconds": 3})
            found = loaded.render(name="neuraxis", namespace="minds")
        rendered = "\n---\n".join(found[name] for name in sorted(found) if name.endswith(".yaml"))
    else:
        pytest.skip("Helm is not installed: `make test-deploy` installs the package helm-python-sdk")
    return [document for document in yaml.safe_load_all(rendered) if document]


def test_helm_takes_its_chart_and_its_pods_are_hardened(manifests: list[dict[str, Any]]) -> None:
    kinds = sorted({each["kind"] for each in manifests})
    assert kinds == [
        "ConfigMap", "Deployment", "NetworkPolicy", "Pod", "PodDisruptionBudget", "Service", "ServiceAccount",
        "StatefulSet",
    ]  # fmt: skip
    pods = [each["spec"]["template"]["spec"] for each in manifests if each["kind"] in ("Deployment", "StatefulSet")]
    assert len(pods) == len(containers_of(manifests)) == 8
    for pod in pods:
        [container] = pod["containers"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {"livenessProbe", "readinessProbe", "startupProbe", "resources"} <= container.keys()


def policies_of(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        each["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: each["spec"]
        for each in manifests
        if each["kind"] == "NetworkPolicy"
    }


def containers_of(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    pods = [each["spec"]["template"]["spec"] for each in manifests if each["kind"] in ("Deployment", "StatefulSet")]
    return {container["name"]: container for pod in pods for container in pod["containers"]}


def test_only_those_who_speak_outside_may(manifests: list[dict[str, Any]]) -> None:
    policies = policies_of(manifests)
    assert {name for name, spec in policies.items() if {} in spec["egress"]} == {"llm", "webhook", "gateway"}
    assert {name for name, spec in policies.items() if spec["ingress"]} == {"gateway"}


TELEMETRY = """\
[telemetry]
traces = "http://collector.example:4318"
metrics = "0.0.0.0:9100"
"""


def test_telemetry_that_is_configured_is_let_through(values: dict[str, Any], tmp_path: Path) -> None:
    assert "outside" not in values["groups"]["ledger"]
    assert values["network"]["metricsPort"] == 0
    told = yaml.safe_load(written("helm", tmp_path, configuration=TELEMETRY)["chart/values.yaml"])
    assert told["groups"]["ledger"]["outside"], "it sends the traces"
    assert told["network"]["metricsPort"] == 9100
    of_loopback = written("helm", tmp_path / "other", configuration=TELEMETRY.replace("0.0.0.0", "127.0.0.1"))
    assert yaml.safe_load(of_loopback["chart/values.yaml"])["network"]["metricsPort"] == 0


def test_workers_are_reached_for_their_metrics_alone(tmp_path: Path) -> None:
    written("helm", tmp_path, configuration=TELEMETRY)
    rendered = rendered_by_helm(tmp_path)
    policies = policies_of(rendered)
    assert {name for name, spec in policies.items() if {} in spec["egress"]} == {"ledger"}
    for name, spec in policies.items():
        assert spec["ingress"] == [{"ports": [{"port": 8642 if name == "gateway" else 9100, "protocol": "TCP"}]}]
    for name, container in containers_of(rendered).items():
        environment = {each["name"]: each.get("value") for each in container["env"]}
        told = None if name == "gateway" else "$(POD_IP):9100"
        assert environment.get("NEURAXIS_TELEMETRY__METRICS") == told, "Prometheus resolves no pod's name"
        assert list(environment).index("POD_IP") == 1 if told else "POD_IP" not in environment


def test_only_the_ledger_reads_variables_from_a_secret(manifests: list[dict[str, Any]]) -> None:
    """It sends the traces, whose collector may ask for a key."""
    containers = containers_of(manifests)
    given = {name: container["envFrom"] for name, container in containers.items() if "envFrom" in container}
    assert given == {"ledger": [{"secretRef": {"name": "neuraxis-ledger-environment", "optional": True}}]}
    for container in containers.values():
        assert "NEURAXIS_TELEMETRY__METRICS" not in {each["name"] for each in container["env"]}


def test_the_objects_are_those_of_kubernetes_schemas(manifests: list[dict[str, Any]]) -> None:
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("kubernetes-validate is not installed: `make test-deploy` installs it")
    import kubernetes_validate

    for each in manifests:
        kubernetes_validate.validate(each, "1.31", strict=True)


def test_kubernetes_makes_the_secrets_of_files(folder: Path, values: dict[str, Any]) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for made in kustomization["secretGenerator"]:
        for file in made["files"]:
            path = folder / file.partition("=")[2]
            path.parent.mkdir(exist_ok=True)
            path.write_text("{}")
    told = list(yaml.safe_load_all(said_by(kubectl, "kustomize", ".", cwd=folder)))
    assert {each["metadata"]["name"] for each in told} == {f"neuraxis-{name}" for name in values["groups"]}
    for each in told:
        assert each["data"]
