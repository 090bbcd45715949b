"""API keys: read once, kept as hashes, compared in constant time, and never logged."""

import hmac
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

VARIABLE = "NEURAXIS_API_KEYS"
"""Variable that holds keys, separated by commas or white space."""

OPERATOR_VARIABLE = "NEURAXIS_OPERATOR_KEYS"
"""Variable that holds operators' keys, likewise."""

LEAST = 16
"""Fewest characters of a key."""


class BadKeys(ValueError):
    """The API keys, or their lack, do not go with the address; the message says what to do. It never shows a key."""

    code = "bad_keys"


class ApiKeys:
    """The keys that open the gateway; with none, everybody may come in."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._hashes = tuple(dict.fromkeys(sha256(key.encode()).digest() for key in keys))

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def __repr__(self) -> str:
        return f"ApiKeys({len(self._hashes)})"

    def open_to(self, authorization: bytes) -> bool:
        """Return whether an ``Authorization`` header names one of the keys, or none is asked for."""
        if not self._hashes:
            return True
        scheme, _, key = authorization.partition(b" ")
        given = sha256(key.strip()).digest()
        # All of them, whichever it is: the time taken tells nothing.
        matches = [hmac.compare_digest(given, known) for known in self._hashes]
        return any(matches) and scheme.lower() == b"bearer"


def keys_for(host: str, key_file: str, environment: Mapping[str, str]) -> ApiKeys:
    """Return the keys from the environment and from a file (one a line, ``#`` begins a remark).

    Raises:
        BadKeys: a key is too short, the file cannot be read, or there is none for an address others can reach.
    """
    given = _given(VARIABLE, key_file, environment)
    if not given and not is_loopback(host):
        raise BadKeys(
            f"{host} can be reached from other machines: set API keys in {VARIABLE} or gateway.key_file, "
            "or listen on 127.0.0.1"
        )
    return ApiKeys(given)


def operator_keys(key_file: str, environment: Mapping[str, str]) -> ApiKeys:
    """Return operators' keys from the environment and from a file, as :func:`keys_for` does; there may be none.

    Raises:
        BadKeys: a key is too short, or the file cannot be read.
    """
    return ApiKeys(_given(OPERATOR_VARIABLE, key_file, environment))


def _given(variable: str, key_file: str, environment: Mapping[str, str]) -> list[str]:
    keys = re.split(r"[,\s]+", environment.get(variable, ""))
    if key_file:
        try:
            lines = Path(key_file).expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as wrong:
            raise BadKeys(f"the file of keys {key_file} cannot be read: {wrong}") from wrong
        keys += [line.partition("#")[0].strip() for line in lines]
    given = [key for key in keys if key]
    if short := [key for key in given if len(key) < LEAST]:
        raise BadKeys(f"{len(short)} of the keys are shorter than {LEAST} characters: make longer, random ones")
    return given


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
