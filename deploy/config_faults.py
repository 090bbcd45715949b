"""What is wrong with a configured value, from msgspec's word for it and the types of its section."""

import re

from msgspec import inspect

from schemas.strict import words_at

_CHOICE = "Invalid enum value"


def blame(section: inspect.Type, name: str, message: str) -> str:
    """Return which key of a section is wrong, and how; where it takes just some words, with those.

    Args:
        section: The type of the section.
        name: The section's name.
        message: What msgspec said of the section's values.
    """
    found = re.fullmatch(r"(.*?)(?: - at (?:`(\w+)` in )?`\$(.*)`)?", message, re.DOTALL)
    assert found is not None  # the expression takes any text
    what, inside, path = found[1], found[2], found[3] or ""
    accepted = words_at(section, path, inside) if what.startswith(_CHOICE) else []
    choices = f": there are {', '.join(accepted)}" if accepted else ""
    return f"{name}{path}: {what}{choices}"
