"""Error messages for configured values, from msgspec's message and the types of the section."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import inspect

from schemas.intake.error_messages import explain_error


def error_of_section(section: inspect.Type, name: str, message: str) -> str:
    """Return which key of a section is wrong, and how; with what it takes instead, where that can be said.

    Args:
        section: The type of the section.
        name: The section's name.
        message: What msgspec said of the section's values.
    """
    text, path = explain_error(section, message)
    return f"{name}.{path}: {text}" if path else f"{name}: {text}"


def with_key(text: str, message: str, values: Mapping[str, Any], fault: Callable[[Mapping[str, Any]], str]) -> str:
    """Return what :func:`error_of_section` told with the key that is meant, where msgspec says ``[...]`` of a mapping's
    values.

    Args:
        told: What was told.
        message: What msgspec said of the section's values.
        values: The section's values.
        fault: What msgspec says of other values.
    """
    field = message.partition("`$.")[2].partition("[...]")[0]
    entries = values.get(field)
    if "[...]" not in message or not isinstance(entries, Mapping):  # in no mapping, or in one further within
        return text
    wrong = (key for key, entry in entries.items() if fault({**values, field: {key: entry}}) == message)
    return text.replace(f"{field}[...]", f"{field}.{key}", 1) if (key := next(wrong, None)) else text
