"""A set with its own broker, which flushes every append: on a network of its own, its data on a disk of its own."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from pathlib import Path

from deploy.processes.broker import OBSERVER
from deploy.processes.broker.users import context_file
from events.jetstream import JetStreamLog
from tests.actors.llm.scripted import in_background, says
from tests.faults.campaign.places import FOLLOWER, SUBSCRIBER, Clogs, Held, Programs
from tests.faults.campaign.schedule import Fault, Kind, Targets
from tests.faults.machines import OwnNetwork, own_network, refusal
from tests.faults.rig import RunningSet, running_set
from tests.full_disk import SmallDisk, disk_refusal, small_disk

DECIDERS = ("deciders-1", "deciders-2")
PROGRAMS = ("broker", *DECIDERS, "ledger", "effectors", "gateway")


class EmbeddedSet:
    """See :class:`tests.faults.campaign.places.Place`."""

    def __init__(self, running: RunningSet, network: OwnNetwork | None, disk: SmallDisk | None) -> None:
        self.running = running
        self._network = network
        self._disk = disk
        self._held = Held()
        self._programs = Programs(running)
        run = running.run_file()
        assert run is not None
        self._clogs = Clogs(run.nats_url, context_file(Path(run.contexts), OBSERVER), run.http)
        self.targets: Targets = {
            Kind.KILL: PROGRAMS,
            Kind.RESTART: PROGRAMS,
            Kind.PAUSE: PROGRAMS,
            Kind.CUT: ("network",) if network is not None else (),
            Kind.FILL: ("disk",) if disk is not None else (),
            Kind.CLOG: (SUBSCRIBER, FOLLOWER),
        }

    def log(self) -> AbstractAsyncContextManager[JetStreamLog]:
        return self.running.log()

    def stops_appends(self, fault: Fault) -> bool:
        return fault.target in ("broker", "network", "disk")

    async def begin(self, fault: Fault) -> Sequence[int]:
        match fault.kind:
            case Kind.KILL:
                return [await self._programs.signal(fault.target, signal.SIGKILL)]
            case Kind.RESTART:
                return [await self._programs.signal(fault.target, signal.SIGTERM)]
            case Kind.PAUSE:
                return [await self._programs.pause(fault)]
            case Kind.CUT:
                assert self._network is not None
                self._held.take("network", self._network.cut)
            case Kind.FILL:
                assert self._disk is not None
                await asyncio.to_thread(self._held.take, "disk", self._disk.fill)
            case Kind.CLOG:
                await asyncio.to_thread(self._clogs.begin, fault)
        return []

    async def end(self, fault: Fault) -> None:
        match fault.kind:
            case Kind.PAUSE:
                self._programs.resume(fault)
            case Kind.CUT:
                assert self._network is not None
                self._held.give("network", self._network.join)
            case Kind.FILL:
                assert self._disk is not None
                self._held.give("disk", self._disk.clear)
            case Kind.CLOG:
                self._clogs.end(fault)
            case Kind.KILL | Kind.RESTART:
                return  # its supervisor starts it again


@contextmanager
def embedded_set(folder: Path, *, disk_megabytes: int) -> Iterator[EmbeddedSet]:
    """Bring a set up, with a model that answers. As root on Linux its disk and its network can be hurt, too."""
    with ExitStack() as stack:
        network = None if refusal() else stack.enter_context(own_network())
        (folder / "data").mkdir(parents=True)
        disk = None if disk_refusal() else stack.enter_context(small_disk(folder / "data", disk_megabytes))
        endpoint = stack.enter_context(in_background(says()))
        flags = ("--llm", endpoint.base_url, "--port", "0", "--http", "127.0.0.1:0")
        running = stack.enter_context(running_set(folder, flags=flags))
        yield EmbeddedSet(running, network, disk)
