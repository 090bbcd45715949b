"""Machines on one machine: namespaces with addresses, names and files of their own. Linux, as root."""

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.broker import die_with, wait_until

OWN_FOLDERS = ("/etc", "/var/lib")
"""What a machine changes for itself alone."""

_ENDS_WITHIN_S = 30.0


class Machine:
    """A machine with an address on the network of its switch."""

    def __init__(self, name: str, address: str, pid: int) -> None:
        self.name = name
        self.address = address
        self._pid = pid
        self._running: list[subprocess.Popen[bytes]] = []

    def _command(self, line: str, folder: Path) -> list[str]:
        return ["nsenter", "-t", str(self._pid), "-n", "-m", f"--wd={folder}", "sh", "-c", line]

    def run(self, line: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a line of shell to its end."""
        command = self._command(line, folder)
        return subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=120, check=False)

    def start(self, line: str, folder: Path, environment: Mapping[str, str], said: Path) -> subprocess.Popen[bytes]:
        """Start a line of shell, a single command, and leave it running until :meth:`stop`."""
        with said.open("ab") as out:
            process = subprocess.Popen(
                self._command(f"exec {line}", folder),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with(os.getpid()),
            )
        self._running.append(process)
        return process

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Be on this machine's network, with this thread and all that it starts, for the length of a block."""
        with _on_network_of(self._pid):
            yield

    def stop(self) -> None:
        """End what runs, the latest first."""
        while self._running:
            process = self._running.pop()
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Switch:
    """The machines, and the network between them."""

    def __init__(self, machines: Mapping[str, Machine], pid: int, ports: Mapping[str, str]) -> None:
        self.machines = machines
        self._pid = pid
        self._ports = ports

    def cut(self, name: str) -> None:
        """Take a machine off the network; it goes on by itself."""
        _inside(self._pid, "ip", "link", "set", self._ports[name], "down")

    def join(self, name: str) -> None:
        """Put a machine back on the network."""
        _inside(self._pid, "ip", "link", "set", self._ports[name], "up")


def refusal() -> str:
    """Return why machines cannot be had here; empty where they can."""
    if not all(map(shutil.which, ("unshare", "nsenter", "ip", "mount"))):
        return "unshare, nsenter, ip and mount are not all installed"
    tried = "mount -t tmpfs none /mnt && ip link add probe0 type bridge"
    found = subprocess.run(["unshare", "-n", "-m", "sh", "-c", tried], capture_output=True, text=True, check=False)
    return "" if found.returncode == 0 else f"no namespaces here: {found.stderr.strip()}"


@contextmanager
def machines(names: Sequence[str]) -> Iterator[Switch]:
    """Make machines of these names, each of which finds the others by name; all is gone at the end of the block."""
    holders: list[subprocess.Popen[bytes]] = []
    made: dict[str, Machine] = {}
    try:
        holders.append(_holder([]))
        switch = holders[0].pid
        _inside(switch, "ip", "link", "add", "switch", "type", "bridge")
        _inside(switch, "ip", "link", "set", "switch", "up")
        hosts = "127.0.0.1 localhost\n" + "".join(f"10.77.0.{number} {name}\n" for number, name in enumerate(names, 1))
        ports = {}
        for number, name in enumerate(names, 1):
            holder = _holder(["nsenter", "-t", str(switch), "-n"])
            holders.append(holder)
            port = ports[name] = f"port{number}"
            _inside(switch, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
            _inside(switch, "ip", "link", "set", port, "master", "switch", "up")
            for words in (
                ("addr", "add", f"10.77.0.{number}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
                ("link", "set", "lo", "up"),
            ):
                _inside(holder.pid, "ip", *words)
            _inside(holder.pid, "sh", "-c", _own_folders(hosts))
            made[name] = Machine(name, f"10.77.0.{number}", holder.pid)
        yield Switch(made, switch, ports)
    finally:
        for machine in made.values():
            machine.stop()
        for holder in reversed(holders):
            holder.kill()
            holder.wait()


@contextmanager
def own_network() -> Iterator["OwnNetwork"]:
    """Be on a network with nobody else, with this thread and all that it starts, for the length of a block."""
    holder = _holder([])
    try:
        network = OwnNetwork(holder.pid)
        network.join()
        with _on_network_of(holder.pid):
            yield network
    finally:
        holder.kill()
        holder.wait()


class OwnNetwork:
    """A loopback device of its own, which can be cut: every connection then stands still, and none is made."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def cut(self) -> None:
        """Take the device down; connections stay, and carry nothing."""
        _inside(self._pid, "ip", "link", "set", "lo", "down")

    def join(self) -> None:
        """Bring the device up."""
        _inside(self._pid, "ip", "link", "set", "lo", "up")


_NETWORK = 0x40000000  # CLONE_NEWNET


@contextmanager
def _on_network_of(pid: int) -> Iterator[None]:
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(descriptor: int) -> None:
        if libc.setns(descriptor, _NETWORK):  # of this thread alone, and of those that it starts from now on
            raise OSError(ctypes.get_errno(), "setns")

    ours = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    theirs = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        enter(theirs)
        yield
    finally:
        enter(ours)
        os.close(ours)
        os.close(theirs)


def _own_folders(hosts: str) -> str:
    lines = ["set -e", "mount -t tmpfs none /mnt"]
    for number, folder in enumerate(OWN_FOLDERS):
        upper, work = f"/mnt/{number}/upper", f"/mnt/{number}/work"
        lines += [
            f"mkdir -p {upper} {work}",
            f"mount -t overlay overlay -o lowerdir={folder},upperdir={upper},workdir={work} {folder}",
        ]
    return "\n".join([*lines, f"printf '%s' '{hosts}' > /etc/hosts"])


def _holder(prefix: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a process that does nothing but keep fresh namespaces alive."""
    ours = os.readlink("/proc/self/ns/mnt")
    process = subprocess.Popen(
        [*prefix, "unshare", "--net", "--mount", "sleep", "infinity"], preexec_fn=die_with(os.getpid())
    )
    wait_until(lambda: os.readlink(f"/proc/{process.pid}/ns/mnt") != ours, "a namespace")
    return process


def _inside(pid: int, *command: str) -> None:
    subprocess.run(["nsenter", "-t", str(pid), "-n", "-m", *command], check=True, capture_output=True)
