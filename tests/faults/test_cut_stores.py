"""A harmed store: what a power cut or a rotten disk leaves, made by cutting the files of a stopped or killed broker.

One store is recorded; each case harms a copy of it, brings a set up on that, and sends new inputs. Then the log tells:
each input that is in it ended once, no new one failed, nothing was decided twice, and what is left verifies.
"""

import asyncio
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from actors.arbiter.settings import ArbiterSettings
from actors.registry import ACTORS
from events.decoding import Recorded, decode
from events.log import Stored
from events.losses import Losses
from schemas.vocabulary.responder import ResponseEmitted
from tests.broker import Broker
from tests.faults.cuts import cut_tail, drop_index, flip_bit, size_of
from tests.faults.rig import DEADLINE, Load, RunningSet, at_rest, ledger_caught_up, running_set, waited
from tests.forked import forked
from tests.judging import broken_promises

_ENDS_KNOWN_NS = ArbiterSettings().settled_lifetime_ms * 1_000_000
_PENDING = re.compile(r"'(\w{32})': (?:\(Deadline|Gathered)\(")
_NO_CAUSE = re.compile(r"event (?P<id>\w+) of \S+ has no cause in the log")
_NO_INPUT = re.compile(r"exchange (?P<exchange>\w+) has an end and no input")


class Harm(msgspec.Struct, frozen=True):
    """What happens to a store.

    Attributes:
        cut: Bytes off the end of the newest block; a share of it where it is below 1.
        flip: Where in the block a bit is flipped instead, as a share of it.
        killed: Whether the set was killed under load, rather than stopped at rest.
        index: Whether the server's index is left.
        ledger: Whether the ledger is left.
        snapshots: Whether the snapshots are left.
    """

    cut: float = 0.0
    flip: float = 0.0
    killed: bool = False
    index: bool = True
    ledger: bool = True
    snapshots: bool = True

    def __str__(self) -> str:
        what = f"flip_at_{self.flip:g}" if self.flip else f"cut_{self.cut:g}"
        told = {"killed": self.killed, "no_index": not self.index, "no_ledger": not self.ledger}
        return "-".join((what, *(name for name, holds in told.items() if holds), *self._without_snapshots()))

    def _without_snapshots(self) -> Sequence[str]:
        return () if self.snapshots else ("no_snapshots",)

    def do(self, folder: Path) -> None:
        """Harm the store in the folder of a set."""
        store = folder / "data" / "broker" / "store"
        if self.flip:
            flip_bit(store, self.flip)
        else:
            cut_tail(store, int(self.cut if self.cut >= 1 else self.cut * size_of(store)))
        if not self.index:
            drop_index(store)
        if not self.ledger:
            for file in folder.glob("data/ledger.db*"):
                file.unlink()
        if not self.snapshots:
            shutil.rmtree(next(store.glob("jetstream/*/streams/KV_NEURAXIS_snapshots")))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with two sets: ``stopped`` at rest, and ``killed`` under load, which had been stopped once before."""
    folder = tmp_path_factory.mktemp("recorded")
    with running_set(folder / "stopped", processes=1) as running:
        asyncio.run(_load_for(running, 1.5))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def recorded_killed(recorded: Path) -> Path:
    """The same, with the second of them."""
    shutil.copytree(recorded / "stopped", recorded / "killed")
    with running_set(recorded / "killed", processes=1) as running:
        asyncio.run(_killed_under_load(running))
    return recorded


async def _load_for(running: RunningSet, seconds: float, rate: float = 60) -> list[str]:
    load, stop = Load(rate=rate), asyncio.Event()
    async with running.log() as log:
        loading = asyncio.create_task(load.run(log, stop))
        await asyncio.sleep(seconds)
        stop.set()
        await loading
        await at_rest(log)
    return load.accepted


async def _killed_under_load(running: RunningSet) -> None:
    async with running.log() as log:
        loading = asyncio.create_task(Load(rate=60).run(log, asyncio.Event()))
        await asyncio.sleep(1.5)
        run = running.run_file()
        assert run is not None
        for process in run.processes:
            os.kill(process.pid, signal.SIGKILL)
        running.process.kill()
        waited(lambda: running.process.poll() is not None, "the set to be gone")
        loading.cancel()
        _, left = await asyncio.wait((loading,), timeout=DEADLINE)
        assert not left, "the load does not end without its broker"


async def _go_on(running: RunningSet) -> str:
    """Send new inputs, and judge; return a line for the table."""
    load, stop = Load(rate=20), asyncio.Event()
    async with running.log() as log:
        loading = asyncio.create_task(load.run(log, stop))
        await asyncio.sleep(1.0)
        stop.set()
        await loading
        messages = await at_rest(log)
        losses = await Losses.of(log, messages[-1].seq)
        broken = broken_promises(tuple(ACTORS.values()), messages, load.accepted, log.partitions)
        assert [one for one in broken if not _is_excused(one, messages, losses)] == []
        assert load.accepted
        ends = _ends(messages)
        assert {ends[exchange] for exchange in load.accepted} <= {"EXECUTED", "BLOCKED"}
        await ledger_caught_up(running.data.ledger, log)
    found = "; ".join(
        f"{loss.event.first_seq} to {loss.event.through_seq} ({loss.event.known_by}"
        f"{', given again' if loss.event.given_again else ''})"
        for loss in losses.found
    )
    old = [action for exchange, action in ends.items() if exchange not in set(load.accepted)]
    return f"{len(load.accepted)} new ended, {len(old)} old ended ({old.count('FAILED')} FAILED), lost: {found or '-'}"


def _is_excused(broken: str, messages: Sequence[Stored], losses: Losses) -> bool:
    """Whether what does not hold is what was lost, or a deadline that ends by itself.

    An exchange whose deadline passed while nothing ran ends first, as FAILED; stages that had its input still to decide
    keep something for it until that lapses. So do stages that have forgotten an end, since it lies far back: the store
    was recorded long before it was harmed, and what they decided of the exchange and was lost is decided again. And
    what rests on lost messages cannot come out the same.
    """
    if "leaks pending state" in broken:
        ends = _ends(messages)
        forgotten = _ends([each for each in messages if each.time_ns < messages[-1].time_ns - _ENDS_KNOWN_NS])
        return all(ends.get(each) == "FAILED" or each in forgotten for each in _PENDING.findall(broken))
    if broken.startswith("replay differs"):
        return any(not loss.event.given_again for loss in losses.found)
    if (orphan := _NO_CAUSE.match(broken)) is not None:
        left = [stored for stored in messages if stored.headers["ce-id"] == orphan["id"]]
    elif (orphan := _NO_INPUT.match(broken)) is not None:
        left = [stored for stored in messages if stored.headers.get("ce-exchange") == orphan["exchange"]]
    else:
        return False
    places = [recorded.envelope.cause_seq for recorded in map(decode, left) if isinstance(recorded, Recorded)]
    return any(loss.event.first_seq <= at <= loss.event.through_seq for loss in losses.found for at in places)


def _ends(messages: Sequence[Stored]) -> dict[str, str]:
    recorded = (decode(stored) for stored in messages if stored.subject.endswith(".response.emitted"))
    return {
        one.message.exchange: one.message.event.action
        for one in recorded
        if isinstance(one, Recorded) and isinstance(one.message.event, ResponseEmitted)
    }


def _verified(folder: Path, *command: str) -> None:
    done = forked((*command, "--data", str(folder / "data")), folder=folder)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def _is_served_rotten(folder: Path) -> bool:
    """Whether the server gives out the message with the flipped bit, unnoticed: then the ledger names that one."""
    done = forked(("log", "verify", "--json", "--data", str(folder / "data")), folder=folder)
    found = json.loads(done.stdout)
    checks = [each["check"] for part in ("chain", "stream") for each in found[part]["findings"]]
    return done.returncode == 1 and checks == ["differs"]


def _judged(source: Path, harm: Harm, folder: Path) -> str:
    """Start on a harmed copy and judge what becomes of it; return a line for the table."""
    shutil.copytree(source, folder)
    harm.do(folder)
    with running_set(folder, processes=1) as running:
        told = asyncio.run(_go_on(running))
        if harm.flip and _is_served_rotten(folder):
            told += "; served as it is"
        else:
            _verified(folder, "log", "verify")
            _verified(folder, "replay", "--verify")
    said = (folder / "up.log").read_text()
    halves, refused = said.count("half_a_decision"), said.count("snapshot_ahead_of_log")
    return f"{harm!s:42} {told}; {refused} snapshots refused, {halves} half decisions"


SHORT = (Harm(cut=20_000), Harm(cut=60_000, index=False, ledger=False))
"""Harm that stopped actors for good once: fences behind a gap; snapshots and ledger ahead of sequences given again."""


@pytest.mark.parametrize("harm", SHORT, ids=str)
def test_a_set_goes_on_from_what_a_power_cut_has_left(harm: Harm, recorded: Path, tmp_path: Path) -> None:
    print(_judged(recorded / "stopped", harm, tmp_path / "set"))


def _twenty() -> Iterator[Harm]:
    sizes = (100, 700, 1_500, 5_000, 12_000, 20_000, 33_000, 50_000, 80_000, 120_000)
    for number, size in enumerate(sizes):
        yield Harm(cut=size, killed=number % 2 == 1, index=number % 3 != 2, ledger=number % 4 != 3)
    for number, share in enumerate((0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.9999)):
        yield Harm(cut=share, killed=number % 2 == 0, index=number % 3 != 1, ledger=number % 4 != 1)


LONG = (
    *_twenty(),
    *(Harm(flip=where, killed=killed) for where in (0.3, 0.6, 0.95, 0.9999) for killed in (False, True)),
    Harm(flip=0.8, index=False),
    Harm(cut=20_000, snapshots=False),
    Harm(cut=0.4, index=False, ledger=False, snapshots=False),
)


@pytest.mark.faults
@pytest.mark.parametrize("harm", LONG, ids=str)
def test_a_set_goes_on_wherever_its_store_was_harmed(harm: Harm, recorded_killed: Path, tmp_path: Path) -> None:
    source = recorded_killed / ("killed" if harm.killed else "stopped")
    print(_judged(source, harm, tmp_path / "set"))


@pytest.mark.faults
@pytest.mark.parametrize("index", [True, False], ids=["index left", "no index"])
def test_a_set_that_runs_on_notices_that_its_broker_came_back_with_less(index: bool, tmp_path: Path) -> None:
    """No process is started again: what each knows is ahead of the log."""
    with Broker(tmp_path / "broker") as broker, _on(broker, tmp_path / "set") as running:
        asyncio.run(_load_for(running, 1.5))
        before = _pids(running)
        broker.kill()
        cut_tail(broker.store, 60_000)
        if not index:
            drop_index(broker.store)
        broker.start()
        waited(lambda: "log_lost_messages" in running.said.read_text(), "the loss to be noticed")
        print(asyncio.run(_go_on(running)))
        assert _pids(running) == before
        _verified(tmp_path / "set", "log", "verify")
        _verified(tmp_path / "set", "replay", "--verify")


def _on(broker: Broker, folder: Path) -> AbstractContextManager[RunningSet]:
    return running_set(folder, processes=1, flags=("--nats", broker.url))


def _pids(running: RunningSet) -> list[tuple[str, int]]:
    run = running.run_file()
    assert run is not None
    return sorted((process.name, process.pid) for process in run.processes if process.name != "gateway")
