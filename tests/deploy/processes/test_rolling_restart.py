"""Workers that come and go under load, also of two releases side by side: fair shares, nothing lost, nothing failed."""

import asyncio
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from actors.registry import ACTORS
from actors.runtime.membership.heartbeat import Heartbeat, heartbeat_of
from events.jetstream import JetStreamLog, KeyValueMembership
from events.routes import partition_names
from schemas.subjects import Partitions
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from tests.broker import Broker
from tests.events.setting import collect
from tests.faults.rig import DEADLINE, Load
from tests.judging import exchanges, unfinished

TREE = Path(__file__).parents[3]
STEP = '{("forged_id.reflex.passed", 1): lambda body: {**body, "later": 7}}'
LAST_FIELD = "    allowed: tuple[str, ...] = ()\n"
LATER = {
    "schemas/vocabulary/reflex.py": {
        f"{LAST_FIELD}\n\nWriter": f"{LAST_FIELD}    later: int = 7\n\n\nWriter",
        "share=0.984615),)),\n    ),\n": "share=0.984615),)),\n        version=2,\n    ),\n",
    },
    "schemas/versions.py": {"Mapping[tuple[str, int], Upcaster] = {}": f"Mapping[tuple[str, int], Upcaster] = {STEP}"},
}
"""What the later release changes: ``reflex.passed``, which others consume, has a new version, with a field more."""

NOTED = 'class ReflexNoted(Event, frozen=True, kw_only=True, tag="forged_id.reflex.noted"):\n    """Noted."""\n\n\n'
VERDICTS = "return (_changed(state), verdict) if state.unsaid else (verdict,"
WITH_EVENT = {
    "schemas/vocabulary/reflex.py": {
        "class ReflexAnswerPassed(": f"{NOTED}class ReflexAnswerPassed(",
        '    _entry(\n        meaning="What a model or a tool wrote has nothing': (
            '    _entry(meaning="Noted.", sample=ReflexNoted()),\n'
            '    _entry(\n        meaning="What a model or a tool wrote has nothing'
        ),
    },
    "actors/reflex/decider.py": {
        VERDICTS: f"from schemas.vocabulary.reflex import ReflexNoted\n    {VERDICTS} ReflexNoted()",
    },
}
"""What a later release changes that only has reflex write one more event."""


def later_release(folder: Path, changed: Mapping[str, Mapping[str, str]] = LATER) -> Path:
    """Return a copy of this tree's packages that is a later release; what is compiled of them already goes along."""
    for package in ("schemas", "events", "actors", "deploy"):
        shutil.copytree(TREE / package, folder / package, copy_function=os.symlink)
    for name, changes in changed.items():
        file = folder / name
        text = file.read_text()
        for before, after in changes.items():
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, after)
        file.unlink()
        file.write_text(text)
    return folder


class Workers:
    """Worker processes of all actors, each of a release, at one broker."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self._broker = broker
        self._folder = folder
        self._open = ExitStack()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def start(self, name: str, release: Path = TREE) -> subprocess.Popen[bytes]:
        """Start one; it is not awaited."""
        return self._open.enter_context(self._running(name, release))

    @contextmanager
    def _running(self, name: str, release: Path) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-P", "-m", "deploy.cli", "worker", "all", "--nats", self._broker.url]
        environment = {**os.environ, "PYTHONPATH": str(release)}
        with (self._folder / f"{name}.log").open("wb") as said:
            process = subprocess.Popen(
                [*command, "--data", str(self._folder / name)], stderr=said, env=environment, cwd=self._folder
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def said(self, name: str) -> str:
        """Return what a worker has logged."""
        return (self._folder / f"{name}.log").read_text()


async def until(condition: Callable[[Mapping[str, Heartbeat]], bool], log: JetStreamLog, what: str) -> None:
    """Wait until the heartbeats of the living workers are as wanted."""
    membership, end = await KeyValueMembership.over(log.connection), time.monotonic() + DEADLINE
    while True:
        members = {name: found for name, said in (await membership.members()).items() if (found := heartbeat_of(said))}
        if condition(members):
            return
        assert time.monotonic() < end, (what, {name: found.serves for name, found in members.items()})
        await asyncio.sleep(0.1)


def is_shared_by(count: int) -> Callable[[Mapping[str, Heartbeat]], bool]:
    """Whether so many workers lead every partition between them, none of them more than its share of an actor's."""

    def shared(members: Mapping[str, Heartbeat]) -> bool:
        if len(members) != count:
            return False
        for name, actor in ACTORS.items():
            all_of_it = partition_names(actor, Partitions())
            led = [found.serves.get(name, ()) for found in members.values()]
            if sorted(each for each_of in led for each in each_of) != sorted(all_of_it):
                return False
            if max(map(len, led)) > math.ceil(len(all_of_it) / count):
                return False
        return True

    return shared


async def all_ended(log: JetStreamLog) -> None:
    """Wait until every input has its end."""
    end = time.monotonic() + DEADLINE
    while left := unfinished(await collect(log)):
        assert time.monotonic() < end, left
        await asyncio.sleep(0.2)


async def stopped(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, DEADLINE) == 0


def verified(release: Path, broker: Broker, folder: Path) -> dict[str, object]:
    """Return what a release's ``replay --verify`` tells of the log."""
    command = [sys.executable, "-P", "-m", "deploy.cli", "replay", "--verify", "--json", "--nats", broker.url]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(release)},
        cwd=folder,
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[0])
    return found


def rolls(broker: Broker, folder: Path, rounds: int) -> None:
    """Have workers join and leave under load, each round's of a later release than those before; judge the log."""
    later = later_release(folder / "later")

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=Partitions())
        load, stop = Load(rate=8), asyncio.Event()
        try:
            with Workers(broker, folder) as workers:
                first = workers.start("first")
                await until(is_shared_by(1), log, "the first leads all")
                loading = asyncio.create_task(load.run(log, stop))
                for number in range(rounds):
                    second = workers.start(f"second-{number}")
                    await until(is_shared_by(2), log, "both have a fair share")
                    await stopped(first)
                    await until(is_shared_by(1), log, "the second leads all")
                    first = second
                newer = workers.start("newer", later)
                reflex = partition_names(ACTORS["reflex"], Partitions())
                await until(
                    lambda found: led_by_newer(found, reflex), log, "the newer leads what the older cannot read"
                )
                await stopped(first)
                await until(is_shared_by(1), log, "the newer leads all")
                stop.set()
                await loading
                await all_ended(log)
                await stopped(newer)
                assert "newer_release_runs" in workers.said(f"second-{rounds - 1}")
            assert load.accepted
            assert load.refused == 0
            found = await collect(log)
            inputs, ends = exchanges(found, InputReceived), exchanges(found, ResponseEmitted)
            assert set(load.accepted) == set(inputs) == set(ends)
            assert set(ends.values()) == {1}
            assert [each.subject for each in found if each.subject.endswith(".failed")] == []
            versions = {each.headers.get("ce-dataversion") for each in found if each.subject.endswith(".reflex.passed")}
            assert versions == {None, "2"}
        finally:
            stop.set()
            await log.close()

    asyncio.run(main())
    verified(later, broker, folder)


def led_by_newer(members: Mapping[str, Heartbeat], reflex: tuple[str, ...]) -> bool:
    """Whether the old worker has left intuition, which consumes what the new reflex writes, to the new one."""
    declining = [found for found in members.values() if "intuition" in found.declines]
    leading = [found for found in members.values() if found.serves.get("intuition")]
    return len(members) == 2 and len(declining) == 1 and len(leading) == 1 and declining != leading


def test_a_rolling_restart_to_a_later_release_loses_and_fails_nothing(broker: Broker, tmp_path: Path) -> None:
    rolls(broker, tmp_path, rounds=1)


def test_an_event_that_only_a_later_release_has_ends_no_worker_of_the_older(broker: Broker, tmp_path: Path) -> None:
    """It stands by for partitions in which the newer writes; it leaves the actor to the newer, and goes on."""
    later = later_release(tmp_path / "later", WITH_EVENT)

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=Partitions())
        load, stop = Load(rate=8), asyncio.Event()
        try:
            with Workers(broker, tmp_path) as workers:
                older = workers.start("older")
                await until(is_shared_by(1), log, "the older leads all")
                loading = asyncio.create_task(load.run(log, stop))
                newer = workers.start("newer", later)
                await until(
                    lambda found: len(found) == 2 and any("reflex" in each.declines for each in found.values()),
                    log,
                    "the older leaves reflex to the newer",
                )
                await asyncio.sleep(2)
                assert older.poll() is None, workers.said("older")[-2000:]
                await stopped(older)
                await until(is_shared_by(1), log, "the newer leads all")
                stop.set()
                await loading
                await all_ended(log)
                await stopped(newer)
            ends = exchanges(await collect(log), ResponseEmitted)
            assert load.accepted
            assert ends == dict.fromkeys(load.accepted, 1)
        finally:
            stop.set()
            await log.close()

    asyncio.run(main())


@pytest.mark.faults
def test_workers_that_come_and_go_again_and_again_lose_and_fail_nothing(broker: Broker, tmp_path: Path) -> None:
    rolls(broker, tmp_path, rounds=5)
