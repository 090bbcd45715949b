"""What is wrong with a configured value, from msgspec's word for it and the types of its section."""

import re

from msgspec import inspect

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
    accepted = _accepted(section, path, inside) if what.startswith(_CHOICE) else []
    choices = f": there are {', '.join(accepted)}" if accepted else ""
    return f"{name}{path}: {what}{choices}"


def members(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    """Return what a type may be: the members of a union, else itself, without its bounds."""
    if isinstance(kind, inspect.Metadata):
        return members(kind.type)
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _accepted(section: inspect.Type, path: str, inside: str | None) -> list[str]:
    """Return the words that the place at ``path`` takes; ``inside`` is ``key`` for the names of its entries."""
    kinds = [section]
    for step in [*re.findall(r"\w+|\.{3}", path), *([inside] if inside else [])]:
        kinds = [inner for one in kinds for member in members(one) for inner in _below(member, step)]
    return [word for one in kinds for member in members(one) for word in _words(member)]


def _below(kind: inspect.Type, step: str) -> list[inspect.Type]:
    if isinstance(kind, inspect.StructType):
        return [field.type for field in kind.fields if field.encode_name == step]
    if isinstance(kind, inspect.DictType):
        return [kind.key_type if step == "key" else kind.value_type]
    return [kind.item_type] if isinstance(kind, inspect.VarTupleType | inspect.ListType) else []


def _words(kind: inspect.Type) -> list[str]:
    if isinstance(kind, inspect.EnumType):
        return [str(member.value) for member in kind.cls]
    return [str(value) for value in kind.values] if isinstance(kind, inspect.LiteralType) else []
