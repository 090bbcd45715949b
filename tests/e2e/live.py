"""A real set of processes, brought up by the command line and asked by it."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.deploy.waiting import until
from tests.forked import forked

TIMEOUT_S = 120.0


class Live:
    """``neuraxis up`` with its data in ``.neuraxis`` of a folder, where its commands are run too.

    The folder is a user's project, with packages of their own that have the names of ours, and ``PYTHONPATH`` names it:
    each process of the set meets them.
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        self.data = folder / ".neuraxis"
        self.output = folder / "up.log"
        ready = folder / "ready"
        for name in ("schemas", "events", "actors", "deploy"):
            (folder / name).mkdir(exist_ok=True)
            (folder / name / "__init__.py").write_text("raise ImportError('this package is somebody else's')\n")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*command("up"), "--ready-file", str(ready), *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**environment(), "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])},
            )
        try:
            until(lambda: ready.exists() or self.process.poll() is not None, "the set is ready")
            assert self.process.poll() is None, self.output.read_text()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    @property
    def ledger(self) -> Path:
        """The set's ledger."""
        return self.data / "ledger.db"

    def stop(self) -> None:
        """Stop the set in order."""
        self.process.terminate()
        try:
            assert self.process.wait(60) == 0, self.output.read_text()
        finally:
            self.process.kill()
            self.process.wait()

    def run(self, *arguments: str, stdin: str | bytes = "", status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command in the set's folder; fails unless it ends with ``status``."""
        return run(self.folder, *arguments, stdin=stdin, status=status)

    def rows(self, *arguments: str, stdin: str | bytes = "", status: int = 0) -> list[dict[str, Any]]:
        """Run a command and return the JSON objects it printed."""
        return [json.loads(line) for line in self.run(*arguments, stdin=stdin, status=status).stdout.splitlines()]

    def events(self, topic: str, *flags: str) -> list[dict[str, Any]]:
        """Return the events of a subject so far, oldest first; that there is none yet is no failure."""
        told = forked(
            ("log", "tail", "--since", "1", "--no-follow", "--topic", topic, "--json", *flags),
            folder=self.folder,
            environment=environment(),
            timeout=TIMEOUT_S,
        )
        assert told.returncode == 0 or "no event" in told.stderr, told.stderr
        return [json.loads(line) for line in told.stdout.splitlines()]

    def ask(self, text: str, *flags: str) -> dict[str, Any]:
        """Have one input answered; return what ``ask --json`` prints."""
        (row,) = self.rows("ask", text, "--json", *flags)
        return row

    def at_rest(self) -> None:
        """Wait until nothing more follows from what is in the log: an answer is told before all that it leads to."""

        def settled() -> bool:
            (replayed,) = self.rows("replay", "--verify", "--json")
            return not any(counts["pending"] for counts in replayed["coverage"].values())

        until(settled, "the set is at rest")


@contextlib.contextmanager
def gateway_of(live: Live, said: Path, *flags: str, **variables: str) -> Iterator[str]:
    """Run a gateway of its own on a running set, and write what it says into a file; yields its address."""
    with (
        said.open("wb") as output,
        subprocess.Popen(
            [*command("gateway", "--http", "127.0.0.1:0"), *flags],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=live.folder,
            env={**environment(), **variables},
        ) as process,
    ):
        try:
            until(lambda: "gateway_ready" in said.read_text() or process.poll() is not None, "the gateway serves")
            assert process.poll() is None, said.read_text()
            [address] = [json.loads(line)["url"] for line in said.read_text().splitlines() if "gateway_ready" in line]
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
                until(lambda: is_ready(client) or process.poll() is not None, "the gateway is ready")
            yield address
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


def is_ready(client: httpx.Client) -> bool:
    """Whether a gateway says that it serves."""
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def run(folder: Path, *arguments: str, stdin: str | bytes = "", status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; fails unless it ends with ``status``."""
    raw = stdin.encode() if isinstance(stdin, str) else stdin
    told = forked(arguments, folder=folder, environment=environment(), stdin=raw, timeout=TIMEOUT_S)
    assert told.returncode == status, f"{arguments} ended with {told.returncode}\n{told.stdout}\n{told.stderr}"
    return told


def command(*arguments: str) -> Sequence[str]:
    """Return the command line that runs ``neuraxis`` with these arguments."""
    return [sys.executable, "-P", "-m", "neuraxis_server", *arguments]


def environment() -> dict[str, str]:
    """Return this process's environment without what would point a command elsewhere, or a set at a language model."""
    kept = {name: value for name, value in os.environ.items() if name != "NATS_URL" and "NEURAXIS_" not in name}
    return {**kept, "NEURAXIS_LLM_URL": "composer"}  # or an Ollama that runs on this machine would answer
