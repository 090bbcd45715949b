"""What is nearly used up is recorded once, and so is that enough is left again, across restarts too."""

import asyncio
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from deploy.health.resource_watch import Measured, ResourceWatch, changes, left_on_machine
from deploy.health.resources import REMEDIES, Remaining, storage_left
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from events.log import Log
from schemas.subjects import EVERYTHING
from schemas.vocabulary.ledger import ResourceScarce, ResourceSufficient
from tests.broker import Broker
from tests.each import each
from tests.events.sealing.records import said
from tests.events.setting import Setting, collect, plain, run_on_jetstream

HERE = f"process gateway on {socket.gethostname()}"
KEY = ("file descriptors", HERE)


def left(free: int, whose: str = HERE) -> Remaining:
    return Remaining("file descriptors", whose, free, 1_000)


@each(
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


def test_what_could_not_be_looked_at_is_not_said_to_suffice() -> None:
    assert changes(frozenset([KEY]), [left(0, "process ledger")], is_all=False)[0] == ResourceScarce(
        resource="file descriptors", whose="process ledger", free=0, total=1_000
    )
    assert changes(frozenset([KEY]), [], is_all=False) == []
    assert [type(event) for event in changes(frozenset([KEY]), [left(900)], is_all=False)] == [ResourceSufficient]


def test_a_disk_that_is_gone_or_processes_that_cannot_be_told_leave_open_what_is_left(tmp_path: Path) -> None:
    def fails() -> dict[str, int]:
        raise OSError(24, "Too many open files")

    assert not left_on_machine(tmp_path / "gone", dict).is_all
    assert not left_on_machine(tmp_path, lambda: None).is_all
    measured = left_on_machine(tmp_path, fails)
    assert not measured.is_all
    assert "disk" in {each.what for each in measured.found}


@each(
    ("limit", "server_most", "found"),
    [
        (-1, 0, None),
        (-1, 1_000, ("the set's own broker", 50, 1_000)),
        (2_000, 1_000, ("the account at the broker", 1_050, 2_000)),
        (900, 0, ("the account at the broker", 0, 900)),
    ],
)
def test_what_the_set_s_own_broker_may_store_is_watched_as_an_account_s_limit_is(
    limit: int, server_most: int, found: tuple[str, int, int] | None
) -> None:
    left = storage_left({"limits": {"max_storage": limit}, "storage": 950}, server_most)
    assert (None if left is None else (left.whose, left.free, left.total)) == found


def test_watching_goes_on_after_the_watching_process_itself_had_run_out_and_after_a_bug(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the watch ended, the ledger's process would end with it."""
    monkeypatch.setattr("deploy.health.resource_watch.INTERVAL_S", 0.01)
    lacks: list[Exception] = [
        *(OSError(24, "Too many open files"), MemoryError(), RuntimeError("can't start new thread")),
        ValueError("a bug"),
    ]

    def measure() -> Measured:
        if lacks:
            raise lacks.pop(0)
        return Measured([left(30)])

    async def body(setting: Setting) -> None:
        watch = asyncio.create_task(ResourceWatch(setting.log, measure, source="s", build="b").run())
        tail = await setting.log.tail([EVERYTHING], 0)
        await asyncio.wait((watch, asyncio.ensure_future(tail.next())), return_when=asyncio.FIRST_COMPLETED)
        assert not watch.done()
        watch.cancel()
        await asyncio.wait((watch,))
        await tail.close()
        assert await told(setting.log) == [("scarce", 30)]

    run_on_jetstream(broker, body)


def test_what_the_log_says_is_scarce_is_not_recorded_again_by_the_next_process(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(setting: Setting) -> None:
        frees = [50, 50, 40, 700, 700, 30]
        for free in frees:  # each look is another process's first
            watch = ResourceWatch(setting.log, partial(Measured, [left(free)]), source="s", build="b")
            await watch.look()
        assert await told(setting.log) == [("scarce", 50), ("sufficient", 0), ("scarce", 30)]
        elsewhere = ResourceWatch(
            setting.log, lambda: Measured([left(1, "process gateway on another-host")]), source="s", build="b"
        )
        with monkeypatch.context() as machine:
            machine.setattr("socket.gethostname", lambda: "another-host")
            await elsewhere.look()
        own = ResourceWatch(setting.log, lambda: Measured([left(30)]), source="s", build="b")
        await own.look()
        assert len(await told(setting.log)) == 4, "another machine's is not ended here"

    run_on_jetstream(broker, body)


def test_the_limit_of_the_broker_itself_is_told_before_it_is_reached(broker: Broker) -> None:
    """Its own account has none; once it is reached, nothing is stored any more, a warning neither."""

    async def body(setting: Setting) -> None:
        log = setting.log
        assert isinstance(log, JetStreamLog)
        await log.append([plain(said("hello " * 2_000, id="e1", session="s1"))])
        used = (await log.connection.api("INFO"))["storage"]
        for most in (0, used * 2, used + used // 20, used + used // 20, used * 2):
            watch = ResourceWatch(log, partial(Measured, []), source="s", build="b", server_most=partial(int, most))
            await watch.look()
        assert await told(log) == [("scarce", used // 20), ("sufficient", 0)]

    run_on_jetstream(broker, body)


async def told(log: Log) -> list[tuple[str, int]]:
    events = [each.message.event for each in map(decode, await collect(log)) if isinstance(each, Recorded)]
    return [
        ("scarce", event.free) if isinstance(event, ResourceScarce) else ("sufficient", 0)
        for event in events
        if isinstance(event, ResourceScarce | ResourceSufficient)
    ]


def test_everything_that_can_be_measured_here_has_a_remedy_and_says_where(tmp_path: Path) -> None:
    measured = left_on_machine(tmp_path, lambda: {"gone": 2**22 + 1})
    assert measured.is_all
    found = measured.found
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
