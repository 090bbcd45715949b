"""Starts a deployment exactly as its files say, as far as a machine without Docker or systemd in charge can.

``units`` starts what the systemd units start: their commands, variables and credentials. ``services`` starts what
``compose.yaml`` starts, each in namespaces of its own: read-only root, another user, no capabilities, first process.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
import yaml

from deploy.deploying.plan import GRACE_S
from deploy.processes.worker_program import WRONG_USE
from neuraxis_server.probe import why_not
from tests.deploy.deploying.written import Unit
from tests.deploy.waiting import until

USER = 10001
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(sys.executable).with_name("neuraxis")
READY_S = 120.0


class Started(msgspec.Struct):
    """A process of a deployment: its name, how to start it, and what runs."""

    name: str
    command: list[str]
    environment: dict[str, str]
    output: Path
    is_ready: Callable[["Started"], bool]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/"
            )

    def wait(self) -> None:
        """Wait until it is ready. One that ends before is started again, as its manager does, unless it was refused."""
        until(lambda: self.is_ready(self) or self._started_again(), f"{self.name} is ready", READY_S)

    def _started_again(self) -> bool:
        if not self.runs:
            assert self.process is not None
            assert self.process.returncode != WRONG_USE, self.output.read_text()
            self.start()
        return False

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def first(self) -> int:
        """The process that its manager tells to stop: in namespaces, the first one in them."""
        assert self.process is not None
        if Path(self.command[0]).name != "bwrap":
            return self.process.pid
        [child] = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(child)

    def tell(self, number: int) -> None:
        """Send it a signal, as its manager does."""
        os.kill(self.first, number)

    def ended(self) -> int:
        """Wait for the end within the grace period; return the exit status."""
        assert self.process is not None
        return self.process.wait(GRACE_S)

    def kill(self) -> None:
        """Kill what is left. In namespaces the first process goes: all others end with it, and then bwrap."""
        if self.process is None:
            return
        if self.runs:
            with suppress(ValueError, ProcessLookupError):  # it has not come so far, or ends by itself
                self.tell(signal.SIGKILL)
            self.process.kill()
        self.process.wait()


def units(root: Path, folder: Path, stack: ExitStack) -> Iterator[Started]:
    """Yield the processes of the systemd units below ``root``, whose ``/etc/neuraxis`` is below it, too."""
    for name in Unit(root, "neuraxis.target").of("Wants")[0].split():
        unit, place = Unit(root, name), folder / name
        credentials = place / "credentials"
        notify = Path(stack.enter_context(TemporaryDirectory(dir="/tmp"))) / "notify"  # such a path must be short
        credentials.mkdir(parents=True)
        for line in unit.of("LoadCredential"):
            secret, _, source = line.partition(":")
            shutil.copy(root / source[1:], credentials / secret)
        state = place / "state"
        for each in unit.of("StateDirectory"):
            (state / each).mkdir(parents=True)
        places = {"%d": str(credentials), "%S": str(state)}
        manager = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        manager.bind(str(notify))
        manager.setblocking(False)
        yield Started(
            name=name,
            command=unit.command(places),
            environment={**unit.environment(places), "NOTIFY_SOCKET": str(notify), "PATH": os.environ["PATH"]},
            output=place / "output",
            is_ready=lambda _started, manager=manager: _heard(manager),
        )


def _heard(manager: socket.socket) -> bool:
    """Whether systemd was told that a process is ready, among what was said since the last look."""
    try:
        while b"READY=1" not in manager.recv(4096):
            continue
    except BlockingIOError:
        return False
    return True


def services(folder: Path, scratch: Path) -> Iterator[Started]:
    """Yield the processes of ``compose.yaml`` in ``folder``, replicas included but for the gateway's one port."""
    document = yaml.safe_load((folder / "compose.yaml").read_text())
    for name, service in document["services"].items():
        replicas = 1 if name == "gateway" else service["deploy"]["replicas"]
        for number in range(1, replicas + 1):
            yield _service(f"{name}-{number}", service, document["secrets"], folder, scratch / f"{name}-{number}")


def _service(
    name: str, service: Mapping[str, Any], files: Mapping[str, Mapping[str, str]], folder: Path, place: Path
) -> Started:
    assert service["read_only"] is True
    assert service["user"] == f"{USER}:{USER}"
    assert service["cap_drop"] == ["ALL"]
    os.chown(folder / "neuraxis.toml", USER, USER)
    secrets, tmp, state = place / "secrets", place / "tmp", place / "state"
    for made in (secrets, tmp, state):
        made.mkdir(parents=True)
        os.chown(made, USER, USER)
    for secret in service["secrets"]:
        shutil.copy(folder / files[secret["source"]]["file"], secrets / secret["target"])
        os.chown(secrets / secret["target"], USER, USER)
    environment: dict[str, str] = dict(service["environment"])
    health = environment["NEURAXIS_RUNTIME__HEALTH_FILE"]
    beat = tmp / Path(health).name
    return Started(
        name=name,
        command=[*_contained(folder, secrets, tmp, state), str(PROGRAM), *service["command"]],
        environment={**environment, "PATH": os.environ["PATH"]},
        output=place / "output",
        is_ready=lambda _started: not why_not(str(beat), "ready", time.monotonic()),
    )


def _contained(folder: Path, secrets: Path, tmp: Path, state: Path) -> Sequence[str]:
    """Return the command that runs another as a container of the image does, on this machine's files."""
    bwrap, setpriv = shutil.which("bwrap"), shutil.which("setpriv")
    if bwrap is None or setpriv is None or os.geteuid() != 0:
        pytest.skip("bubblewrap and setpriv make the namespaces, for root alone")
    mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/etc", "--tmpfs", "/run"]
    mounts += [*_reachable(Path(sys.base_prefix)), "--bind", str(tmp), "/tmp", "--tmpfs", "/var/lib"]
    for ours in (Path(sys.prefix), ROOT):
        if ours.is_relative_to("/tmp"):  # which is another folder in there
            mounts += ["--ro-bind", str(ours), str(ours)]
    mounts += ["--ro-bind", str(secrets), "/run/secrets", "--bind", str(state), "/var/lib/neuraxis"]
    mounts += ["--perms", "0755", "--dir", "/etc/neuraxis"]
    mounts += ["--ro-bind", str(folder / "neuraxis.toml"), "/etc/neuraxis/neuraxis.toml"]
    left = [word for name in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{name}")]
    alone = ["--unshare-pid", "--unshare-ipc", "--as-pid-1", "--die-with-parent", "--cap-drop", "ALL", *left]
    become = [setpriv, f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
    return [bwrap, *mounts, *alone, *become, "--bounding-set=-all", "--inh-caps=-all"]


def _reachable(path: Path) -> list[str]:
    """Return mounts by which others reach a folder that lies in one which its owner alone may enter."""
    closed = next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), None)
    if closed is None:
        return []
    between = [each for each in reversed(path.parents) if closed in each.parents]
    steps = [word for each in between for word in ("--perms", "0755", "--dir", str(each))]
    return ["--perms", "0755", "--tmpfs", str(closed), *steps, "--ro-bind", str(path), str(path)]
