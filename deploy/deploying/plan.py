"""The plan of a deployment: each process with its command, its secrets and its limits.

``compose``, ``systemd`` and ``helm`` each write this plan in their own format.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

import msgspec

from actors.gateway.http.keys import is_loopback
from actors.llm.settings import LlmSettings
from actors.webhook.settings import Receiver, WebhookSettings
from deploy.config.loading import ENVIRONMENT_PREFIX, BadConfiguration, Config
from deploy.config.models import ModelChoice, actor_flags
from deploy.deploying.groups import GATEWAY, Group
from deploy.processes.broker.users import OPERATOR
from deploy.processes.effector_registry import EFFECTORS
from deploy.processes.listen_address import address_of
from deploy.processes.running_set import ModelInUse
from deploy.processes.supervising.stopping import STOP_DEADLINE
from deploy.processes.worker import LEDGER
from deploy.telemetry.telemetry_settings import metrics_address
from events.files.bounded_files import MOST_SECRET_BYTES, read_bounded

GRACE_S = round(STOP_DEADLINE) + 6
"""Seconds from the signal to stop until a process is killed; it should end by itself within :data:`STOP_DEADLINE`."""

START_S = 120
"""Seconds that a process may take to start on a busy machine."""

WATCHDOG_S = 30
"""Seconds without a heartbeat after which a process is restarted; it sends one every second."""

LOGINS = "logins"
"""Folder of the broker logins, which ``neuraxis deploy nats-conf`` writes."""

SECRETS = "secrets"
"""Folder of all other secrets."""


class SecretNotInFile(ValueError):
    """The configuration takes a secret from the environment; the message says how to give it by file."""

    code = "bad_configuration"


class BadLoginFile(ValueError):
    """A NATS context, the file that describes a broker login, cannot be given to a process; the message says why."""

    code = "bad_context"


class Secret(msgspec.Struct, frozen=True):
    """A secret file: its folder among the written files, and its name, there and where the process reads it."""

    folder: str
    name: str

    @property
    def source(self) -> str:
        """The path where the operator puts it, relative to the folder of the written files."""
        return f"{self.folder}/{self.name}"


class Limits(msgspec.Struct, frozen=True):
    """What a process may use. All actors in one process take 160 MB when idle; their states grow with open sessions."""

    cpus: float
    memory_mb: int


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a deployment.

    Attributes:
        group: The group whose copies it runs.
        work: The subcommand of ``neuraxis``, with what it runs: ``worker`` and actors, or ``gateway``.
        options: More arguments; marks in them stand for folders, see ``command``.
        secrets: The secret files that it reads.
        limits: What it may use.
        speaks_outside: Whether it calls more than the broker: models, specialists, receivers of alerts, or a collector
            of traces.
    """

    group: Group
    work: tuple[str, ...]
    options: tuple[str, ...]
    secrets: tuple[Secret, ...]
    limits: Limits
    speaks_outside: bool

    @property
    def name(self) -> str:
        """The group's name."""
        return self.group.name

    @property
    def is_gateway(self) -> bool:
        """Whether it is the gateway, which listens on a port."""
        return self.name == GATEWAY

    @property
    def is_ledger(self) -> bool:
        """Whether it is the ledger's process, whose file must outlive it."""
        return self.name == LEDGER

    def command(self, paths: "Paths") -> tuple[str, ...]:
        """Return the arguments of ``neuraxis`` where secrets, configuration and data are at ``paths``."""
        read = ("--context", f"{paths.secrets}/{self.name}.json", "--config", paths.configuration)
        return (*self.work, *read, *self.placed_options(paths))

    def placed_options(self, paths: "Paths") -> tuple[str, ...]:
        """Return ``options`` with the folders of ``paths`` for the marks."""
        return tuple(
            option.replace(_SECRETS_MARK, f"{paths.secrets}/").replace(_DATA_MARK, f"{paths.data}/")
            for option in self.options
        )


class Paths(msgspec.Struct, frozen=True):
    """Where a process finds its folder of secrets, the configuration file, and the folder that it may write."""

    secrets: str
    configuration: str
    data: str


IN_CONTAINER = Paths("/run/secrets", "/etc/neuraxis/neuraxis.toml", "/var/lib/neuraxis")


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """A whole deployment.

    Attributes:
        version: The release.
        processes: Its processes, one for each group.
        configuration: The configuration file that all of them read.
        port: Where the gateway listens, on every address of its machine or container.
        metrics_port: The port on which each worker serves its metrics to Prometheus; 0: a port that is not known
            beforehand, or none that can be reached from outside its machine or container.
        environment: Environment variables of all of them; no secrets.
    """

    version: str
    processes: tuple[Process, ...]
    configuration: bytes
    port: int
    metrics_port: int
    environment: dict[str, str]

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """All secrets, each once, in the order of their paths."""
        found = {secret.source: secret for process in self.processes for secret in process.secrets}
        return tuple(found[source] for source in sorted(found))

    @property
    def logins(self) -> tuple[str, ...]:
        """The options by which ``neuraxis deploy nats-conf`` makes the workers' logins."""
        workers = (process.group for process in self.processes if not (process.is_gateway or process.is_ledger))
        return tuple(f"--login {group.name}={','.join(group.hosted)}" for group in workers)


_SECRETS_MARK, _DATA_MARK = "\0secrets/", "\0data/"
"""Marks in options: each stands for a folder that the way of deployment decides; no argument can hold a NUL."""

# By the name of the group.
_LIMITS = {"senses": Limits(2.0, 1024), "llm": Limits(1.0, 512), LEDGER: Limits(1.0, 768), GATEWAY: Limits(1.0, 768)}
_OTHER_LIMITS = Limits(1.0, 512)


def deployment_of(
    config: Config, groups: Sequence[Group], *, configuration: bytes, version: str, logins: Path
) -> Deployment:
    """Return the deployment of a configuration.

    Args:
        config: The configuration in effect, read from the file alone.
        groups: Which actors share a process; see :mod:`deploy.deploying.groups`.
        configuration: The content of that file, which is written beside the rest; empty: there is no such file.
        version: The release.
        logins: Folder of the broker logins. A NATS context in it names the files that it needs; where a context is
            missing, an nkey seed beside it is assumed.

    Raises:
        SecretNotInFile: a secret is configured to come from the environment.
        BadLoginFile: a context cannot be used.
        BadConfiguration: the gateway has no port of its own.
    """
    address = address_of(config.gateway.http)
    if address is None or not address.port:
        raise BadConfiguration(f"gateway.http is {config.gateway.http}: a deployment needs a port, as in 0.0.0.0:8642")
    head = f"# The configuration of all processes, for neuraxis {version}. It holds no secrets.\n"
    settings = (flag.partition("=") for flag in _model_flags(config) if flag != "--set")
    return Deployment(
        version=version,
        processes=tuple(_process(group, config, logins, address.port) for group in groups),
        configuration=configuration or head.encode(),
        port=address.port,
        metrics_port=_metrics_port(config),
        environment={f"{ENVIRONMENT_PREFIX}{key.replace('.', '__').upper()}": value for key, _, value in settings},
    )


def _metrics_port(config: Config) -> int:
    address = metrics_address(config)
    return 0 if address is None or is_loopback(address.host) else address.port


def _model_flags(config: Config) -> tuple[str, ...]:
    """Return the flags that make actors ask the attached model, as ``neuraxis up`` gives them; none without a model."""
    llm = config.section("llm", LlmSettings)
    if llm.backend == "local":
        use = ModelInUse(backend="local")
    elif llm.backend != "composer" and llm.base_url:
        use = ModelInUse(backend="openai", base_url=llm.base_url)
    else:
        return ()
    return actor_flags(ModelChoice(use=use, why="it is configured", context=llm.context_tokens), config)


def _process(group: Group, config: Config, logins: Path, port: int) -> Process:
    secrets = [*_login_files(logins, group.name)]
    work: tuple[str, ...] = ("worker", *group.hosted)
    options = ["--ledger", f"{_DATA_MARK}ledger.db"] if group.name == LEDGER else []
    if group.name == GATEWAY:
        secrets += _login_files(logins, OPERATOR)
        work = (GATEWAY, "--http", f"0.0.0.0:{port}")
        options = ["--operator-context", f"{_SECRETS_MARK}{OPERATOR}.json"]
    for key, name in _secret_files(group, config):
        secrets.append(Secret(SECRETS, name))
        options += ["--set", f"{key}={_SECRETS_MARK}{name}"]
    return Process(
        group=group,
        work=work,
        options=tuple(options),
        secrets=tuple(dict.fromkeys(secrets)),
        limits=_LIMITS.get(group.name, _OTHER_LIMITS),
        speaks_outside=any(each in EFFECTORS for each in group.hosted)
        or (group.name == GATEWAY and bool(config.gateway.upstream.url))
        or (LEDGER in group.hosted and bool(config.telemetry.traces)),
    )


class _FilesOfContext(msgspec.Struct):
    """The files that a NATS context names."""

    nkey: str = ""
    creds: str = ""
    ca: str = ""


def _login_files(logins: Path, name: str) -> Iterator[Secret]:
    """Yield a login's context, and the files that it names, which must be in the same folder."""
    context = logins / f"{name}.json"
    yield Secret(LOGINS, context.name)
    try:
        named = msgspec.json.decode(read_bounded(context, MOST_SECRET_BYTES), type=_FilesOfContext)
    except FileNotFoundError:
        named = _FilesOfContext(nkey=f"{name}.nk")
    except (OSError, msgspec.DecodeError) as wrong:
        raise BadLoginFile(f"{context} is no NATS context: {wrong}") from wrong
    for file in filter(None, (named.nkey, named.creds, named.ca)):
        if PurePath(file).name != file:
            raise BadLoginFile(f"{context} names {file}: put that file beside it, and write its name alone")
        yield Secret(LOGINS, file)


def _secret_files(group: Group, config: Config) -> Iterator[tuple[str, str]]:
    """Yield each setting by which the group reads a secret from a file, with the name of that file."""
    llm = config.section("llm", LlmSettings)
    if group.name == GATEWAY:
        yield "gateway.keys_file", "keys.jsonl"
        if config.gateway.upstream.key_file:
            yield "gateway.upstream.key_file", "upstream-key"
    if "llm" in group.hosted and llm.api_key_file:
        yield "llm.api_key_file", "llm-key"
    if "webhook" in group.hosted:
        for name, receiver in sorted(config.section("webhook", WebhookSettings).receivers.items()):
            yield from _receiver_files(name, receiver)


def _receiver_files(name: str, receiver: Receiver) -> Iterator[tuple[str, str]]:
    for what in ("url", "token"):
        if variable := getattr(receiver, f"{what}_env"):
            raise SecretNotInFile(
                f"webhook receiver {name} takes its {what} from the environment variable {variable}: write "
                f"{what}_file, with any file name, since deployments take secrets from files alone"
            )
        if getattr(receiver, f"{what}_file"):
            yield f"webhook.receivers.{name}.{what}_file", f"webhook-{name}-{what}"
