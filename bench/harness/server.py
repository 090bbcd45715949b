"""Runs a nats-server for a benchmark, with a port and a store of its own, which are removed at the end."""

import contextlib
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from deploy.processes.broker.binary import find_nats_server

SYNCS = ("always", "2m")
"""The values of ``sync_interval``: flush each append before it is acknowledged; nats-server's own default."""

_START_TIMEOUT_S = 20.0
_CONFIG = """
listen: 127.0.0.1:-1
ports_file_dir: "{folder}"
max_payload: 2MB
jetstream {{ store_dir: "{store}", sync_interval: {sync} }}
"""


@contextlib.contextmanager
def nats_server(sync: str, store: Path | None = None) -> Iterator[str]:
    """Run a nats-server with JetStream whose ``sync_interval`` is ``sync``; yields where clients connect.

    ``store`` is the folder of its streams; by default it is one of its own.
    """
    with tempfile.TemporaryDirectory(prefix="neuraxis-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        config = folder / "nats-server.conf"
        config.write_text(_CONFIG.format(folder=folder, sync=sync, store=store or folder / "store"))
        output = folder / "output"
        with output.open("wb") as log:
            process = subprocess.Popen([str(find_nats_server()), "-c", str(config)], stdout=log, stderr=log)
        try:
            yield f"nats://127.0.0.1:{_port(folder, process, output)}"
        finally:
            process.kill()
            process.wait()


def _port(folder: Path, process: subprocess.Popen[bytes], output: Path) -> int:
    ports = folder / f"nats-server_{process.pid}.ports"
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):  # not there yet, or half written
            for url in json.loads(ports.read_text()).get("nats", []):
                if found := re.search(r":(\d+)$", url):
                    return int(found[1])
        time.sleep(0.01)
    raise RuntimeError(f"nats-server did not start:\n{output.read_text()}")
