"""The valid keys: those of the environment, and those of a file, which is read again when it changes."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

from actors.gateway.http.keys.file import BadKeyFile, read_keys
from actors.gateway.http.keys.key import ALL_SCOPES, ANYBODY, Key, Scope, hash_of
from events.loggers import get_logger

VARIABLE = "NEURAXIS_API_KEYS"
"""Environment variable that holds keys with the scope ``ask``, separated by commas or white space."""

OPERATOR_VARIABLE = "NEURAXIS_OPERATOR_KEYS"
"""Environment variable that holds keys with all scopes, separated by commas or white space."""

FEWEST_CHARACTERS = 16
"""Fewest characters of a key from the environment."""

CHECK_INTERVAL_S = 1.0
"""Seconds between two checks of the file; a revoked key stays valid for no longer than that."""

_logger = get_logger("neuraxis.gateway")


class BadKeys(ValueError):
    """The API keys, or the lack of any, do not fit the address; the message says what to do and never shows a key."""

    code = "bad_keys"


class ApiKeys:
    """The valid keys of a gateway.

    Once there was a key or a file of keys, a key is required until the process ends: a file that is lost or broken does
    not open the gateway to everybody. While the file cannot be read, the keys that were read last stay valid.

    Args:
        fixed: Keys that do not change.
        file: The file of the other keys; it need not exist.
        clock: Returns monotonic seconds.

    Raises:
        BadKeyFile: the file exists but cannot be used.
    """

    def __init__(
        self, fixed: Sequence[Key] = (), file: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fixed = tuple(fixed)
        self._file = file
        self._clock = clock
        self._keys: tuple[Key, ...] = ()
        self._by_hash: dict[str, Key] = {}
        self._hold(self._fixed)
        self._required = bool(fixed)
        self._version: tuple[int, ...] | None = None  # of the file that was read last, by its stat
        self._logged_error = ""
        self._checked_at = clock()
        self._load()

    def __repr__(self) -> str:
        return f"ApiKeys({len(self._keys)})"

    @property
    def required(self) -> bool:
        """Whether a key is required."""
        self._reload_if_due()
        return self._required

    def find(self, authorization: bytes) -> Key | None:
        """Return the key in an ``Authorization`` header; :data:`ANYBODY` where none is required; None if invalid."""
        self._reload_if_due()
        if not self._required:
            return ANYBODY
        scheme, _, given = authorization.partition(b" ")
        given_hash = hash_of(given.strip())
        # Looked up by its hash, however many keys there are. The time taken reveals at most a few bits of a hash, and
        # nobody can choose those.
        found = self._by_hash.get(given_hash)
        return found if found is not None and scheme.lower() == b"bearer" else None

    def _reload_if_due(self) -> None:
        now = self._clock()
        if self._file is None or now - self._checked_at < CHECK_INTERVAL_S:
            return
        self._checked_at = now
        try:
            self._load()
        except BadKeyFile as wrong:
            if str(wrong) != self._logged_error:
                _logger.error("keys_unreadable", reason=str(wrong), in_force=len(self._keys))
            self._logged_error = str(wrong)

    def _load(self) -> None:
        if self._file is None:
            return
        try:
            found = self._file.stat()
            # The time of a change includes permissions: they may be the reason why it could not be read.
            version = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            if version == self._version:
                return
            self._version = version
            self._required = True
            keys = self._read(self._file)
        except FileNotFoundError:
            if self._version is not None:
                self._version = None
                raise BadKeyFile(f"the file of keys {self._file} is gone: put it back") from None
            return
        except OSError as wrong:
            raise BadKeyFile(f"the file of keys {self._file} cannot be read: {wrong}") from wrong
        self._logged_error = ""
        self._hold((*self._fixed, *(key for key in keys if not key.revoked)))
        _logger.info("keys_read", keys=[key.id for key in self._keys])

    def _hold(self, keys: tuple[Key, ...]) -> None:
        self._keys = keys
        self._by_hash = {key.hash: key for key in reversed(keys)}  # of equal keys the first counts

    def _read(self, file: Path) -> tuple[Key, ...]:
        try:
            return read_keys(file)
        except BadKeyFile as wrong:
            if isinstance(wrong.__cause__, OSError):
                # The file may be right, and this process out of descriptors. Read it again: it may revoke a key.
                self._version = ()
            raise


def api_keys_for(host: str, file: Path, environment: Mapping[str, str], *, is_named: bool = False) -> ApiKeys:
    """Return the keys from the environment and from a file.

    Args:
        host: Where the gateway listens.
        file: The file of keys; it need not exist.
        environment: The environment variables of the process.
        is_named: Whether somebody has named the file. Then they believe that keys are asked for, and the file, or keys
            of the environment, must be there.

    Raises:
        BadKeys: a key is too short, a variable holds none, the file cannot be used, or there is no key although others
            can reach the address, or the file was named.
    """
    fixed = [
        *_keys_in("ask", VARIABLE, ("ask",), environment),
        *_keys_in("operator", OPERATOR_VARIABLE, ALL_SCOPES, environment),
    ]
    try:
        keys = ApiKeys(fixed, file)
    except BadKeyFile as wrong:
        raise BadKeys(str(wrong)) from wrong
    if not keys.required and is_named:
        raise BadKeys(
            f"gateway.keys_file names {file}, which is not there, and no key would be asked for: `neuraxis keys add` "
            "makes it with its first key; or leave the setting out"
        )
    if not keys.required and not is_loopback(host):
        raise BadKeys(
            f"{host} can be reached from other machines: make API keys with `neuraxis keys add`, set them in "
            f"{VARIABLE}, or listen on 127.0.0.1"
        )
    return keys


def _keys_in(kind: str, variable: str, scopes: tuple[Scope, ...], environment: Mapping[str, str]) -> list[Key]:
    given = [key for key in re.split(r"[,\s]+", environment.get(variable, "")) if key]
    if variable in environment and not given:
        # Often from a shell variable that is not set. Whoever sets it believes that a key is asked for.
        raise BadKeys(f"{variable} is set and holds no key: put one there, or unset it")
    if short := [key for key in given if len(key) < FEWEST_CHARACTERS]:
        raise BadKeys(
            f"{len(short)} of the keys in {variable} are shorter than {FEWEST_CHARACTERS} characters: make longer, "
            "random ones"
        )
    # Ids are numbers, not parts of hashes: a part of a hash would help somebody to guess a weak key.
    return [
        Key(id=f"env-{kind}-{number}", hash=hash_of(key), scopes=scopes)
        for number, key in enumerate(dict.fromkeys(given), 1)
    ]


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
