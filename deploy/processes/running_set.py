"""A data folder and the set that runs in it: the lock that allows one set only, and ``run.json``, which describes it.

The lock is the kernel's (``flock``), so a killed set leaves none behind. The embedded broker holds it open too.
Otherwise another set could start in the folder while a broker still writes there.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from actors.webhook.settings import Receiver
from deploy.processes.broker.users import write_private
from deploy.processes.supervising.supervisor import Status

_ENDING = 5.0
"""Seconds to wait for the rest of a killed set to end."""

_GLANCE = 0.3
"""Seconds to wait for a command that only looks whether the folder is held."""


class FolderTaken(Exception):
    """Another set runs in the data folder; the message names its process."""

    code = "folder_taken"


class FolderUnusable(Exception):
    """The data folder cannot be made or written; the message says why."""

    code = "folder_unusable"


class NotRunning(Exception):
    """No set runs in the data folder; the message says how to start one."""

    code = "not_running"


class ModelInUse(msgspec.Struct, frozen=True, kw_only=True):
    """The language model of a set: kind of endpoint (``openai``, ``local``; ``composer`` for none), URL and models."""

    backend: str
    base_url: str = ""
    models: tuple[str, ...] = ()


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a set was started with, for who examines it where its configuration is not, or another one is.

    ``receivers`` name variables and files, as the configuration does, never an address. ``stages`` have to be served.
    """

    agents: int
    sessions: int
    receivers: dict[str, Receiver]
    effectors: tuple[str, ...]
    key_file: str
    agent_per: Literal["shared", "user", "session"] = "shared"
    stages: tuple[str, ...] = ()


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """What ``run.json`` says of a running set. It names the files of logins and holds no secret.

    ``contexts`` is the folder of NATS CLI contexts of the embedded broker, one a user; empty with a broker of one's
    own. ``context`` is the file of the context that the command line takes. ``nats_url`` is empty until the broker
    serves. ``started`` is RFC 3339. ``ready`` says that every actor is live. ``model`` is None until it was looked for.
    ``http`` is the URL of the gateway, empty without one. ``in_force`` is None in a file of another release.
    """

    pid: int
    started: str
    version: str
    nats_url: str
    contexts: str = ""
    context: str = ""
    stream: str = ""
    ledger: str = ""
    ready: bool = False
    processes: tuple[Status, ...] = ()
    model: ModelInUse | None = None
    http: str = ""
    in_force: RunSettings | None = None


class DataFolder(msgspec.Struct, frozen=True):
    """Where a set keeps its things."""

    path: Path

    @property
    def broker(self) -> Path:
        """The embedded broker's folder."""
        return self.path / "broker"

    @property
    def external(self) -> Path:
        """The context of a broker of one's own, while a set uses it."""
        return self.path / "external.json"

    @property
    def ledger(self) -> Path:
        """The ledger file."""
        return self.path / "ledger.db"

    @property
    def keys(self) -> Path:
        """The file of API keys, where no other one is set."""
        return self.path / "keys.jsonl"

    @property
    def run_file(self) -> Path:
        """Where the running set describes itself."""
        return self.path / "run.json"

    @property
    def _lock_file(self) -> Path:
        return self.path / "lock"

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the folder for one set; yields the lock's descriptor, for children to hold open too.

        Raises:
            FolderTaken: another set holds it.
            FolderUnusable: it cannot be made, or not be written.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as wrong:
            raise self._unusable(wrong) from wrong
        try:
            self._lock(descriptor)
            try:
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            except OSError as wrong:
                raise self._unusable(wrong) from wrong
            yield descriptor
        finally:
            os.close(descriptor)

    def _unusable(self, wrong: OSError) -> FolderUnusable:
        return FolderUnusable(
            f"the data folder {self.path} cannot be written ({wrong.strerror}): mend that, or name another one "
            "with --data"
        )

    def _lock(self, descriptor: int) -> None:
        begun = time.monotonic()
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
                patience = _GLANCE if _lives(holder) else _ENDING
                if time.monotonic() > begun + patience:
                    raise FolderTaken(
                        f"{self.path} is in use by process {holder or 'unknown'}: stop that one, "
                        "or name another folder with --data"
                    ) from None
            time.sleep(0.02)

    def _is_held(self) -> bool:
        try:
            descriptor = os.open(self._lock_file, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def write(self, run: RunFile) -> None:
        """Replace ``run.json`` at once; raises FolderUnusable."""
        try:
            write_private(self.run_file, msgspec.json.format(msgspec.json.encode(run)) + b"\n")
        except OSError as wrong:
            raise self._unusable(wrong) from wrong

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
        if not self._is_held():
            raise NotRunning(
                f"the set in {self.path} (process {run.pid}) was killed: start it again with "
                f"`neuraxis up --data {self.path}`"
            )
        return run

    def forget(self) -> None:
        """Remove ``run.json`` and the login of a broker of one's own."""
        self.run_file.unlink(missing_ok=True)
        self.external.unlink(missing_ok=True)


def _lives(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
