"""What a deployment runs, whatever runs it: each process with its command, its secrets and its limits.

``compose``, ``systemd`` and ``helm`` write the same plan in their own words.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

import msgspec

from actors.llm.settings import LlmSettings
from actors.webhook.settings import Receiver, WebhookSettings
from deploy.config.loading import ENVIRONMENT_PREFIX, BadConfiguration, Config
from deploy.config.models import ModelChoice, actor_flags
from deploy.deploying.groups import GATEWAY, Group
from deploy.processes.broker.users import OPERATOR
from deploy.processes.effectors import EFFECTORS
from deploy.processes.listen_address import address_of
from deploy.processes.running_set import ModelInUse
from deploy.processes.supervising.stopping import STOP_DEADLINE
from deploy.processes.worker import LEDGER

GRACE_S = round(STOP_DEADLINE) + 6
"""Seconds from the signal to stop until a process is killed: it ends itself at :data:`STOP_DEADLINE`."""

START_S = 120
"""Seconds that the first sign of life may take, on a busy machine."""

WATCHDOG_S = 30
"""Seconds without a beat after which a process is started again; a beat comes every second."""

LOGINS = "logins"
"""Folder of the broker logins, as ``neuraxis deploy nats-conf`` writes them."""

SECRETS = "secrets"
"""Folder of all other secrets."""


class NotByFile(ValueError):
    """The configuration takes a secret from the environment; the message says how to give it by file."""

    code = "bad_configuration"


class BadLoginFile(ValueError):
    """A context of a broker login cannot be handed to a process; the message says why."""

    code = "bad_context"


class Secret(msgspec.Struct, frozen=True):
    """A file that a process reads: its folder, relative to the written files, and its name there and in the process."""

    folder: str
    name: str

    @property
    def source(self) -> str:
        """Where the operator puts it, relative to the written files."""
        return f"{self.folder}/{self.name}"


class Limits(msgspec.Struct, frozen=True):
    """What a process may use. All actors in one process take 160 MB at rest; their states grow with open sessions."""

    cpus: float
    memory_mb: int


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a deployment.

    Attributes:
        group: Which group's.
        work: What of ``neuraxis`` it runs.
        options: More arguments; marks stand for places, see ``command``.
        secrets: The files that it is given.
        limits: What it may use.
        speaks_outside: Whether it calls others than the broker: models, or receivers of alerts.
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
    def serves(self) -> bool:
        """Whether it is the gateway, which listens."""
        return self.name == GATEWAY

    @property
    def keeps(self) -> bool:
        """Whether it is the ledger's process, which has a file to keep."""
        return self.name == LEDGER

    def command(self, places: "Places") -> tuple[str, ...]:
        """Return the arguments of ``neuraxis`` where secrets, configuration and data are at these places."""
        reach = ("--context", f"{places.secrets}/{self.name}.json", "--config", places.configuration)
        return (*self.work, *reach, *self.placed_options(places))

    def placed_options(self, places: "Places") -> tuple[str, ...]:
        """Return the options alone, with these places."""
        return tuple(
            option.replace(_SECRETS, f"{places.secrets}/").replace(_DATA, f"{places.data}/") for option in self.options
        )


class Places(msgspec.Struct, frozen=True):
    """Where a process finds its folder of secrets, the configuration file, and the folder that it may write."""

    secrets: str
    configuration: str
    data: str


IN_CONTAINER = Places("/run/secrets", "/etc/neuraxis/neuraxis.toml", "/var/lib/neuraxis")


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """A whole deployment.

    Attributes:
        version: The release.
        processes: Its processes, one for each group.
        configuration: The configuration file that all of them read.
        port: Where the gateway listens, on every address of its machine or container.
        environment: Environment variables of all of them; no secrets.
    """

    version: str
    processes: tuple[Process, ...]
    configuration: bytes
    port: int
    environment: dict[str, str]

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """Every secret once, by its source."""
        found = {secret.source: secret for process in self.processes for secret in process.secrets}
        return tuple(found[source] for source in sorted(found))

    @property
    def logins(self) -> tuple[str, ...]:
        """What to tell ``neuraxis deploy nats-conf`` about the workers' logins."""
        workers = (process.group for process in self.processes if not (process.serves or process.keeps))
        return tuple(f"--login {group.name}={','.join(group.hosts)}" for group in workers)


_SECRETS, _DATA = "\0secrets/", "\0data/"

_LIMITS = {"senses": Limits(2.0, 1024), "llm": Limits(1.0, 512), LEDGER: Limits(1.0, 768), GATEWAY: Limits(1.0, 768)}
_OTHER_LIMITS = Limits(1.0, 512)


def deployment_of(
    config: Config, groups: Sequence[Group], *, configuration: bytes, version: str, logins: Path
) -> Deployment:
    """Return the deployment of a configuration.

    Args:
        config: The configuration in effect, of the file alone.
        groups: Who runs what; see ``groups``.
        configuration: The file, which is written along; empty: there is none.
        version: The release.
        logins: Folder of the broker logins. A context that is there says which files it needs beside it; one that is
            not is taken to need the seed of an nkey.

    Raises:
        NotByFile: a secret is configured to come from the environment.
        BadLoginFile: a context cannot be used.
        BadConfiguration: the gateway has no port of its own.
    """
    address = address_of(config.gateway.http)
    if address is None or not address.port:
        raise BadConfiguration(f"gateway.http is {config.gateway.http}: a deployment needs a port, as in 0.0.0.0:8642")
    head = f"# The configuration of all processes, for neuraxis {version}. It holds no secrets.\n"
    asking = (flag.partition("=") for flag in _actors_asking(config) if flag != "--set")
    return Deployment(
        version=version,
        processes=tuple(_process(group, config, logins, address.port) for group in groups),
        configuration=configuration or head.encode(),
        port=address.port,
        environment={f"{ENVIRONMENT_PREFIX}{key.replace('.', '__').upper()}": value for key, _, value in asking},
    )


def _actors_asking(config: Config) -> tuple[str, ...]:
    """Return the flags by which ``neuraxis up``, too, has the actors ask an attached model."""
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
    work: tuple[str, ...] = ("worker", *group.hosts)
    options = ["--ledger", f"{_DATA}ledger.db"] if group.name == LEDGER else []
    if group.name == GATEWAY:
        secrets += _login_files(logins, OPERATOR)
        work, options = (GATEWAY, "--http", f"0.0.0.0:{port}"), ["--operator-context", f"{_SECRETS}{OPERATOR}.json"]
    for key, name in _secret_files(group, config):
        secrets.append(Secret(SECRETS, name))
        options += ["--set", f"{key}={_SECRETS}{name}"]
    return Process(
        group=group,
        work=work,
        options=tuple(options),
        secrets=tuple(dict.fromkeys(secrets)),
        limits=_LIMITS.get(group.name, _OTHER_LIMITS),
        speaks_outside=any(host in EFFECTORS for host in group.hosts)
        or (group.name == GATEWAY and bool(config.gateway.upstream.url)),
    )


class _FilesOfContext(msgspec.Struct):
    nkey: str = ""
    creds: str = ""
    ca: str = ""


def _login_files(logins: Path, name: str) -> Iterator[Secret]:
    """Yield a login's context, and the files that it names; these lie beside it."""
    context = logins / f"{name}.json"
    yield Secret(LOGINS, context.name)
    try:
        named = msgspec.json.decode(context.read_bytes(), type=_FilesOfContext)
    except FileNotFoundError:
        named = _FilesOfContext(nkey=f"{name}.nk")
    except (OSError, msgspec.DecodeError) as wrong:
        raise BadLoginFile(f"{context} is no NATS context: {wrong}") from wrong
    for file in filter(None, (named.nkey, named.creds, named.ca)):
        if PurePath(file).name != file:
            raise BadLoginFile(f"{context} names {file}: put that file beside it, and write its name alone")
        yield Secret(LOGINS, file)


def _secret_files(group: Group, config: Config) -> Iterator[tuple[str, str]]:
    """Yield the settings that name a file of a secret that the group reads, with the file's name."""
    llm = config.section("llm", LlmSettings)
    if group.name == GATEWAY:
        yield "gateway.keys_file", "keys.jsonl"
        if config.gateway.upstream.key_file:
            yield "gateway.upstream.key_file", "upstream-key"
    if "llm" in group.hosts and llm.api_key_file:
        yield "llm.api_key_file", "llm-key"
    if "webhook" in group.hosts:
        for name, receiver in sorted(config.section("webhook", WebhookSettings).receivers.items()):
            yield from _receiver_files(name, receiver)


def _receiver_files(name: str, receiver: Receiver) -> Iterator[tuple[str, str]]:
    for what in ("url", "token"):
        if variable := getattr(receiver, f"{what}_env"):
            raise NotByFile(
                f"webhook receiver {name} takes its {what} from the environment variable {variable}: write "
                f"{what}_file, with any file name, since deployments take secrets from files alone"
            )
        if getattr(receiver, f"{what}_file"):
            yield f"webhook.receivers.{name}.{what}_file", f"webhook-{name}-{what}"
