"""The file of keys: one JSON object on each line, with a hash instead of the key. ``neuraxis keys`` writes it."""

from pathlib import Path

import msgspec

from actors.gateway.http.keys.key import Hash, Id, Key
from events.files.bounded_files import read_bounded

MOST_BYTES = 64 * 1024 * 1024
"""Most bytes of a file of keys: some two hundred thousand of them."""


class BadKeyFile(ValueError):
    """The file of keys cannot be used; the message names the line and says what to do."""

    code = "bad_keys"


class _AnyKey(msgspec.Struct, frozen=True):
    """The fields that a key has in every release."""

    id: Id
    hash: Hash
    scopes: tuple[str, ...]


def _has_key(line: str) -> bool:
    try:
        msgspec.json.decode(line, type=_AnyKey)
    except msgspec.DecodeError:
        return False
    return True


def read_keys(file: Path) -> tuple[Key, ...]:
    """Return the keys in a file, including revoked ones.

    Raises:
        FileNotFoundError: the file does not exist.
        BadKeyFile: it cannot be read, a line is not a key, or two keys have the same id.
    """
    try:
        lines = read_bounded(file, MOST_BYTES).decode().splitlines()
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as wrong:
        raise BadKeyFile(f"the file of keys {file} cannot be read: {wrong}") from wrong
    keys: dict[str, Key] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            key = msgspec.json.decode(line, type=Key)
        except msgspec.DecodeError as wrong:
            # Without the decoder's message, which may repeat the line: somebody may have pasted a key itself there.
            what = (
                "a later release made this key, with rights or limits that this one does not know: run that release, "
                "or remove the line if it was changed by hand"
                if _has_key(line)
                else "this is no key as `neuraxis keys add` stores it: remove the line"
            )
            raise BadKeyFile(f"{file}, line {number}: {what}") from wrong
        if key.id in keys:
            raise BadKeyFile(f"{file}, line {number}: there is another key of id {key.id}: remove one of the lines")
        keys[key.id] = key
    return tuple(keys.values())
