"""The embedded server's configuration file, as JSON, which nats-server reads like its own format. Pure."""

from pathlib import Path
from typing import Any

import msgspec

MAX_PAYLOAD = 2 * 1024 * 1024
"""Largest message, headers included, in bytes: twice the log's largest record, whose own check refuses it first."""

NEVER = "87600h"
"""``never`` as nats-server takes it: an interval of ten years."""

MEMORY_BYTES = 256 * 1024 * 1024
"""Bytes of streams that are kept in memory: the workers' heartbeats."""

_LOG_FILE_BYTES = 10 * 1024 * 1024


class Layout(msgspec.Struct, frozen=True):
    """The files and folders of an embedded broker, all below one folder."""

    folder: Path

    @property
    def configuration(self) -> Path:
        """The server's configuration file; it holds secrets."""
        return self.folder / "nats-server.conf"

    @property
    def store(self) -> Path:
        """The folder of the streams."""
        return self.folder / "store"

    @property
    def log(self) -> Path:
        """The server's own log file."""
        return self.folder / "nats-server.log"

    @property
    def ports(self) -> Path:
        """The folder into which the server writes the ports that it listens on."""
        return self.folder / "ports"

    @property
    def contexts(self) -> Path:
        """The folder of the users' logins, each a NATS CLI context."""
        return self.folder / "contexts"

    def streams(self) -> list[Path]:
        """Return the folders of the streams that hold messages, whether or not the server can read them."""
        blocks = self.store.glob("jetstream/*/streams/*/msgs/*.blk")
        return sorted({block.parent.parent for block in blocks if block.stat().st_size})


def server_configuration(
    layout: Layout, *, port: int, sync: str, max_store: int, accounts: dict[str, Any]
) -> dict[str, Any]:
    """Return the server's configuration.

    Args:
        layout: The paths of its files.
        port: Port on the loopback interface; -1 lets the server choose a free one.
        sync: JetStream's ``sync_interval``; ``always`` flushes every append before it is acknowledged,
            ``never`` leaves that to the system.
        max_store: Bytes the store may grow to.
        accounts: The ``accounts`` block.
    """
    return {
        "server_name": "neuraxis-embedded",
        "host": "127.0.0.1",
        "port": port,
        "ports_file_dir": str(layout.ports),
        "max_payload": MAX_PAYLOAD,
        "jetstream": {
            "store_dir": str(layout.store),
            "sync_interval": NEVER if sync == "never" else sync,
            "max_memory_store": MEMORY_BYTES,
            "max_file_store": max_store,
        },
        "log_file": str(layout.log),
        "logfile_size_limit": _LOG_FILE_BYTES,
        "logfile_max_num": 3,
        "accounts": accounts,
        "system_account": "SYS",
    }


def render(configuration: dict[str, Any]) -> bytes:
    """Return the text of a configuration file."""
    return msgspec.json.format(msgspec.json.encode(configuration))
