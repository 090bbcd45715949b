"""Long texts of a configuration in separate files: ``{ file = "soul.md" }`` is replaced by the file's text.

The text is put in when the configuration is read: actors read no files, so that their recorded settings are complete.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from events.files.bounded_files import PIPE_WAIT_S
from events.files.bounded_files import read_bounded as bounded_bytes

TEXT_PATHS: tuple[Sequence[str], ...] = (
    ("responder", "prompts", "*"),
    ("responder", "soul"),
    ("responder", "souls", "*"),
)
"""The keys whose text may be in a file of its own; ``*`` is any key. A soul is the text that says who the agent is."""


MOST_BYTES = 4 * 1024 * 1024
"""Most bytes of a configuration file, and of a text that it names."""


_from_pipes: dict[Path, str] = {}
"""What was read from pipes: a pipe can be read once, and a command reads its configuration several times."""


def with_text_files(values: Mapping[str, Any], folder: Path, wait_s: float = PIPE_WAIT_S) -> dict[str, Any]:
    """Return a configuration's values with the texts of the files it names, found relative to ``folder``.

    ``wait_s``: see :func:`read_bounded`.

    Raises:
        OSError: a file cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    result = dict(values)
    for path in TEXT_PATHS:
        result = _with_texts(result, path, folder, wait_s)
    return result


def names_text_files(file: Path) -> bool:
    """Whether a configuration file names other files for its texts."""
    values = tomllib.loads(read_bounded(file))
    return with_text_files(values, file.parent) != values


def _with_texts(value: Any, path: Sequence[str], folder: Path, wait_s: float) -> Any:
    if not path:
        return read_bounded(folder / value["file"], wait_s).strip() if _names_file(value) else value
    if not isinstance(value, Mapping):
        return value
    head, *rest = path
    keys = list(value) if head == "*" else [head] if head in value else []
    return {**value, **{key: _with_texts(value[key], rest, folder, wait_s) for key in keys}}


def _names_file(value: Any) -> bool:
    return isinstance(value, Mapping) and list(value) == ["file"] and isinstance(value["file"], str)


def read_bounded(path: Path, wait_s: float = PIPE_WAIT_S) -> str:
    """Return the text of a file of a configuration, with plain line ends; a pipe is read once, within ``wait_s`` s.

    Raises:
        OSError: it cannot be read, or has more than :data:`MOST_BYTES` bytes, as a device without an end has; or nobody
            has written the pipe to its end in time.
        UnicodeDecodeError: it is not UTF-8.
    """
    if (known := _from_pipes.get(path)) is not None:
        return known
    text = bounded_bytes(path, MOST_BYTES, wait_s).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    if not path.is_file():
        _from_pipes[path] = text
    return text
