"""A feed holds to the limits of the gateway, and says which part of which line is too large."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import cast

from actors.gateway import Client
from deploy.feeding import Failure, Feeder, LineFormat, Outcome
from deploy.feeding.reading import Line
from schemas.intake.limits import InputLimits
from schemas.subjects import Partitions


def test_a_line_with_a_layer_that_is_too_large_is_refused_with_the_setting_that_says_so() -> None:
    told: list[Outcome | Failure] = []
    layers = [{"role": "document", "content": "x" * size} for size in (10, 51)]

    async def lines() -> AsyncIterator[Line]:
        raw = json.dumps({"text": "Summarise.", "layers": layers}).encode()
        yield Line(number=1, raw=raw, offset=len(raw))

    # What is refused never gets to the edge.
    feeder = Feeder(cast(Client, None), Partitions(), told.append, limits=InputLimits(layer_bytes=50))
    asyncio.run(feeder.feed(lines(), LineFormat.JSONL, "lines.jsonl"))
    (failure,) = told
    assert isinstance(failure, Failure)
    assert failure.code == "invalid_input"
    assert failure.detail == (
        "layer 1 (document) has 51 bytes: at most 50 (gateway.limits.layer_bytes); send less, or raise it"
    )
