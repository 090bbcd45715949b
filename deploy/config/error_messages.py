"""Error messages for configured values, from msgspec's message and the types of the section."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import inspect

from schemas.intake.error_messages import explain_error


def error_of_section(section: inspect.Type, name: str, message: str) -> str:
    """Return which key of a section is wrong, and what it takes instead, if that is known.

    Args:
        section: The type of the section.
        name: The section's name.
        message: msgspec's message about the section's values.
    """
    text, path = explain_error(section, message)
    return f"{name}.{path}: {text}" if path else f"{name}: {text}"


def with_key(text: str, message: str, values: Mapping[str, Any], error_of: Callable[[Mapping[str, Any]], str]) -> str:
    """Return an error text with the key of the wrong entry, where msgspec says ``[...]`` of a mapping's values.

    Args:
        text: The error text, of :func:`error_of_section`.
        message: msgspec's message about the section's values.
        values: The section's values.
        error_of: Returns msgspec's message about other values; empty if it takes them.
    """
    field = message.partition("`$.")[2].partition("[...]")[0]
    entries = values.get(field)
    if "[...]" not in message or not isinstance(entries, Mapping):  # not in a mapping, or in one deeper inside
        return text
    wrong = (key for key, entry in entries.items() if error_of({**values, field: {key: entry}}) == message)
    return text.replace(f"{field}[...]", f"{field}.{key}", 1) if (key := next(wrong, None)) else text
