"""Marks for settings with which something never applies, such as a count above the window that is counted in. Pure.

New settings of that kind are refused. Their types take them, since recorded settings of older logs must stay readable.
"""

import msgspec
from msgspec import inspect

from schemas.intake.error_messages import inspected_type

_KEY, _SILENCED = "x-at-most", "x-silenced-at-0"
"""The marks' keys in the JSON Schema of a setting's type."""


def at_most(other: str) -> msgspec.Meta:
    """Mark the type of a setting that never applies while it is above another field of the same struct."""
    return msgspec.Meta(extra_json_schema={_KEY: other})


def silences_at_0(what: str) -> msgspec.Meta:
    """Mark the type of a setting that is never 0, since ``what`` ("the arbiter's rule ...") would never apply."""
    return msgspec.Meta(extra_json_schema={_SILENCED: what})


def unreachable_setting(settings: msgspec.Struct) -> str:
    """Return the first setting that is refused as new, worded as an error of msgspec's; empty if there is none."""
    kind = inspected_type(type(settings))
    assert isinstance(kind, inspect.StructType)
    for field in kind.fields:
        marks = (field.type.extra_json_schema or {}) if isinstance(field.type, inspect.Metadata) else {}
        value, at = getattr(settings, field.name), f" - at `$.{field.encode_name}`"
        if (what := marks.get(_SILENCED)) is not None and not value:
            return f"0 silences {what}: it would never apply{at}"
        if (other := marks.get(_KEY)) is not None and value > (most := getattr(settings, other)):
            return f"{value} is above '{other}', which is {most}: it would never apply{at}"
    return ""
