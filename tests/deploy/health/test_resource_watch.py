"""What is nearly used up is recorded once, and so is that enough is left again, across restarts too."""

import asyncio
import errno
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.health import resource_watch
from deploy.health.resource_watch import ResourceWatch, changes, left_on_machine
from deploy.health.resources import REMEDIES, Remaining
from events.decoding import Recorded, decode
from events.log import Log
from schemas.vocabulary.ledger import ResourceScarce, ResourceSufficient
from tests.broker import Broker
from tests.events.setting import Setting, collect, run_on_jetstream

HERE = f"process gateway on {socket.gethostname()}"
KEY = ("file descriptors", HERE)


def left(free: int, whose: str = HERE) -> Remaining:
    return Remaining("file descriptors", whose, free, 1_000)


@pytest.mark.parametrize(
    ("scarce", "found", "recorded"),
    [
        ([], [left(100)], []),
        ([], [left(99)], [ResourceScarce]),
        ([KEY], [left(99)], []),
        ([KEY], [left(124)], []),
        ([KEY], [left(125)], [ResourceSufficient]),
        ([KEY], [], [ResourceSufficient]),
        ([], [left(0), left(0, "process ledger")], [ResourceScarce, ResourceScarce]),
        ([KEY], [left(0, "process ledger")], [ResourceScarce, ResourceSufficient]),
    ],
)
def test_only_changes_are_recorded_and_not_each_time_the_limit_is_crossed(
    scarce: list[tuple[str, str]], found: list[Remaining], recorded: list[type]
) -> None:
    assert [type(event) for event in changes(frozenset(scarce), found)] == recorded


def test_what_the_log_says_is_scarce_is_not_recorded_again_by_the_next_process(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(setting: Setting) -> None:
        frees = [50, 50, 40, 700, 700, 30]
        for free in frees:  # each look is another process's first
            watch = ResourceWatch(setting.log, lambda free=free: [left(free)], source="s", build="b")  # type: ignore[misc]
            await watch.look()
        assert await told(setting.log) == [("scarce", 50), ("sufficient", 0), ("scarce", 30)]
        elsewhere = ResourceWatch(
            setting.log, lambda: [left(1, "process gateway on another-host")], source="s", build="b"
        )
        with monkeypatch.context() as machine:
            machine.setattr("socket.gethostname", lambda: "another-host")
            await elsewhere.look()
        own = ResourceWatch(setting.log, lambda: [left(30)], source="s", build="b")
        await own.look()
        assert len(await told(setting.log)) == 4, "another machine's is not ended here"

    run_on_jetstream(broker, body)


def test_a_watch_goes_on_after_what_has_run_out_kept_it_from_looking(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the very thing that is watched: without a thread or a file descriptor there is no looking."""
    monkeypatch.setattr(resource_watch, "INTERVAL_S", 0.01)
    wrong = [OSError(errno.EMFILE, "Too many open files"), RuntimeError("can't start new thread")]

    def measure() -> list[Remaining]:
        if wrong:
            raise wrong.pop()
        return [left(50)]

    async def body(setting: Setting) -> None:
        watching = asyncio.create_task(ResourceWatch(setting.log, measure, source="s", build="b").run())
        async with asyncio.timeout(20):
            while not await told(setting.log):
                assert not watching.done()
                await asyncio.sleep(0.01)
        watching.cancel()
        assert await told(setting.log) == [("scarce", 50)]

    run_on_jetstream(broker, body)


def test_what_cannot_be_seen_for_lack_of_file_descriptors_does_not_suffice_for_that(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(setting: Setting) -> None:
        found = [[left(50)], [], [left(700)]]
        watch = ResourceWatch(setting.log, lambda: found.pop(0), source="s", build="b")
        await watch.look()
        with monkeypatch.context() as machine:
            machine.setattr(os, "open", refusing(OSError(errno.ENFILE, "Too many open files in system")))
            await watch.look()
        assert await told(setting.log) == [("scarce", 50)]
        await watch.look()
        assert await told(setting.log) == [("scarce", 50), ("sufficient", 0)]

    run_on_jetstream(broker, body)


def refusing(error: OSError) -> Any:
    def refuse(*_: object, **__: object) -> int:
        raise error

    return refuse


async def told(log: Log) -> list[tuple[str, int]]:
    events = [each.message.event for each in map(decode, await collect(log)) if isinstance(each, Recorded)]
    return [
        ("scarce", event.free) if isinstance(event, ResourceScarce) else ("sufficient", 0)
        for event in events
        if isinstance(event, ResourceScarce | ResourceSufficient)
    ]


def test_everything_that_can_be_measured_here_has_a_remedy_and_says_where(tmp_path: Path) -> None:
    found = left_on_machine(tmp_path, lambda: {"gone": 2**22 + 1})
    assert {"disk", "memory", "file descriptors"} <= {each.what for each in found} <= set(REMEDIES)
    assert all(each.whose.endswith(f" on {socket.gethostname()}") for each in found)
    assert not [each for each in found if "gone" in each.whose]


USED_UP = """
import os, resource
from deploy.health.resources import used_up
which = {0!r}
if which == "files":
    held = [os.open("/dev/null", os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1, 1024))
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
else:
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (int(pages * os.sysconf("SC_PAGE_SIZE") * 1.01), -1))
coroutine = used_up()
try:
    coroutine.send(None)
except StopIteration as done:
    print(done.value)
"""


@pytest.mark.parametrize(("which", "said"), [("files", "file descriptors"), ("memory", "address space")])
def test_a_process_that_has_used_up_what_it_needs_to_look_says_so(which: str, said: str) -> None:
    ran = subprocess.run([sys.executable, "-c", USED_UP.format(which)], check=True, capture_output=True, text=True)
    assert f"next to no {said} left for this process" in ran.stdout
