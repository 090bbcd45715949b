"""Long texts of a configuration in separate files: ``{ file = "soul.md" }`` is replaced by the file's text.

The text is put in when the configuration is read: actors read no files, so that their recorded settings are complete.
"""

import tomllib
from collections.abc import Mapping, Sequence
from errno import EFBIG
from pathlib import Path
from typing import Any

TEXT_PATHS: tuple[Sequence[str], ...] = (
    ("responder", "prompts", "*"),
    ("responder", "soul"),
    ("responder", "souls", "*"),
)
"""The keys whose text may be in a file of its own; ``*`` is any key. A soul is the text that says who the agent is."""


MOST_BYTES = 4 * 1024 * 1024
"""Most bytes of a configuration file, and of a text that it names."""


def with_text_files(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a configuration's values with the texts of the files it names, found relative to ``folder``.

    Raises:
        OSError: a file cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    result = dict(values)
    for path in TEXT_PATHS:
        result = _with_texts(result, path, folder)
    return result


def names_text_files(file: Path) -> bool:
    """Whether a configuration file names other files for its texts."""
    values = tomllib.loads(read_bounded(file))
    return with_text_files(values, file.parent) != values


def _with_texts(value: Any, path: Sequence[str], folder: Path) -> Any:
    if not path:
        return _read_text(folder / value["file"]) if _names_file(value) else value
    if not isinstance(value, Mapping):
        return value
    head, *rest = path
    keys = list(value) if head == "*" else [head] if head in value else []
    return {**value, **{key: _with_texts(value[key], rest, folder) for key in keys}}


def _names_file(value: Any) -> bool:
    return isinstance(value, Mapping) and list(value) == ["file"] and isinstance(value["file"], str)


def read_bounded(path: Path) -> str:
    """Return the text of a file of a configuration, with plain line ends.

    Raises:
        OSError: it cannot be read, or has more than :data:`MOST_BYTES` bytes, as a device without an end has.
        UnicodeDecodeError: it is not UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(EFBIG, f"it has more than {MOST_BYTES:,} bytes: name a file of a configuration", str(path))
    return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _read_text(path: Path) -> str:
    return read_bounded(path).strip()
