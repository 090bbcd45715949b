"""Workers that read through the read service lose nothing when it, they themselves or the broker are killed."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from actors.registry import ACTORS
from deploy.config.configured_log import attach_ledger_or_warn
from deploy.copying import trimming
from deploy.copying.repartitioning import repartition
from deploy.copying.trimming import trim
from deploy.deploying.writing_broker import SETTINGS
from deploy.processes.broker.users import ADMIN, LEDGER, OPERATOR
from events.jetstream import JetStreamLog
from events.ledger import LedgerReader
from tests.broker import die_with
from tests.cluster import Deployed, deployed
from tests.faults.rig import Load, RunningSet, at_rest, judge, waited

GUARDS = ("reflex", "intuition", "appraisal", "coherence", "breaker", "arbiter", "clock", "swarm")
LOGINS = {"guards": GUARDS, "others": tuple(actor for actor in ACTORS if actor not in GUARDS)}
RUNS = {"guards": "guards", "others-1": "others", "others-2": "others", LEDGER: LEDGER}
"""Process -> its login."""

pytestmark = pytest.mark.faults


class NarrowSet(RunningSet):
    """Worker processes of narrow logins, and the ledger's, which serves their reads."""

    def __init__(self, broker: Deployed) -> None:
        self._broker = broker
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        super().__init__(broker.folder, None)

    @property
    def ledger(self) -> Path:
        """The ledger file."""
        return self._broker.folder / "data" / "ledger.db"

    def start_all(self) -> Callable[[], bool]:
        """Start every process; return what tells whether all are ready.

        Not from a thread of its own: they end with the thread that started them.
        """
        before = {name: self.said_by(name).read_text().count("worker_ready") for name in RUNS if self.has_run(name)}
        for name in RUNS:  # the ledger's last: the others wait for it
            self.start(name)
        return lambda: all(self.is_ready(name, before.get(name, 0) + 1) for name in RUNS)

    def has_run(self, name: str) -> bool:
        """Return whether a process was ever started."""
        return self.said_by(name).exists()

    def assert_nothing_was_denied(self) -> None:
        """Check that no process lacked a right."""
        for name in RUNS:
            said = self.said_by(name).read_text()
            assert "permissions violation" not in said, said
            assert "read_denied" not in said, said

    def start(self, name: str) -> None:
        """Start a process."""
        login = RUNS[name]
        hosts = LOGINS.get(login, (login,))
        command = [sys.executable, "-m", "deploy.cli", "worker", *hosts, "--name", name]
        command += ["--config", str(self._broker.folder / SETTINGS), "--data", str(self._broker.folder / "data")]
        command += ["--context", str(self._broker.logins / f"{login}.json")]
        with self.said_by(name).open("ab") as said:
            self._processes[name] = subprocess.Popen(
                command, stdout=said, stderr=said, preexec_fn=die_with(os.getpid())
            )

    def end(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End a process by a signal."""
        process = self._processes.pop(name)
        process.send_signal(number)
        process.wait(60)

    def end_all(self) -> None:
        """Stop every process."""
        for name in tuple(self._processes):
            self.end(name, signal.SIGTERM)

    def said_by(self, name: str) -> Path:
        """Return the file of a process's output."""
        return self._broker.folder / f"{name}.log"

    def is_ready(self, name: str, times: int = 1) -> bool:
        """Return whether a process has become ready, for the nth time."""
        process = self._processes[name]
        assert process.poll() is None, self.said_by(name).read_text()
        return self.said_by(name).read_text().count("worker_ready") >= times

    @asynccontextmanager
    async def log(self) -> AsyncIterator[JetStreamLog]:
        """Connect to the set's log as an operator."""
        log = await JetStreamLog.connect(self._broker.access(OPERATOR), create=False)
        try:
            await attach_ledger_or_warn(log, self.ledger)
            yield log
        finally:
            await log.close()


@contextmanager
def narrow_set(folder: Path) -> Iterator[tuple[NarrowSet, Deployed]]:
    with deployed(folder, nodes=1, workers=LOGINS) as broker:
        running = NarrowSet(broker)
        try:
            yield running, broker
        finally:
            running.end_all()


async def _until(condition: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(waited, condition, what)


def test_nothing_is_lost_when_workers_and_the_process_that_serves_their_reads_are_killed_under_load(
    tmp_path: Path,
) -> None:
    async def more(load: Load, exchanges: int = 8) -> None:
        wanted, end = len(load.accepted) + exchanges, time.monotonic() + 60
        while len(load.accepted) < wanted:
            assert time.monotonic() < end, "no input was ever accepted again"
            await asyncio.sleep(0.1)

    async def hurt(running: NarrowSet, broker: Deployed) -> list[str]:
        load, stop = Load(rate=4), asyncio.Event()
        async with running.log() as log:
            loading = asyncio.create_task(load.run(log, stop))
            await more(load)
            # It comes back while the workers go on reading by the consumers that they have.
            running.end(LEDGER)
            await more(load)
            running.start(LEDGER)
            # The partitions of a dead worker are taken over once reads are served again.
            running.end(LEDGER)
            running.end("others-1")
            await more(load)
            running.start(LEDGER)
            running.start("others-1")
            await _until(lambda: running.is_ready("others-1", 2), "others-1 to be back")
            # The broker forgets every consumer, and no read is served when it comes back.
            running.end(LEDGER)
            await asyncio.to_thread(broker.servers[0].kill)
            broker.servers[0].start()
            await asyncio.to_thread(broker.wait_ready)
            await more(load)
            running.start(LEDGER)
            await more(load)
            stop.set()
            await loading
        return load.accepted

    with narrow_set(tmp_path) as (running, broker):
        waited(running.start_all(), "all to be ready")
        accepted = asyncio.run(hurt(running, broker))
        messages = asyncio.run(judge(running, accepted))
        print(f"{len(accepted)} accepted, {len(messages)} messages in the log")
        running.assert_nothing_was_denied()


def test_narrow_workers_go_on_after_the_log_was_trimmed_and_its_partitions_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trimming, "_MIN_AGE_S", 0.0)

    async def talked(running: NarrowSet) -> list[str]:
        load, stop = Load(rate=4, sessions=12), asyncio.Event()
        async with running.log() as log:
            loading = asyncio.create_task(load.run(log, stop))
            end = time.monotonic() + 60
            while len(load.accepted) < 16:
                assert time.monotonic() < end, "no input was ever accepted"
                await asyncio.sleep(0.1)
            stop.set()
            await loading
            await at_rest(log)
        return load.accepted

    async def stopped(running: NarrowSet) -> None:
        async with running.log() as log:
            last = (await log.info()).last_seq
        await _until(lambda: _ledger_end(running.ledger) >= last, "the ledger to catch up")
        await asyncio.to_thread(running.end_all)

    async def changed(running: NarrowSet, broker: Deployed) -> list[str]:
        accepted, admin = await talked(running), broker.access(ADMIN)
        old = time.monotonic()
        await asyncio.sleep(3)
        accepted += await talked(running)
        await stopped(running)
        trimmed = await trim(admin, broker.config, running.ledger, time.monotonic() - old - 1, lambda _: None)
        assert trimmed.removed > 100

        await _until(running.start_all(), "all to be ready")
        accepted += await talked(running)
        await stopped(running)
        done = await repartition(admin, broker.config, 8, 32, lambda _what, _seq: None, running.ledger)
        assert (done.before.agents, done.before.sessions) == (4, 16)

        settings = broker.folder / SETTINGS
        settings.write_text(settings.read_text().replace("[log]\n", "[log]\nagents = 8\nsessions = 32\n"))
        await _until(running.start_all(), "all to be ready")
        running.end("others-1")  # its partitions go to the other, by snapshots and reads that are served
        accepted += await talked(running)
        running.start("others-1")
        async with running.log() as log:
            assert (await log.info()).first_seq == 1, "what was removed is not read"
        return accepted

    with narrow_set(tmp_path) as (running, broker):
        waited(running.start_all(), "all to be ready")
        accepted = asyncio.run(changed(running, broker))
        asyncio.run(judge(running, accepted))
        running.assert_nothing_was_denied()
        for name in RUNS:
            said = running.said_by(name).read_text()
            assert "lacks_messages" not in said, said


def _ledger_end(file: Path) -> int:
    with LedgerReader(file) as reader:
        return reader.info().last_seq
