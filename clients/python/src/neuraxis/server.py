"""Finds the server's address and the API key."""

import json
import os
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from neuraxis.errors import Misconfigured

URL = "NEURAXIS_URL"
API_KEY = "NEURAXIS_API_KEY"
"""Environment variables with the server's address and the API key."""

FOLDER = Path(".neuraxis")
"""The default data folder of ``neuraxis up``."""

_OTHERS = frozenset({URL, API_KEY, "NEURAXIS_API_KEYS", "NEURAXIS_LLM_URL", "NEURAXIS_LLM_API_KEY"})
"""Variables of clients and servers with similar names: none of them is a misspelt one."""

_LOOPBACK = ("localhost", "::1", "127.")


@dataclass(frozen=True)
class Server:
    """A server's address, without ``/v1``, and the API key, which is shown nowhere."""

    url: str
    api_key: str = field(default="", repr=False)

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, so that no proxy is used."""
        return (urlsplit(self.url).hostname or "").startswith(_LOOPBACK)


def find_server(base_url: str | None, api_key: str | None, folder: Path | str = FOLDER) -> Server:
    """Return the server to call: ``base_url``, else ``NEURAXIS_URL``, else the set that runs in ``folder``.

    The key is ``api_key``, else ``NEURAXIS_API_KEY``, else none.

    Raises:
        Misconfigured: none of them says where it is, a variable of the environment is a misspelt one of these, or the
            address or the key is invalid.
    """
    if not base_url:
        _refuse_misspelt(URL)
    if api_key is None:
        _refuse_misspelt(API_KEY)
    key = os.environ.get(API_KEY, "") if api_key is None else api_key
    if any(not ("!" <= char <= "~") for char in key):
        raise Misconfigured("the API key has blanks, line ends or characters outside ASCII: it is none", code="bad_key")
    return Server(_checked(base_url or os.environ.get(URL, "") or _running(Path(folder))), key)


def _refuse_misspelt(variable: str) -> None:
    """Raise Misconfigured if a variable is not set, but one with nearly the same name is, which would be ignored."""
    if os.environ.get(variable):
        return
    others = [name for name in os.environ if name.startswith("NEURAXIS") and name not in _OTHERS]
    for near in get_close_matches(variable, others, n=1, cutoff=0.88):
        raise Misconfigured(f"{near}: there is no such variable: did you mean {variable}?", code="bad_variable")


def run_file(folder: Path | str) -> dict[str, Any]:
    """Return what ``run.json`` says about the set that runs in a folder; raises Misconfigured if none runs.

    A set that was killed, or stopped before its ledger was complete, leaves its file behind, and another server may
    have its port by now.
    """
    path = Path(folder) / "run.json"
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise Misconfigured(
            f"it is not said where the server is: give base_url, set {URL}, or name the folder of a set that runs"
            f" on this machine ({path} is not there)",
            code="no_server",
        ) from None
    except (OSError, ValueError) as wrong:
        raise Misconfigured(f"{path} cannot be read: {wrong}", code="no_server") from wrong
    if not isinstance(found, dict):
        raise Misconfigured(f"{path} describes no running set", code="no_server")
    if not _runs(Path(folder), found.get("pid")):
        raise Misconfigured(
            f"the set in {folder} was killed or stopped, or is starting: `neuraxis up` starts it again",
            code="no_server",
        )
    return found


def _runs(folder: Path, pid: object) -> bool:
    """Return whether a set's process holds the lock of its folder; True where that cannot be seen."""
    holder = b""
    try:
        import fcntl  # not on every system

        with open(folder / "lock", "rb") as lock:
            holder = lock.read(32).strip()
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return holder == str(pid).encode()
    except (ImportError, OSError):
        return True
    return False


def _running(folder: Path) -> str:
    address = run_file(folder).get("http")
    if not isinstance(address, str) or not address:
        raise Misconfigured(f"the set in {folder} serves no HTTP: start it without `--http off`", code="no_server")
    # Who listens on all addresses is reached by loopback, and past every proxy.
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _checked(address: str) -> str:
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or parts.query or parts.fragment or parts.username is not None:
        shown = address.rpartition("@")[2]
        raise Misconfigured(f"{shown!r} is no address of a server: write http://HOST:PORT", code="bad_url")
    return address.rstrip("/").removesuffix("/v1").rstrip("/")
