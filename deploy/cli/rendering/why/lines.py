"""An event as lines for people: each type of event has a function that is registered with ``lines_on``. Pure."""

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.text import Text

from schemas.event import Configured, Event, Failed

Lines = Sequence[RenderableType]


@singledispatch
def lines_on(event: Event) -> Lines:
    """Return what an event says; if no function is registered for its type, its fields."""
    return [
        Text(f"{name}: {field_text(value)}") for name, value in msgspec.to_builtins(event).items() if name != "topic"
    ]


@lines_on.register
def failure(event: Failed) -> Lines:
    """Return what could not be decided or served, and why."""
    return [Text(f"{event.reason} {event.error} at {event.failed_topic}, sequence {event.failed_seq}", "red")]


@lines_on.register
def _configured(event: Configured) -> Lines:
    return [Text(f"behaviour {event.behaviour}, settings {event.settings_hash[:12]}")]


def numbers_in(value: msgspec.Struct) -> list[tuple[str, float]]:
    """Return the fields that hold a number, with their names; a later release may add others, which are left out."""
    fields = msgspec.structs.asdict(value).items()
    return [(name, each) for name, each in fields if isinstance(each, int | float) and not isinstance(each, bool)]


def field_text(value: Any) -> str:
    """Return the value of a field: text as it is, all else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
