"""Settings that make an actor ask a language model. Their default depends on whether a model is attached. Pure."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

_KEY = "x-asks-model"
"""The mark's key in the JSON Schema of a setting's type."""

FOLLOWS_MODEL = msgspec.Meta(extra_json_schema={_KEY: True})
"""Marks the type of a setting whose default becomes ``llm`` when a model is attached."""


def model_setting_paths(settings: type[Any]) -> Iterator[str]:
    """Yield the paths of the marked fields of a settings type, such as ``trust.judge``."""
    return _marked(inspect.type_info(settings), "")


def _marked(kind: inspect.Type, path: str) -> Iterator[str]:
    match kind:
        case inspect.StructType():
            for field in kind.fields:
                yield from _marked(field.type, f"{path}.{field.encode_name}" if path else field.encode_name)
        case inspect.Metadata() if (kind.extra_json_schema or {}).get(_KEY):
            yield path
        case inspect.Metadata():
            yield from _marked(kind.type, path)
