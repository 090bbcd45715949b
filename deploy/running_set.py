"""A data folder and the set that runs in it: the lock that keeps it to one set, and ``run.json``, which says where it is.

The lock is the kernel's (``flock``), so a killed set leaves none behind. The embedded broker holds it open too:
nobody else can start in the folder while a broker still writes there.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from deploy.broker.users import write_private

DEFAULT_FOLDER = Path(".neuraxis")
_ENDING = 5.0
"""Seconds to wait for the rest of a killed set to end."""


class FolderTaken(Exception):
    """Another set runs in the data folder; the message names its process."""

    code = "folder_taken"


class NotRunning(Exception):
    """No set runs in the data folder; the message says how to start one."""

    code = "not_running"


class Child(msgspec.Struct, frozen=True):
    """A process of the set; ``pid`` is 0 while it is being started again."""

    name: str
    pid: int
    ready: bool
    restarts: int


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """What ``run.json`` says of a running set. It names the files of logins and holds no secret.

    ``contexts`` is the folder of NATS CLI contexts, one a broker user; empty with a broker of one's own, of which
    ``context`` may name the context it is reached by. ``started`` is RFC 3339. ``ready`` says that every actor is live.
    """

    pid: int
    started: str
    version: str
    nats_url: str
    contexts: str = ""
    context: str = ""
    stream: str = ""
    ledger: str = ""
    sync: str = ""
    ready: bool = False
    processes: tuple[Child, ...] = ()


class DataFolder(msgspec.Struct, frozen=True):
    """Where a set keeps its things."""

    path: Path

    @property
    def broker(self) -> Path:
        """The embedded broker's folder."""
        return self.path / "broker"

    @property
    def ledger(self) -> Path:
        """The ledger file."""
        return self.path / "ledger.db"

    @property
    def run_file(self) -> Path:
        """Where the running set describes itself."""
        return self.path / "run.json"

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the folder for one set; yields the lock's descriptor, for children to hold open too.

        Raises:
            FolderTaken: another set holds it.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._lock(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield descriptor
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        deadline = time.monotonic() + _ENDING
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
                if _lives(holder) or time.monotonic() > deadline:
                    raise FolderTaken(
                        f"{self.path} is in use by process {holder or 'unknown'}: stop that one, "
                        "or name another folder with --data"
                    ) from None
            time.sleep(0.02)

    def write(self, run: RunFile) -> None:
        """Replace ``run.json`` at once."""
        write_private(self.run_file, msgspec.json.format(msgspec.json.encode(run)) + b"\n")

    def read(self) -> RunFile:
        """Return what the running set says of itself.

        Raises:
            NotRunning: there is none, or it was killed.
        """
        try:
            run = msgspec.json.decode(self.run_file.read_bytes(), type=RunFile)
        except FileNotFoundError:
            raise NotRunning(
                f"no set runs in {self.path}: start one with `neuraxis up`, name its folder with --data, "
                "or name a broker with --nats"
            ) from None
        except (OSError, msgspec.DecodeError) as wrong:
            raise NotRunning(f"{self.run_file} cannot be read ({wrong}): start the set again") from wrong
        if not _lives(str(run.pid)):
            raise NotRunning(f"the set in {self.path} (process {run.pid}) was killed: start it again with `neuraxis up`")
        return run

    def forget(self) -> None:
        """Remove ``run.json``."""
        self.run_file.unlink(missing_ok=True)


def _lives(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
