"""The supervisor, on small programs of the tests' own."""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.processes.supervising.supervisor import ATTEMPTS, Backoff, ProgramFailed, Supervisor
from deploy.processes.worker_program import WorkerProgram
from tests.deploy.waiting import DEADLINE_S, is_gone, until

SERVES = """
import pathlib, signal, socket, sys
name, folder, line = sys.argv[1], pathlib.Path(sys.argv[2]), socket.socket(fileno=int(sys.argv[-1]))

def note(what):
    with (folder / "journal").open("a") as journal:
        journal.write(what + " " + name + "\\n")

def stop(*_):
    note("stops")
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
note("starts")
line.send(b"READY\\n")
while True:
    signal.pause()
"""

QUICK = Backoff(first=0.01, most=0.05, stable=3600)


def program(name: str, folder: Path, code: str = SERVES, stop_deadline: float = DEADLINE_S) -> WorkerProgram:
    return WorkerProgram(name, (sys.executable, "-c", code, name, str(folder)), stop_deadline=stop_deadline)


def journal(folder: Path) -> list[str]:
    return (folder / "journal").read_text().splitlines()


def supervise(
    supervisor: Supervisor, meanwhile: Callable[[], Awaitable[None]] | None = None, deadline: float = DEADLINE_S
) -> None:
    """Run until ready, then ``meanwhile``, then stop."""

    async def scenario() -> None:
        stop, ready = asyncio.Event(), asyncio.Event()
        running = asyncio.create_task(supervisor.run(stop, ready.set))
        getting_ready = asyncio.create_task(ready.wait())
        async with asyncio.timeout(deadline):
            await asyncio.wait((running, getting_ready), return_when=asyncio.FIRST_COMPLETED)
            getting_ready.cancel()
            if ready.is_set() and meanwhile is not None:
                await meanwhile()
            stop.set()
            await running

    asyncio.run(scenario())


async def seen(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(until, condition, "what the test waits for")


def test_stages_start_in_order_and_stop_in_reverse(tmp_path: Path) -> None:
    supervise(Supervisor([[program("broker", tmp_path)], [program("worker", tmp_path)]]))
    assert journal(tmp_path) == ["starts broker", "starts worker", "stops worker", "stops broker"]


def test_what_is_stopped_last_ends_after_the_others_of_its_phase_and_before_the_phases_before_it(
    tmp_path: Path,
) -> None:
    at_the_end: list[list[str]] = []

    async def note() -> None:
        at_the_end.append(journal(tmp_path))

    slow = SERVES.replace("def stop(*_):", "def stop(*_):\n    import time; time.sleep(0.3)")
    last_phase = [program("ledger", tmp_path), program("worker", tmp_path, slow)]
    supervise(Supervisor([[program("broker", tmp_path)], last_phase], stop_last=("ledger",), on_last_phase_ended=note))
    assert journal(tmp_path)[-3:] == ["stops worker", "stops ledger", "stops broker"]
    assert at_the_end == [journal(tmp_path)[:-1]]


def test_the_end_of_a_last_phase_that_was_never_started_is_not_told(tmp_path: Path) -> None:
    told: list[str] = []

    async def note() -> None:
        told.append("ended")

    broken = program("broken", tmp_path, "raise SystemExit(3)")
    with pytest.raises(ProgramFailed):
        supervise(Supervisor([[broken], [program("worker", tmp_path)]], QUICK, on_last_phase_ended=note))
    assert told == []


def test_a_program_that_is_killed_is_started_again(tmp_path: Path) -> None:
    supervisor = Supervisor([[program("worker", tmp_path)]], QUICK)

    async def kill_it() -> None:
        first = supervisor.statuses()[0].pid
        os.kill(first, signal.SIGKILL)
        await seen(lambda: supervisor.statuses()[0].ready and supervisor.statuses()[0].pid != first)

    supervise(supervisor, kill_it)
    assert supervisor.statuses()[0].restarts == 1
    assert journal(tmp_path) == ["starts worker", "starts worker", "stops worker"]


def test_the_others_run_on_while_one_is_started_again(tmp_path: Path) -> None:
    supervisor = Supervisor([[program("broker", tmp_path)], [program("worker", tmp_path)]], QUICK)

    async def kill_the_broker() -> None:
        worker = supervisor.statuses()[1].pid
        os.kill(supervisor.statuses()[0].pid, signal.SIGKILL)
        await seen(lambda: supervisor.statuses()[0].restarts == 1 and supervisor.statuses()[0].ready)
        assert supervisor.statuses()[1].pid == worker

    supervise(supervisor, kill_the_broker)


def test_a_program_that_never_gets_ready_is_given_up_and_the_others_stopped(tmp_path: Path) -> None:
    broken = program("broken", tmp_path, "raise SystemExit(3)")
    supervisor = Supervisor([[program("broker", tmp_path)], [broken]], QUICK)
    with pytest.raises(ProgramFailed, match=f"broken ended {ATTEMPTS} times before it was ready: exit status 3"):
        supervise(supervisor)
    assert journal(tmp_path) == ["starts broker", "stops broker"]


def test_a_program_that_says_it_is_used_wrongly_is_not_tried_again(tmp_path: Path) -> None:
    wrong = program("wrong", tmp_path, f"open({str(tmp_path / 'tries')!r}, 'a').write('x'); raise SystemExit(2)")
    with pytest.raises(ProgramFailed, match="wrong cannot run as it is configured"):
        supervise(Supervisor([[wrong]], QUICK))
    assert (tmp_path / "tries").read_text() == "x"


def test_a_program_that_cannot_be_started_again_for_want_of_descriptors_does_not_end_the_others(tmp_path: Path) -> None:
    lacks: list[Exception] = [OSError(24, "Too many open files"), RuntimeError("can't start new thread"), MemoryError()]

    class Lacking(WorkerProgram):
        async def start(self) -> asyncio.subprocess.Process:
            if supervisor.statuses()[0].restarts and lacks:
                raise lacks.pop()
            return await super().start()

    worker = Lacking("worker", (sys.executable, "-c", SERVES, "worker", str(tmp_path)), stop_deadline=DEADLINE_S)
    supervisor = Supervisor([[worker, program("other", tmp_path)]], QUICK)

    async def kill_it() -> None:
        other = supervisor.statuses()[1].pid
        os.kill(supervisor.statuses()[0].pid, signal.SIGKILL)
        await seen(lambda: supervisor.statuses()[0].ready and supervisor.statuses()[0].restarts == 4)
        assert supervisor.statuses()[1].pid == other

    supervise(supervisor, kill_it)
    assert journal(tmp_path).count("starts other") == 1


def test_without_a_descriptor_left_a_program_cannot_be_started_and_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
        try:
            await program("worker", tmp_path).start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)

    with pytest.raises(ProgramFailed, match=r"worker cannot be started: .*Too many open files"):
        asyncio.run(main())


def test_a_program_that_cannot_be_started_fails_the_set(tmp_path: Path) -> None:
    missing = WorkerProgram("missing", (str(tmp_path / "no-such-program"),))
    with pytest.raises(ProgramFailed, match="missing cannot be started"):
        supervise(Supervisor([[missing]], QUICK))


def test_a_program_that_ignores_the_wish_to_stop_is_killed_after_its_deadline(tmp_path: Path) -> None:
    deaf = SERVES.replace("signal.signal(signal.SIGTERM, stop)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    supervisor = Supervisor([[program("deaf", tmp_path, deaf, stop_deadline=0.05)]])
    pids: list[int] = []

    async def note_it() -> None:
        pids.append(supervisor.statuses()[0].pid)

    supervise(supervisor, note_it)
    assert is_gone(pids[0])


def test_a_second_wish_kills_what_has_not_ended(tmp_path: Path) -> None:
    deaf = SERVES.replace("signal.signal(signal.SIGTERM, stop)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    supervisor = Supervisor([[program("deaf", tmp_path, deaf, stop_deadline=10 * DEADLINE_S)]])

    async def hurry() -> None:
        supervisor.kill_all()

    supervise(supervisor, hurry)
    assert journal(tmp_path) == ["starts deaf"]


def test_a_stop_while_starting_ends_what_has_started(tmp_path: Path) -> None:
    silent = SERVES.replace('line.send(b"READY\\n")', "")

    async def scenario() -> None:
        stop = asyncio.Event()
        supervisor = Supervisor([[program("silent", tmp_path, silent)], [program("never", tmp_path)]])
        running = asyncio.create_task(supervisor.run(stop))
        async with asyncio.timeout(DEADLINE_S):
            await seen(lambda: (tmp_path / "journal").exists() and journal(tmp_path) == ["starts silent"])
            stop.set()
            await running

    asyncio.run(scenario())
    assert journal(tmp_path) == ["starts silent", "stops silent"]


def test_changes_are_told_as_they_happen(tmp_path: Path) -> None:
    told: list[tuple[bool, bool]] = []
    supervisor = Supervisor(
        [[program("worker", tmp_path)]],
        on_change=lambda: told.append((supervisor.statuses()[0].pid > 0, supervisor.statuses()[0].ready)),
    )
    supervise(supervisor)
    assert told == [(True, False), (True, True), (False, False)]


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_between_half_and_all_of_its_step_and_never_above_the_most(failures: int, draw: float) -> None:
    backoff = Backoff()
    step = min(backoff.most, backoff.first * 2.0 ** min(failures - 1, 32))
    assert step / 2 <= backoff.wait(failures, draw) <= step <= backoff.most


def test_the_first_restart_is_quick() -> None:
    assert Backoff().wait(1, 0.999) <= 0.1
