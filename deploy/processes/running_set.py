"""A data folder and the set that runs in it: the lock that admits one set only, and ``run.json``, which describes it.

The lock is the kernel's (``flock``), so a killed set leaves none behind. The embedded broker holds it, too: otherwise
another set could start in the folder while a broker still writes there.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from actors.webhook.settings import Receiver
from deploy.processes.broker.users import write_private
from deploy.processes.supervising.supervisor import Status
from schemas.intake.limits import InputLimits

_KILLED_SET_TIMEOUT_S = 5.0
"""Seconds to wait for the lock if the set that took it was killed: its broker may still be about to end."""

_LIVE_SET_TIMEOUT_S = 0.3
"""Seconds to wait for the lock otherwise: a command that checks whether a set runs holds it for a moment."""


ENDED_EARLY = "was killed, or stopped before its ledger held all of the log"
"""What is said of a set that does not run and has left its ``run.json``."""


class FolderTaken(Exception):
    """Another set runs in the data folder; the message names its process."""

    code = "folder_taken"


class FolderUnusable(Exception):
    """The data folder cannot be made or written; the message says why."""

    code = "folder_unusable"


class NotRunning(Exception):
    """No set runs in the data folder; the message says how to start one."""

    code = "not_running"


class NotReachableYet(NotRunning):
    """A set runs in the data folder, but how to reach it is not known.

    It is still starting, or another release started it, or its files were deleted.
    """


class ModelInUse(msgspec.Struct, frozen=True, kw_only=True):
    """The language model of a set: kind of endpoint (``openai``, ``local``; ``composer`` for none), URL and models."""

    backend: str
    base_url: str = ""
    models: tuple[str, ...] = ()


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a set was started with, for commands that examine it without its configuration.

    ``agents`` and ``sessions`` are the counts of partitions. ``receivers`` are those of alerts; they name environment
    variables and files, as the configuration does, and hold no address. ``key_file`` holds the language model's key.
    ``agent_per`` says who shares an agent. ``stages`` are those that must be served. ``upstream`` is the address that
    requests for other models are passed on to, empty if there is none, and ``upstream_key_file`` holds its key.
    ``replicas`` counts the stream's copies. ``limits`` say how large an input may be, and ``keys_file`` is the file of
    the gateway's keys, absolute, or empty for the one in the data folder. ``alert_consumers`` are those that the
    broker's user ``reader`` may have. The last four are None if an older release wrote the file.
    """

    agents: int
    sessions: int
    receivers: dict[str, Receiver]
    effectors: tuple[str, ...]
    key_file: str
    agent_per: Literal["shared", "user", "session"] = "shared"
    stages: tuple[str, ...] = ()
    upstream: str = ""
    upstream_key_file: str = ""
    replicas: int | None = None
    limits: InputLimits | None = None
    keys_file: str | None = None
    alert_consumers: tuple[str, ...] | None = None


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``run.json``, which describes a running set. It names the files of logins and holds no secret.

    ``contexts`` is the folder of the embedded broker's NATS CLI contexts, one for each user; empty with an external
    broker. ``context`` is the file of the context that commands use. ``nats_url`` is empty until the broker serves.
    ``started`` is an RFC 3339 time. ``ready`` says that every process serves. ``model`` is None until it is known.
    ``http`` is the URL of the gateway, empty without one. ``in_force`` are the settings; None if an older release wrote
    the file.
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
    """The folder in which a set keeps its files, and the lock on it."""

    path: Path

    @property
    def broker(self) -> Path:
        """The embedded broker's folder."""
        return self.path / "broker"

    @property
    def external(self) -> Path:
        """The NATS CLI context of an external broker, while a set uses it."""
        return self.path / "external.json"

    @property
    def ledger(self) -> Path:
        """The ledger file."""
        return self.path / "ledger.db"

    @property
    def keys(self) -> Path:
        """The file of API keys, unless the configuration names another."""
        return self.path / "keys.jsonl"

    @property
    def run_file(self) -> Path:
        """The file in which the running set describes itself."""
        return self.path / "run.json"

    @property
    def _lock_file(self) -> Path:
        return self.path / "lock"

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Lock the folder for one set; yields the lock's file descriptor, which children can inherit.

        Raises:
            FolderTaken: another set has locked it.
            FolderUnusable: it cannot be made or written.
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
                timeout_s = _LIVE_SET_TIMEOUT_S if _is_alive(holder) else _KILLED_SET_TIMEOUT_S
                if time.monotonic() > begun + timeout_s:
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
        """Replace ``run.json`` as a whole; raises FolderUnusable."""
        try:
            write_private(self.run_file, msgspec.json.format(msgspec.json.encode(run)) + b"\n")
        except OSError as wrong:
            raise self._unusable(wrong) from wrong

    def read(self) -> RunFile:
        """Return the description of the running set.

        Raises:
            NotReachableYet: a set runs, and this release cannot read what it says of itself, or it says nothing yet.
            NotRunning: no set runs, or it was killed, or stopped before its ledger held all of the log.
        """
        try:
            content = self.run_file.read_bytes()
            if not content and self._is_held():  # left by a set before this one, see ``end_run``
                raise FileNotFoundError
            run = msgspec.json.decode(content, type=RunFile)
        except FileNotFoundError:
            if self._is_held():
                raise NotReachableYet(
                    f"a set runs in {self.path}, and {self.run_file} is not there yet: try again in a second"
                ) from None
            raise NotRunning(
                f"no set runs in {self.path}: start one with `neuraxis up`, name its folder with --data, "
                "or name a broker with --nats"
            ) from None
        except (OSError, msgspec.DecodeError) as wrong:
            if self._is_held():
                raise NotReachableYet(
                    f"a set runs in {self.path}, and {self.run_file} cannot be read ({wrong}): use the commands of the "
                    "release that started it"
                ) from wrong
            raise NotRunning(f"{self.run_file} cannot be read ({wrong}): start the set again") from wrong
        if not self._is_held():
            if _is_alive(str(run.pid)) and not self._lock_file.exists():
                raise NotReachableYet(
                    f"files of the set in {self.path} were deleted while it runs (process {run.pid}): stop that "
                    "process, and start the set again"
                )
            raise NotRunning(
                f"the set in {self.path} (process {run.pid}) {ENDED_EARLY}: start it again with "
                f"`neuraxis up --data {self.path}`"
            )
        if (holder := self._holder()) != str(run.pid):
            raise NotReachableYet(
                f"the set in {self.path} does not run yet: process {holder} is starting a set there, or works on its "
                "log; try again when it is done"
            )
        return run

    def _holder(self) -> str:
        """Return the process that has locked the folder."""
        with open(self._lock_file, "rb") as lock:
            return lock.read(32).decode(errors="replace").strip()

    def end_run(self, *, ledger_holds_end: bool) -> None:
        """Remove the login of an external broker and, if the ledger holds the end of the log, ``run.json``.

        Else ``run.json`` stays, as after a set that was killed: it tells commands that the ledger may lack the end.
        """
        self.external.unlink(missing_ok=True)
        with suppress(OSError):
            if ledger_holds_end:
                self.run_file.unlink(missing_ok=True)
            else:
                self.run_file.touch(0o600)  # it may never have been written: an empty file needs no room


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
