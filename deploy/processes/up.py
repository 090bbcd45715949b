"""``neuraxis up``: runs the embedded broker, the workers, the ledger's process and the gateway until told to stop."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from actors.gateway.http.keys import api_keys_for
from actors.llm.settings import LlmSettings
from actors.registry import ACTORS
from actors.webhook.receivers import addresses
from actors.webhook.settings import WebhookSettings
from deploy.cli.rendering.greeting import Up, called_by, greeting
from deploy.config.alert_lifetimes import check_alert_lifetimes
from deploy.config.assignments import without_overridden
from deploy.config.configured_log import configured_log
from deploy.config.loading import BadConfiguration, Config
from deploy.config.models import ModelChoice, actor_flags, check_answerable, choose_model, worker_flags
from deploy.config.upstream_settings import upstream_of
from deploy.health.loss_from_snapshots import record_loss_from_snapshots
from deploy.health.session_keys_check import log_lost_keys
from deploy.health.stage_watch import log_unserved_stages, needed_by
from deploy.operating.api_key_file import keys_file
from deploy.processes.broker import ADMIN, DECIDERS, EFFECTORS, GATEWAY, LEDGER, OPERATOR, EmbeddedBroker
from deploy.processes.broker.storage_watch import own_store, storing_fault
from deploy.processes.broker.users import context_file, write_context
from deploy.processes.broker_access import BrokerChoice, access_of, context_of
from deploy.processes.effector_registry import needed_effectors
from deploy.processes.event_loop import run_command
from deploy.processes.ledger_end import LedgerEnd
from deploy.processes.listen_address import address_of, listen, url_of
from deploy.processes.run_file_writer import RunFileWriter
from deploy.processes.running_set import DataFolder, RunFile, RunSettings
from deploy.processes.supervising.lifeline import notify_systemd
from deploy.processes.supervising.pulse import STARTING, Pulse
from deploy.processes.supervising.supervisor import Program, ProgramFailed, Supervisor
from deploy.processes.worker_program import WorkerProgram
from deploy.telemetry.telemetry_settings import check_telemetry
from events.errors import Misconfigured
from events.files.bounded_files import read_bounded
from events.files.whole_files import replace_file
from events.jetstream import Access, Connection, KeyValueMembership, KeyValueSnapshots
from events.jetstream.connection import ApiError
from events.jetstream.key_value import refuse_roll_ups
from events.jetstream.stream import NOT_FOUND
from events.loggers import get_logger
from schemas.permissions import MEMBERS_BUCKET, SNAPSHOTS_BUCKET, keys_bucket
from schemas.subjects import Partitions

_LONGEST_READY_FILE = 32
"""Most bytes of a ready file."""

_logger = get_logger("neuraxis.up")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to start.

    Attributes:
        data: The data folder.
        config: The configuration in effect.
        broker: The external broker to use; if it names none, the embedded broker is used.
        ready_file: Written when every process serves, removed at the end.
        config_flags: The configuration flags, which the worker processes get, too.
        find_flags: The flags by which other commands find the set, if they need any.
    """

    data: DataFolder
    config: Config
    broker: BrokerChoice
    ready_file: Path | None = None
    config_flags: tuple[str, ...] = ()
    find_flags: tuple[str, ...] = ()


def bring_up(plan: Plan) -> None:
    """Run the set until SIGINT, SIGTERM or SIGHUP; a second signal kills what has not ended yet.

    Raises:
        FolderTaken: another set runs in the data folder.
        FolderUnusable: the data folder cannot be written.
        ProgramFailed: a program could not be started.
        BadContext, LogError: an external broker cannot be used.
        BadEndpoint: the language model cannot be used as it is configured.
        BadReceiver: a receiver of alerts cannot be used as it is configured.
        BadKeys, BadConfiguration: the gateway needs keys for its address, an actor is configured to ask a language
            model and there is none, or the ready file cannot be written.
    """
    if plan.ready_file is not None:
        _check_ready_file(plan.ready_file)
    os.umask(0o077)  # people's words are in the store, the ledger and the log
    with plan.data.locked() as lock:
        ledger_end = LedgerEnd(plan.data)
        try:
            run_command(_run(plan, lock, ledger_end))
        finally:
            plan.data.end_run(ledger_holds_end=ledger_end.is_held)
            if plan.ready_file is not None:
                plan.ready_file.unlink(missing_ok=True)


async def _run(plan: Plan, lock: int, ledger_end: LedgerEnd) -> None:
    if plan.ready_file is not None:
        plan.ready_file.unlink(missing_ok=True)
    _check_receivers(plan.config)
    check_telemetry(plan.config)
    broker = await _external(plan) if plan.broker.named else _embedded(plan, lock)
    listener = _open_gateway_socket(plan)
    http = url_of(listener) if listener is not None else ""
    model = await _choose_model(plan)
    is_ready, seen_fault = False, ""
    watching: list[asyncio.Task[None]] = []
    started = datetime.now(UTC).isoformat(timespec="seconds")

    in_force = run_settings(plan.config, model)
    ledger = str(plan.data.ledger.resolve())  # now: the working folder may be deleted

    def describe() -> RunFile:
        statuses = tuple(supervisor.statuses())
        return RunFile(
            pid=os.getpid(),
            started=started,
            version=version("neuraxis"),
            nats_url=broker.url(),
            contexts=broker.contexts,
            context=broker.context(OPERATOR),
            stream=plan.config.log.stream,
            ledger=ledger,
            ready=is_ready and all(status.ready for status in statuses),
            processes=statuses,
            model=model.use,
            http=http,
            in_force=in_force,
        )

    run_file = RunFileWriter(plan.data, describe)

    def on_ready() -> None:
        nonlocal is_ready
        is_ready = True
        run_file.write()
        if plan.ready_file is not None:
            _write_ready_file(plan.ready_file)
        watch = _watch_stages(plan, broker, model, on_look, is_asked=pulse.is_read)
        watching.append(asyncio.create_task(watch, name="stages"))
        notify_systemd("READY=1")
        data, backend = str(plan.data.path), model.use.backend
        _logger.info("set_ready", http=http, url=broker.url(), data=data, llm=backend)
        _greet(plan, broker.url(), http, model)

    def on_look(fault: str) -> None:
        nonlocal seen_fault
        seen_fault = fault

    gateways = () if listener is None else (_gateway(plan, broker, listener),)
    programs = (*worker_programs(plan, broker, model), *gateways)
    # The ledger's process ends last, since the others may append until they have ended.
    supervisor = Supervisor(
        [*broker.phases, programs],
        on_change=run_file.write,
        stop_last=(LEDGER,),
        on_last_phase_ended=lambda: ledger_end.check(lambda: _access(plan, broker), plan.config.log.stream),
    )
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            ledger_end.skip_check()
            supervisor.kill_all()
        stop.set()
        for task in watching:  # what stops from now on does so on purpose
            task.cancel()

    def fault() -> str:
        if not is_ready:
            return STARTING
        down = ", ".join(f"{status.name} does not serve" for status in supervisor.statuses() if not status.ready)
        return down or seen_fault

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    pulse = Pulse(plan.config.runtime.health_file, supervised=False)
    pulse.fault = fault
    try:
        async with pulse.beating():
            await supervisor.run(stop, on_ready)
    finally:
        run_file.close()
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    _logger.info("set_stopped", data=str(plan.data.path))


def _greet(plan: Plan, nats: str, http: str, model: ModelChoice) -> None:
    """Print to stdout what a person needs after the start; nothing if logs are JSON, which machines read."""
    if plan.config.runtime.log_format == "json":
        return
    up = Up(
        program=called_by(sys.argv[0], shutil.which("neuraxis"), Path.cwd()),
        data=str(plan.data.path),
        flags=plan.find_flags,
        http=http,
        nats=nats,
        backend=model.use.backend,
        models=model.use.models,
        why=model.why,
        doubt=model.warning,
    )
    with contextlib.suppress(OSError):  # stdout is closed: the set runs on
        print(greeting(up), flush=True)


async def _watch_stages(
    plan: Plan, broker: "SetBroker", model: ModelChoice, on_look: Callable[[str], None], *, is_asked: bool
) -> None:
    """Log every stage of the set that nobody serves: a process may live without doing its work.

    ``on_look`` is given what keeps the set from its work, for whoever asks whether it is ready, if anybody does
    (``is_asked``).
    """
    stages = (*ACTORS, LEDGER, *needed_effectors(plan.config, attached=model.use.backend != "composer"))
    access = _access(plan, broker)
    store = own_store(plan.data.path, broker.contexts)

    async def storing(connection: Connection) -> str:
        return await storing_fault(connection, plan.config.log.stream, store)

    await log_unserved_stages(
        access,
        Partitions(plan.config.log.agents, plan.config.log.sessions),
        stages,
        storing=storing if is_asked else None,
        note=on_look,
    )


def _access(plan: Plan, broker: "SetBroker") -> Access:
    return access_of(BrokerChoice(context=broker.context(OPERATOR)), plan.data, name="neuraxis up")


def _check_ready_file(file: Path) -> None:
    """Refuse a ready file that cannot be written, before anything is started."""
    if not os.access(file.parent, os.W_OK):
        raise BadConfiguration(f"--ready-file {file}: its folder is missing or cannot be written: name another file")
    if file.exists() and not (file.is_file() and _is_ready_file(file)):
        raise BadConfiguration(
            f"--ready-file {file}: it is there, is no ready file, and would be deleted: name another"
        )


def _is_ready_file(file: Path) -> bool:
    """Whether a file holds what a ready file does, a process id, or nothing, like a file that was just made."""
    try:
        content = read_bounded(file, _LONGEST_READY_FILE).strip(b"\0 \n")  # a power cut may leave zeros
    except OSError:  # too long, or not ours to read
        return False
    return not content or content.isdigit()


def _write_ready_file(file: Path) -> None:
    try:
        replace_file(file, f"{os.getpid()}\n".encode())
    except OSError as wrong:  # a full disk must not take the set down
        _logger.error("ready_file_not_written", path=str(file), error=str(wrong))


def run_settings(config: Config, model: ModelChoice) -> RunSettings:
    """Return the settings that ``run.json`` names, for commands that examine the set."""
    return RunSettings(
        agents=config.log.agents,
        sessions=config.log.sessions,
        receivers=dict(config.section("webhook", WebhookSettings).receivers),
        effectors=needed_effectors(config, attached=model.use.backend != "composer"),
        key_file=config.section("llm", LlmSettings).api_key_file,
        agent_per=config.gateway.agent_per,
        stages=needed_by(config),
        upstream=config.gateway.upstream.url,
        upstream_key_file=config.gateway.upstream.key_file,
        replicas=config.log.replicas,
        limits=config.gateway.limits,
        keys_file=config.gateway.keys_file and str(Path(config.gateway.keys_file).expanduser().absolute()),
        alert_consumers=config.broker.alert_consumers,
    )


def _check_receivers(config: Config) -> None:
    """Refuse unusable receivers of alerts here, where a person sees it, not in a worker that would end each time."""
    check_alert_lifetimes(config)
    receivers = config.section("webhook", WebhookSettings).receivers
    if receivers:
        addresses(receivers, os.environ)


def _open_gateway_socket(plan: Plan) -> socket.socket | None:
    """Open the gateway's socket in this process: so it outlives every restart of the gateway, and keeps its address."""
    settings = plan.config.gateway
    address = address_of(settings.http)
    if address is None:
        return None
    api_keys_for(address.host, keys_file(settings, plan.data), os.environ, is_named=bool(settings.keys_file))
    upstream_of(settings.upstream, os.environ)
    listener = listen(address, or_else_any="gateway.http" not in plan.config.origins)
    if address.port not in (0, listener.getsockname()[1]):
        _logger.warning("http_port_taken", wanted=settings.http, instead=url_of(listener))
    return listener


async def _choose_model(plan: Plan) -> ModelChoice:
    """Find the language model, and log which it is."""
    model = await choose_model(plan.config, os.environ)
    check_answerable(model, plan.config)
    use = model.use
    if use.backend == "composer":
        _logger.info("no_model_attached", answers="composer", why=model.why)
    else:
        _logger.info(
            "model_attached",
            backend=use.backend,
            base_url=use.base_url,
            models=use.models,
            why=model.why,
            context=model.context or "unknown",
        )
    if model.warning:
        _logger.warning("model_doubtful", base_url=use.base_url, reason=model.warning)
    return model


class SetBroker(msgspec.Struct, frozen=True):
    """The broker of a set.

    ``phases`` are the programs to start for it, one group after another. ``url`` returns its URL, once it is known, and
    ``context`` the file of a user's NATS CLI context. ``contexts`` is the folder of these files; empty if all users
    share one.
    """

    phases: tuple[tuple[Program, ...], ...]
    url: Callable[[], str]
    context: Callable[[str], str]
    contexts: str = ""


def _embedded(plan: Plan, lock: int) -> SetBroker:
    settings = plan.config.broker
    broker = EmbeddedBroker(
        plan.data.broker,
        settings,
        stream=plan.config.log.stream,
        keep_fds=(lock,),
        prepare=lambda broker: prepare_embedded(broker, plan.config, plan.data.ledger),
    )
    if settings.sync != "always":
        _logger.warning("sync_relaxed", sync=settings.sync, promise=durability_promise(settings.sync, 1))
    contexts = broker.layout.contexts
    return SetBroker(((broker,),), lambda: broker.url, lambda user: str(context_file(contexts, user)), str(contexts))


async def _external(plan: Plan) -> SetBroker:
    for user in (DECIDERS, GATEWAY, OPERATOR) if plan.broker.logins else ():
        access_of(plan.broker, plan.data, user=user)  # raises for a missing login here, and not in a child process
    access = access_of(plan.broker, plan.data, user=ADMIN, name="neuraxis up")
    await prepare(access, plan.config, lasting=True)
    ledger_access = access_of(plan.broker, plan.data, user=LEDGER, name="neuraxis up")
    await record_loss_from_snapshots(ledger_access, plan.config, plan.data.ledger)
    if plan.broker.logins:
        contexts = plan.broker.folder
        return SetBroker((), lambda: access.servers, lambda user: str(context_file(contexts, user)), str(contexts))
    # Children get the login by a file, not by arguments, which everybody on the machine can read.
    write_context(plan.data.external, context_of(access))
    return SetBroker((), lambda: access.servers, lambda _: str(plan.data.external.resolve()))


def worker_programs(plan: Plan, broker: SetBroker, model: ModelChoice) -> tuple[WorkerProgram, ...]:
    """Return the worker processes: copies of the one with every actor, the ledger's, and the effectors'.

    The effectors' process is left out if there is neither a model to ask nor a receiver of alerts.
    """
    copies = plan.config.runtime.processes
    names = [DECIDERS] if copies == 1 else [f"{DECIDERS}-{number}" for number in range(1, copies + 1)]
    flags = actor_flags(model, plan.config)
    deciders = [_worker(plan, name, broker.context(DECIDERS), tuple(ACTORS), flags) for name in names]
    ledger = _worker(plan, LEDGER, broker.context(LEDGER), (LEDGER,))
    names_of_effectors = needed_effectors(plan.config, attached=model.use.backend != "composer")
    if not names_of_effectors:
        return (*deciders, ledger)
    effectors = _worker(plan, EFFECTORS, broker.context(EFFECTORS), names_of_effectors, worker_flags(model))
    return (*deciders, ledger, effectors)


def _gateway(plan: Plan, broker: SetBroker, listener: socket.socket) -> WorkerProgram:
    command = (sys.executable, "-P", "-m", "neuraxis_server", "gateway", "--listener", str(listener.fileno()))
    contexts = ("--context", broker.context(GATEWAY), "--operator-context", broker.context(OPERATOR))
    flags = ("--data", str(plan.data.path), *contexts, *plan.config_flags)
    return WorkerProgram(GATEWAY, (*command, *flags), keep_fds=(listener.fileno(),))


def _worker(plan: Plan, name: str, context: str, hosted: tuple[str, ...], flags: tuple[str, ...] = ()) -> WorkerProgram:
    # -P: a folder named `deploy` in the working folder must not be imported instead of ours.
    command = (sys.executable, "-P", "-m", "neuraxis_server", "worker", *hosted)
    options = ("--data", str(plan.data.path), "--context", context, "--name", name)
    return WorkerProgram(name, (*command, *options, *without_overridden((*plan.config_flags, *flags))))


async def prepare_embedded(broker: EmbeddedBroker, config: Config, ledger: Path | None = None) -> None:
    """Make the stream and the buckets, as the only user who may; refuse a store that has lost its stream.

    With ``ledger``, the path of the ledger: check by snapshots whether more of the log's end was lost than it shows.
    """
    admin = BrokerChoice(context=str(context_file(broker.layout.contexts, ADMIN)))
    stream = config.log.stream
    exists = any(path.name == stream for path in broker.layout.streams())
    try:
        await prepare(access_of(admin, DataFolder(Path()), name="neuraxis up"), config, create=not exists)
    except Misconfigured as wrong:
        cause = wrong.__cause__
        if not (exists and isinstance(cause, ApiError) and cause.number == NOT_FOUND):
            raise
        # nats-server skips a stream whose files it cannot read, and would let a new one be made in its place.
        reason = "; ".join(line for line in broker.complaints() if stream in line) or "it gives no reason"
        raise ProgramFailed(
            f"nats-server cannot read stream {stream} in {broker.layout.store} ({reason}):"
            " put a copy of the store in its place, or start in another folder with --data"
        ) from wrong
    if ledger is not None:
        ledger_user = BrokerChoice(context=str(context_file(broker.layout.contexts, LEDGER)))
        access = access_of(ledger_user, DataFolder(Path()), name="neuraxis up")
        await record_loss_from_snapshots(access, config, ledger)


async def prepare(access: Access, config: Config, *, create: bool = True, lasting: bool = False) -> None:
    """Make, or check, the stream and the buckets that workers need.

    Args:
        access: How to connect to the broker, and as which user.
        config: Names, partitions, replicas, and whether people's words are sealed.
        create: Whether to make a missing stream; otherwise that is an error.
        lasting: Whether the bucket of heartbeats is kept on disk: needed if nobody makes it again after a restart of
            the broker.

    Raises:
        LogError: the broker cannot be reached, or is not what this release needs.
    """
    settings = config.log
    async with await Connection.open(access) as connection:
        log = await configured_log(connection, settings, create=create)
        await KeyValueSnapshots.over(connection, settings.replicas)
        await KeyValueMembership.over(connection, settings.replicas, lasting=lasting)
        of_keys = (keys_bucket(log.stream),) if log.sealing is not None else ()
        await refuse_roll_ups(connection, MEMBERS_BUCKET, SNAPSHOTS_BUCKET, *of_keys)
        await log_lost_keys(connection, log.stream)


def durability_promise(sync: str, replicas: int) -> str:
    """Return which failures an acknowledged append survives, by how often servers flush and how many have a copy."""
    if sync == "always":
        return "an acknowledged append survives a power cut"
    if sync == "never":
        return "an acknowledged append survives a crash of the broker, but a power cut may lose the whole log"
    if replicas > 1:
        return f"an acknowledged append survives the loss of a server; a power cut of all may lose the last {sync}"
    return f"an acknowledged append survives a crash of the broker, but a power cut may lose the last {sync}"
