"""Versions of events: how bodies of older versions are upcast to the current one.

An upcaster takes the decoded JSON body of version n and returns that of version n + 1. They are
kept for ever; samples of every version are stored beside the tests and decoded by them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from schemas.errors import UndecodableEvent

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""(topic, version) -> the step from that version to the next."""

_decoder = msgspec.json.Decoder(dict[str, Any])


def upcast(
    topic: str, body: bytes, version: int, current: int, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS
) -> bytes:
    """Upcast a body from ``version`` to ``current``.

    Raises:
        UndecodableEvent: the body is no JSON object, or not of the shape that a step expects.
        KeyError: this release lacks a step.
    """
    steps = [upcasters[topic, step] for step in range(version, current)]
    try:
        document = _decoder.decode(body)
        for step in steps:
            document = step(document)
        return msgspec.json.encode(document)
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as wrong:
        raise UndecodableEvent(f"{topic} of version {version} cannot be lifted: {type(wrong).__name__}") from wrong
