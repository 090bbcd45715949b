"""Keeping a set of processes running: started in phases, restarted when they end, stopped in reverse order.

A :class:`Program` says what to run, and the pure :class:`Backoff` how long to wait before a restart. Nothing here knows
about brokers or workers.
"""

import asyncio
import random
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from deploy.processes.supervising.child import end, reap
from events.exhaustion import exhausted
from events.loggers import get_logger

_logger = get_logger("neuraxis.supervisor")

ATTEMPTS = 5
"""How often a program may end before it was ever ready; then it is given up."""


class ProgramFailed(Exception):
    """A program cannot be started, and trying again would not help; the message says why and what to do."""

    code = "program_failed"


class ProgramRefused(ProgramFailed):
    """A program cannot run as it is configured, for example on a port in use: only a person can correct that."""

    code = "program_refused"


class Program(Protocol):
    """Something to keep running."""

    @property
    def name(self) -> str:
        """Its name in logs, unique in its set."""

    @property
    def stop_deadline(self) -> float:
        """Seconds that it may take to end when asked, before it is killed."""

    async def start(self) -> Process:
        """Start it; raises ProgramFailed if that is not possible."""

    async def ready(self, process: Process) -> None:
        """Wait until it serves; cancelled if the process ends first. Raises ProgramFailed if it never will serve."""

    def refusal(self, status: int) -> str | None:
        """Return why it must not be started again after an end before readiness; None if another try may help."""

    def release(self) -> None:
        """Release what the last start opened; called when the process has ended."""


class Backoff(msgspec.Struct, frozen=True):
    """How long to wait before a restart: briefly at first, then twice as long each time. All in seconds.

    After a run of ``stable`` seconds or more, the next wait is the ``first`` again.
    """

    first: float = 0.1
    most: float = 15.0
    stable: float = 10.0

    def wait(self, failures: int, draw: float) -> float:
        """Return the wait after the ``failures``-th end in a row (1: the first), for a uniform ``draw`` in [0, 1).

        The wait lies between half of the exponential step and the whole of it, so that programs that died together are
        not restarted together.
        """
        step = min(self.most, self.first * 2.0 ** min(failures - 1, 32))
        return step * (0.5 + draw / 2)


class Status(msgspec.Struct, frozen=True):
    """The present state of a program; ``pid`` is 0 while it does not run."""

    name: str
    pid: int = 0
    ready: bool = False
    restarts: int = 0


class ProgramKeeper:
    """Keeps one program running until told to stop.

    Attributes:
        ready: Set while the program serves.
        status: The program's present state.
    """

    def __init__(self, program: Program, backoff: Backoff, on_change: Callable[[], None]) -> None:
        self.program = program
        self.ready = asyncio.Event()
        self.status = Status(program.name)
        self._backoff = backoff
        self._on_change = on_change
        self._stop = asyncio.Event()
        self._kill_now = asyncio.Event()
        self._was_ready = False

    def stop(self, kill_now: bool = False) -> None:
        """End the program and do not restart it; ``kill_now`` gives it no time to end by itself."""
        self._stop.set()
        if kill_now:
            self._kill_now.set()

    async def run(self) -> None:
        """Keep it running until :meth:`stop`; raises ProgramFailed if it was never ready."""
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            cause = await self._run_once()
            if self._stop.is_set():
                return
            failures = 1 if time.monotonic() - began >= self._backoff.stable else failures + 1
            if not self._was_ready and failures >= ATTEMPTS:
                raise ProgramFailed(f"{self.program.name} ended {failures} times before it was ready: {cause}")
            wait = self._backoff.wait(failures, random.random())
            _logger.warning("program_restarts", program=self.program.name, cause=cause, wait_s=round(wait, 2))
            self._update(restarts=self.status.restarts + 1)
            await _wait_at_most(self._stop.wait(), wait)

    async def _run_once(self) -> str:
        """Run the program once, until it ends or is stopped; return the cause of its end."""
        name = self.program.name
        try:
            process = await self.program.start()
        except Exception as failed:
            if not self._was_ready or not _is_temporary(failed):
                raise
            return str(failed)
        self._update(pid=process.pid)
        ending = asyncio.create_task(process.wait(), name=f"{name} ends")
        stopping = asyncio.create_task(self._stop.wait(), name=f"{name} stops")
        getting_ready = asyncio.create_task(self.program.ready(process), name=f"{name} gets ready")
        try:
            await asyncio.wait((ending, stopping, getting_ready), return_when=asyncio.FIRST_COMPLETED)
            if getting_ready.done() and not ending.done():
                if error := getting_ready.exception():
                    return self._failure_to_get_ready(error)
                self._note_ready()
                await asyncio.wait((ending, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                return "it was told to stop"
            return self._cause_of_end(ending.result())
        finally:
            for task in (stopping, getting_ready):
                task.cancel()
            await asyncio.gather(stopping, getting_ready, return_exceptions=True)
            if not ending.done() and not await end(process, self.program.stop_deadline, self._kill_now):
                _logger.warning("program_killed", program=name, reason="it did not end when asked")
            await ending
            reap(process)
            self.program.release()
            self.ready.clear()
            self._update(pid=0, ready=False)

    def _note_ready(self) -> None:
        self._was_ready = True
        self.ready.set()
        self._update(ready=True)
        _logger.info("program_ready", program=self.program.name, pid=self.status.pid)

    def _failure_to_get_ready(self, wrong: BaseException) -> str:
        if not self._was_ready or not _is_temporary(wrong):
            raise wrong
        return str(wrong)

    def _cause_of_end(self, status: int) -> str:
        if not self._was_ready and (reason := self.program.refusal(status)) is not None:
            raise ProgramRefused(reason)
        return f"killed by signal {-status}" if status < 0 else f"exit status {status}"

    def _update(self, **change: object) -> None:
        self.status = msgspec.structs.replace(self.status, **change)
        self._on_change()


class Supervisor:
    """Keeps programs running, in phases: a phase starts when the one before it is ready.

    Args:
        phases: The programs, in the order of starting; they are stopped in the reverse order.
        backoff: Decides the waits before restarts.
        on_change: Called whenever a program starts, becomes ready or ends.
        stop_last: Names of programs that are told to stop only once the others of their phase have ended.
        on_last_phase_ended: Awaited when the last phase was started and all its programs have ended, before the phases
            before it are stopped. It must have a deadline, and not raise.
    """

    def __init__(
        self,
        phases: Sequence[Sequence[Program]],
        backoff: Backoff | None = None,
        on_change: Callable[[], None] = lambda: None,
        *,
        stop_last: Collection[str] = (),
        on_last_phase_ended: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._stop_last = frozenset(stop_last)
        self._on_last_phase_ended = on_last_phase_ended
        self._phases = [
            [ProgramKeeper(program, backoff or Backoff(), on_change) for program in phase] for phase in phases
        ]
        self._running: list[dict[asyncio.Task[None], ProgramKeeper]] = []

    def statuses(self) -> list[Status]:
        """Return the state of every program, in the order of starting."""
        return [keeper.status for phase in self._phases for keeper in phase]

    def kill_all(self) -> None:
        """Kill all processes that are still running; called on a second Ctrl-C."""
        for phase in self._phases:
            for keeper in phase:
                keeper.stop(kill_now=True)

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Start all, call ``ready`` once when every program serves, and keep them running until ``stop`` is set.

        Raises:
            ProgramFailed: a program could not be started; the others have been stopped in order.
        """
        stopping = asyncio.create_task(stop.wait(), name="set stops")
        try:
            for phase in self._phases:
                await self._start(phase, stopping)
                if stopping.done():
                    return
            ready()
            await self._wait_for_failure(stopping)
        finally:
            await self._stop_all()
            stopping.cancel()

    async def _start(self, phase: Sequence[ProgramKeeper], stopping: asyncio.Task[bool]) -> None:
        self._running.append({asyncio.create_task(keeper.run(), name=keeper.program.name): keeper for keeper in phase})
        for keeper in phase:
            getting_ready = asyncio.create_task(keeper.ready.wait(), name=f"{keeper.program.name} is awaited")
            try:
                await self._wait_for_failure(stopping, getting_ready)
            finally:
                getting_ready.cancel()
            if stopping.done():
                return

    async def _wait_for_failure(self, *others: asyncio.Task[bool]) -> None:
        """Wait for any of ``others``; raises the error of a keeper that gave up."""
        keeping = [task for phase in self._running for task in phase]
        await asyncio.wait((*keeping, *others), return_when=asyncio.FIRST_COMPLETED)
        for task in keeping:
            if task.done():
                task.result()

    async def _stop_all(self) -> None:
        was_all_started = len(self._running) == len(self._phases)
        for number, phase in reversed([*enumerate(self._running, 1)]):
            for is_last in (False, True):
                await _end_all({t: k for t, k in phase.items() if (k.program.name in self._stop_last) is is_last})
            if was_all_started and number == len(self._phases) and self._on_last_phase_ended is not None:
                await self._on_last_phase_ended()


async def _end_all(keepers: Mapping[asyncio.Task[None], ProgramKeeper]) -> None:
    if not keepers:
        return
    for keeper in keepers.values():
        keeper.stop()
    await asyncio.wait(keepers)
    for task, keeper in keepers.items():
        if not task.cancelled() and (wrong := task.exception()) is not None:
            _logger.debug("program_gave_up", program=keeper.program.name, error=str(wrong))


def _is_temporary(wrong: BaseException) -> bool:
    """Whether a program that was ready before is to be tried again, and the others run on meanwhile.

    What this process or its machine has run out of, such as file descriptors or threads, comes back.
    """
    return isinstance(wrong, ProgramFailed) or bool(exhausted(wrong))


async def _wait_at_most(awaitable: Awaitable[object], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await awaitable
    except TimeoutError:
        return
