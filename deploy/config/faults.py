"""What is wrong with a configured value, from msgspec's word for it and the types of its section."""

from msgspec import inspect

from schemas.choices import explained


def blame(section: inspect.Type, name: str, message: str) -> str:
    """Return which key of a section is wrong, and how; with what it takes instead, where that can be said.

    Args:
        section: The type of the section.
        name: The section's name.
        message: What msgspec said of the section's values.
    """
    told, path = explained(section, message)
    return f"{name}.{path}: {told}" if path else f"{name}: {told}"
