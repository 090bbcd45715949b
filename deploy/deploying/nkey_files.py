"""Files of login secrets, nkey seeds or passwords: made if missing, never replaced, readable by their owner alone."""

import secrets
from pathlib import Path

import nkeys

from events.files.whole_files import PRIVATE, replace_file


class BadSecret(ValueError):
    """A file does not hold the secret that it should."""

    code = "bad_secret"


def nkey_in(file: Path) -> str:
    """Return the public key of the nkey whose seed a file holds; a missing file is made.

    Raises:
        BadSecret: the file does not hold the seed of a user.
        OSError: it cannot be read or written.
    """
    if not file.exists():
        seed = nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER)
        _write(file, seed)
    try:
        pair = nkeys.from_seed(bytearray(file.read_bytes().strip()))
        public: str = pair.public_key.decode()
    except (nkeys.NkeysError, ValueError) as wrong:
        raise BadSecret(f"{file} holds no nkey seed: put the file back, or remove it to make a new login") from wrong
    if not public.startswith("U"):
        raise BadSecret(f"{file} holds the seed of no user: put the file back, or remove it to make a new login")
    return public


def password_in(file: Path) -> str:
    """Return the password that a file holds; a missing file is made. Raises BadSecret and OSError."""
    if not file.exists():
        _write(file, secrets.token_urlsafe(32).encode())
    password = file.read_text("ascii", "replace").strip()
    if len(password) < 16 or not password.replace("-", "").replace("_", "").isalnum():
        raise BadSecret(
            f"{file} holds no password (16 letters, digits, - and _ at least): put the file back, or remove it"
        )
    return password


def _write(file: Path, content: bytes) -> None:
    # Whole or not at all: half a password could pass for one. Without a newline: nats-py takes the whole file for the
    # seed.
    replace_file(file, content, PRIVATE)
