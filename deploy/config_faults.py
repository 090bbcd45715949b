"""What is wrong with a configured value, from msgspec's word for it and the types of its section."""

import re

from msgspec import inspect

from schemas.choices import with_choices


def blame(section: inspect.Type, name: str, message: str) -> str:
    """Return which key of a section is wrong, and how; with what it takes instead, where that can be said.

    Args:
        section: The type of the section.
        name: The section's name.
        message: What msgspec said of the section's values.
    """
    found = re.fullmatch(r"(.*?)(?: - at (?:`\w+` in )?`\$(.*)`)?", with_choices(section, message), re.DOTALL)
    assert found is not None  # the expression takes any text
    return f"{name}{found[2] or ''}: {found[1]}"
