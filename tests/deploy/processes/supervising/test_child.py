"""Child processes end with their parent, however that ends."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from deploy.processes.supervising.child import end, reap, spawn
from tests.deploy.waiting import is_gone, until

GUARDED = [pytest.param(True, id="guardian"), pytest.param(False, id="kernel")]

PARENT = """
import asyncio, sys
from deploy.processes.supervising.child import spawn

async def main(guarded, child):
    await spawn([sys.executable, "-c", child], guarded=guarded)
    await asyncio.Event().wait()

asyncio.run(main(sys.argv[1] == "True", sys.argv[2]))
"""

CHILD = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open({path!r} + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename({path!r} + ".new", {path!r})
time.sleep(600)
"""


def skip_where_the_kernel_cannot(guarded: bool) -> None:
    if not guarded and sys.platform != "linux":
        pytest.skip("only Linux ties a child's life to its parent's by itself")


@pytest.mark.parametrize("guarded", GUARDED)
def test_a_child_is_killed_when_its_parent_is_killed(guarded: bool, tmp_path: Path) -> None:
    skip_where_the_kernel_cannot(guarded)
    pid_file = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(guarded), CHILD.format(path=str(pid_file))])
    until(pid_file.exists, "the child starts")
    child = int(pid_file.read_text())
    parent.kill()
    parent.wait()
    until(lambda: is_gone(child), "the child ends after its parent")


@pytest.mark.parametrize("guarded", GUARDED)
def test_a_child_that_does_not_end_when_asked_is_killed(guarded: bool, tmp_path: Path) -> None:
    skip_where_the_kernel_cannot(guarded)
    pid_file = tmp_path / "pid"

    async def scenario() -> bool:
        process = await spawn([sys.executable, "-c", CHILD.format(path=str(pid_file))], guarded=guarded)
        await asyncio.to_thread(until, pid_file.exists, "the child starts")
        return await end(process, deadline=0.1)

    assert not asyncio.run(scenario())
    until(lambda: is_gone(int(pid_file.read_text())), "the child is killed")


@pytest.mark.parametrize("guarded", GUARDED)
def test_a_child_that_ends_when_asked_is_not_killed(guarded: bool, tmp_path: Path) -> None:
    skip_where_the_kernel_cannot(guarded)
    started, tidied = tmp_path / "started", tmp_path / "tidied"
    code = (
        "import pathlib, signal, sys\n"
        f"def tidy(*_): pathlib.Path({str(tidied)!r}).touch(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, tidy)\n"
        f"pathlib.Path({str(started)!r}).touch()\n"
        "while True: signal.pause()\n"
    )

    async def scenario() -> bool:
        process = await spawn([sys.executable, "-c", code], guarded=guarded)
        await asyncio.to_thread(until, started.exists, "the child starts")
        return await end(process, deadline=60)

    assert asyncio.run(scenario())
    assert tidied.exists()


@pytest.mark.parametrize("guarded", GUARDED)
def test_the_exit_status_of_a_child_is_seen(guarded: bool) -> None:
    skip_where_the_kernel_cannot(guarded)

    async def scenario() -> int:
        process = await spawn([sys.executable, "-c", "raise SystemExit(7)"], guarded=guarded)
        status = await process.wait()
        reap(process)
        return status

    assert asyncio.run(scenario()) == 7


@pytest.mark.parametrize("guarded", GUARDED)
def test_a_kept_descriptor_is_the_same_in_the_child(guarded: bool) -> None:
    skip_where_the_kernel_cannot(guarded)
    reading, writing = os.pipe()

    async def scenario() -> None:
        code = f"import os; os.write({writing}, b'hello')"
        process = await spawn([sys.executable, "-c", code], keep_fds=(writing,), guarded=guarded)
        os.close(writing)
        await process.wait()
        reap(process)

    asyncio.run(scenario())
    assert os.read(reading, 16) == b"hello"
    assert os.read(reading, 16) == b"", "the guardian still holds the descriptor"
    os.close(reading)


def test_killing_the_guardian_does_not_leave_its_child_once_it_is_reaped(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    async def scenario() -> None:
        process = await spawn([sys.executable, "-c", CHILD.format(path=str(pid_file))], guarded=True)
        await asyncio.to_thread(until, pid_file.exists, "the child starts")
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        reap(process)

    asyncio.run(scenario())
    until(lambda: is_gone(int(pid_file.read_text())), "the child ends")


def test_a_program_that_does_not_exist_is_an_error_at_once() -> None:
    with pytest.raises(OSError, match="no-such-program"):
        asyncio.run(spawn(["no-such-program"]))


def test_sleeps_of_a_child_may_end_as_late_as_asked() -> None:
    skip_where_the_kernel_cannot(guarded=False)

    async def slack_ns(timer_slack_us: int) -> int:
        with tempfile.TemporaryFile() as output:
            code = "print(open('/proc/self/timerslack_ns').read())"
            process = await spawn([sys.executable, "-c", code], output=output, timer_slack_us=timer_slack_us)
            await process.wait()
            reap(process)
            output.seek(0)
            return int(output.read())

    assert asyncio.run(slack_ns(300)) == 300_000
    assert asyncio.run(slack_ns(0)) == int(Path("/proc/self/timerslack_ns").read_text())
