"""Versions of events: how bodies of older versions are upcast to the current one.

An upcaster takes the decoded JSON body of version n and returns that of version n + 1. They are
kept for ever; samples of every version are stored beside the tests and decoded by them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from schemas.errors import UndecodableEvent, UnknownVersion

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""The JSON body of one version -> that of the next."""

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""(topic, version) -> the step from that version to the next."""

_decoder = msgspec.json.Decoder(dict[str, Any])


def upcast(
    topic: str, body: bytes, version: int, current: int, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS
) -> bytes:
    """Upcast a body from ``version`` to ``current``.

    Raises:
        UndecodableEvent: the body is no JSON object, or not of the shape that a step expects.
        UnknownVersion: this release lacks a step.
    """
    for step in range(version, current):
        if (topic, step) not in upcasters:
            raise UnknownVersion(f"{topic} of version {version} cannot be upcast: no step leads on from version {step}")
    try:
        document = _decoder.decode(body)
        for step in range(version, current):
            document = upcasters[topic, step](document)
        return msgspec.json.encode(document)
    except Exception as wrong:  # whatever a step raises, on whatever body: a reader must be able to go on
        raise UndecodableEvent(f"{topic} of version {version} cannot be upcast: {type(wrong).__name__}") from wrong
