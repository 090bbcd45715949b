"""Versions of events: how bodies of older meaning are lifted to the current one.

An upcaster takes the decoded JSON body of version n and returns that of version n + 1. They are
kept for ever; samples of every version are stored beside the tests and decoded by them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""(topic, version) -> the step from that version to the next."""


def upcast(
    topic: str, body: bytes, version: int, current: int, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS
) -> bytes:
    """Lift a body from ``version`` to ``current``; raises KeyError when a step is missing."""
    document = msgspec.json.decode(body)
    for step in range(version, current):
        document = upcasters[topic, step](document)
    return msgspec.json.encode(document)
