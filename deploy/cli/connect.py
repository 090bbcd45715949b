"""How a command reaches the log, and how its work is kept within its deadline.

The client of the broker is imported when it is used: the help of every command imports this module.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import copy_context
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from deploy.cli.options import Target
from deploy.cli.wrapped_lines import say_note
from deploy.operating.deadline import Deadline
from deploy.processes.event_loop import run_command
from events.errors import LogError

SILENCE_S = 10.0
"""Seconds without an answer after which a reading command gives up. Reading a long log may take longer."""

_UNCONFIRMED_S, _CHECK_INTERVAL_S = 2.0, 0.1
"""Seconds without the broker's confirmation after which a command looks for the reason, and the interval of checks."""

_GRACE_S = 0.25
"""Seconds after the deadline in which the work may still return its own result or error."""

if TYPE_CHECKING:
    from actors.gateway.agents import AgentPer
    from deploy.config.loading import Config
    from deploy.processes.running_set import RunSettings
    from events.jetstream import Access, JetStreamLog
    from schemas.intake.limits import InputLimits

T = TypeVar("T")


def run_within(target: Target, seconds: float, work: Callable[[Deadline], Coroutine[Any, Any, T]]) -> T:
    """Run a command's work within some seconds from the command's start; raises as ``Deadline.enforced``."""
    return run_until(Deadline(seconds, target.begun), work)


def run_until(deadline: Deadline, work: Callable[[Deadline], Coroutine[Any, Any, T]]) -> T:
    """Run work until a deadline, whatever it is doing then; raises as ``Deadline.enforced``.

    The work runs in a thread of its own, which is left behind when the time is up. An event loop alone would notice the
    deadline only between two steps, and on a busy machine one step (an import, a batch to fold, a connection to close)
    may take seconds.
    """
    context = click.get_current_context(silent=True)
    done: Future[T] = Future()
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def bounded() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        async with deadline.enforced():
            return await work(deadline)

    def run() -> None:
        try:
            with context.scope(cleanup=False) if context is not None else nullcontext():
                done.set_result(run_command(bounded()))
        except BaseException as wrong:
            done.set_exception(wrong)

    Thread(target=copy_context().run, args=(run,), name="command", daemon=True).start()
    try:
        return done.result(deadline.left + _GRACE_S)
    except TimeoutError:
        if done.done():
            return done.result()
        raise deadline.overdue() from None
    except KeyboardInterrupt:
        for loop, task in started:
            with suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(task.cancel)
        wait((done,), _GRACE_S)
        raise


def names_broker(target: Target, config: "Config") -> bool:
    """Whether flags, the environment or the configuration name a broker; else the data folder's own is used."""
    from deploy.processes.broker_access import effective_choice

    return effective_choice(target.flags, config.broker, os.environ).named


def access_to(target: Target, user: str = "") -> "Access":
    """Return how to reach the broker that the options name; ``user``: the login at an embedded broker.

    Raises:
        BadConfiguration, BadContext, NotRunning: see ``deploy.processes.broker_access`` and ``deploy.config.loading``.
    """
    from deploy.processes.broker import OPERATOR
    from deploy.processes.broker_access import access_of, effective_choice

    choice = effective_choice(target.flags, target.config().broker, os.environ)
    access = access_of(choice, target.data, user=user or OPERATOR, name="neuraxis cli")
    return msgspec.structs.replace(access, fails_if_denied=True)


@asynccontextmanager
async def admin_access(target: Target, config: "Config") -> AsyncIterator["Access"]:
    """Give the admin's access to the named broker, or else to the data folder's own, which runs for the block.

    Raises:
        BadContext: see ``deploy.processes.broker_access.access_of``.
        FolderTaken, Misconfigured, ProgramFailed: see ``deploy.copying.repartitioning.within_folder``.
    """
    from deploy.copying.repartitioning import within_folder
    from deploy.processes.broker import ADMIN

    if names_broker(target, config):
        yield access_to(target, ADMIN)
        return
    async with within_folder(target.data, config) as access:
        yield access


def stream_of(target: Target) -> str:
    """Return the name of the stream: the running set's, unless the options name a broker; else the configured one."""
    from deploy.processes.running_set import NotRunning

    config = target.config()
    if not names_broker(target, config):
        with suppress(NotRunning):
            return target.data.read().stream
    return config.log.stream


def target_store(target: Target) -> Path | None:
    """Return the folder of the streams of the running set's own broker; None if another broker is asked."""
    from deploy.processes.broker.storage_watch import own_store
    from deploy.processes.running_set import NotRunning

    if not names_broker(target, target.config()):
        with suppress(NotRunning):
            return own_store(target.data.path, target.data.read().contexts)
    return None


def agent_per(target: Target) -> "AgentPer":
    """Return whom each agent serves: by the settings of the running set, unless flags name settings or a broker."""
    in_force = _settings_in_force(target)
    return target.config().gateway.agent_per if in_force is None else in_force.agent_per


def note_default_agent(target: Target) -> None:
    """Say on stderr that ``--agent`` was not given, where each user or session has an agent of its own."""
    from deploy.config.loading import BadConfiguration
    from deploy.processes.broker_access import BadContext

    with suppress(BadConfiguration, BadContext), target.unnoted_settings():  # the command itself reports what it needs
        if (per := agent_per(target)) != "shared":
            say_note(
                f"agent default is meant: gateway.agent_per is {per!r}, so that each {per} has an agent of its own, "
                "which --agent names (`neuraxis why EXCHANGE` shows it)"
            )


def input_limits(target: Target) -> "InputLimits":
    """Return how large an input may be: by the settings of the running set, unless flags name settings or a broker."""
    in_force = _settings_in_force(target)
    return (in_force.limits if in_force is not None else None) or target.config().gateway.limits


def _settings_in_force(target: Target) -> "RunSettings | None":
    """Return the settings of the running set; None if no set runs, or flags name settings or a broker."""
    return None if names_broker(target, target.config()) else target.settings_in_force()


@asynccontextmanager
async def open_log(target: Target, deadline: Deadline | None = None) -> AsyncIterator["JetStreamLog"]:
    """Open the log for a command, and close it after.

    Args:
        target: The set or broker that the options name.
        deadline: The command's deadline; for its error message, it is told the broker's address, and why the broker
            stores nothing.

    Raises:
        Unavailable: no broker answers.
        Misconfigured: the broker holds no log, or is not what this release needs.
        BadConfiguration, BadContext, NotRunning: see :func:`access_to`.
    """
    from events.jetstream import JetStreamLog

    access = access_to(target)
    if deadline is not None:
        deadline.note_servers(access.servers)
    log = await JetStreamLog.connect(access, stream=stream_of(target), create=False)
    log.silence_s = SILENCE_S
    reason_search = None
    try:
        await _note_removed(log, target.data.ledger)
        if deadline is not None:
            reason_search = asyncio.create_task(_find_reason(deadline, log, target_store(target)))
        yield log
    finally:
        if reason_search is not None:
            reason_search.cancel()
            await asyncio.gather(reason_search, return_exceptions=True)
        await log.close()


async def _note_removed(log: "JetStreamLog", file: Path) -> None:
    """Attach the ledger to a log whose stream was trimmed, so that all is readable; print a note if it is not here.

    A note is printed also where the ledger cannot be read, since an archive is missing, say: a command that only sends
    something needs no ledger.
    """
    from deploy.config.configured_log import attach_ledger

    why = ""
    try:
        if await attach_ledger(log, file):
            return
    except LogError as wrong:
        why = f" ({wrong})"
    say_note(f"{log.unseen}: what they hold is not seen here{why}")


async def _find_reason(deadline: Deadline, log: "JetStreamLog", store: Path | None) -> None:
    """If the broker does not confirm for some time, find out why: with a full disk it does not answer at all.

    If it has confirmed, but no actor has answered, it is asked once, near the deadline, whether it still stores.
    """
    from deploy.processes.broker.storage_watch import storing_fault

    while True:
        await asyncio.sleep(_CHECK_INTERVAL_S)
        if deadline.is_nearly_over:
            deadline.reason = await storing_fault(log.connection, log.stream, store)
            return
        if deadline.unconfirmed_s >= min(_UNCONFIRMED_S, (deadline.waited + deadline.left) / 4):
            deadline.reason = await storing_fault(log.connection, log.stream, store) or deadline.reason
            await asyncio.sleep(_UNCONFIRMED_S)
