"""The file of the gateway's API keys: its path, and changes to it. Running gateways notice changes by themselves."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from actors.gateway.http.keys.file import BadKeyFile, read_keys
from actors.gateway.http.keys.key import Key, Scope, new_key
from deploy.config.settings import GatewaySettings
from deploy.processes.running_set import DataFolder
from events.files.locking import lock
from events.files.whole_files import PRIVATE, replace_file


class NoSuchKey(LookupError):
    """There is no such key; the message says what to do."""

    code = "no_such_key"


def keys_file(settings: GatewaySettings, data: DataFolder) -> Path:
    """Return the path of a gateway's file of keys."""
    return Path(settings.keys_file).expanduser() if settings.keys_file else data.keys


def held_keys(file: Path) -> tuple[Key, ...]:
    """Return the keys in a file, revoked ones too, oldest first; raises BadKeyFile."""
    try:
        return read_keys(file)
    except FileNotFoundError:
        return ()


def add_key(file: Path, scopes: tuple[Scope, ...], *, agent: str, per_minute: int, note: str) -> tuple[Key, str]:
    """Make a key and store its hash; return what is stored, and the key itself. Raises BadKeyFile."""
    secret = ""

    def change(held: tuple[Key, ...]) -> Sequence[Key]:
        nonlocal secret
        ids = {key.id for key in held}
        while True:
            key, secret = new_key(scopes, created=_now(), agent=agent, per_minute=per_minute, note=note)
            if key.id not in ids:
                return (*held, key)

    return _change(file, change)[-1], secret


def revoke_key(file: Path, id: str) -> Key:
    """Revoke a key, so that no gateway accepts it any more; return it. Revoking it again changes nothing.

    Raises:
        NoSuchKey: no key has this id.
        BadKeyFile: the file cannot be read.
    """

    def change(held: tuple[Key, ...]) -> Sequence[Key]:
        if id not in {key.id for key in held}:
            raise NoSuchKey(f"{file} has no key of id {id}: `neuraxis keys list` shows those there are")
        return [
            msgspec.structs.replace(key, revoked=_now()) if key.id == id and not key.revoked else key for key in held
        ]

    return next(key for key in _change(file, change) if key.id == id)


def _change(file: Path, change: Callable[[tuple[Key, ...]], Sequence[Key]]) -> Sequence[Key]:
    file = Path(os.path.realpath(file))  # the file itself, not a link to it: gateways may read it by another path
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = _owner(file)
        with _locked(file, owner):
            keys = change(held_keys(file))
            # Replaced as a whole: a gateway that reads it meanwhile gets the old keys or the new ones, never half a
            # line.
            replace_file(file, b"".join(msgspec.json.encode(key) + b"\n" for key in keys), PRIVATE, owner)
    except OSError as wrong:
        raise BadKeyFile(f"the file of keys {file} cannot be written: {wrong}") from wrong
    return keys


def _owner(file: Path) -> os.stat_result | None:
    """Return whose the file is to be where root writes it: a gateway that cannot read it keeps a revoked key in force.

    It is the user that has the file; or its folder, if there is none yet, or one that root made.
    """
    if os.geteuid() != 0:
        return None
    found = file.stat() if file.exists() else None
    return found if found and found.st_uid != 0 else file.parent.stat()


@contextmanager
def _locked(file: Path, owner: os.stat_result | None) -> Iterator[None]:
    """Let only one command at a time change the file. The lock is beside it, since the file itself is replaced."""
    path = file.with_name(f"{file.name}.lock")
    # Who has the folder may have put a link there: root would give away the file that it leads to.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        if owner is not None and os.fstat(descriptor).st_nlink == 1:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
