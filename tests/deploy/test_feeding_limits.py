"""A feed holds to the limits of the gateway, and says which part of which line is too large."""

import json
from collections.abc import AsyncIterator

from actors.gateway import Client
from deploy.feeding import Failure, Feeder, LineFormat, Outcome
from deploy.feeding.line_reader import Line
from schemas.intake.limits import InputLimits
from tests.events.simulated_world import in_world, log_of
from tests.simulated import SimulatedStream


def test_a_line_with_a_layer_that_is_too_large_is_refused_with_the_setting_that_says_so() -> None:
    told: list[Outcome | Failure] = []
    layers = [{"role": "document", "content": "x" * size} for size in (10, 51)]

    async def lines() -> AsyncIterator[Line]:
        raw = json.dumps({"text": "Summarise.", "layers": layers}).encode()
        yield Line(number=1, raw=raw, offset=len(raw))

    async def body(stream: SimulatedStream) -> None:
        async with Client.open(log_of(stream), limits=InputLimits(layer_bytes=50)) as client:
            await Feeder(client, told.append).feed(lines(), LineFormat.JSONL, "lines.jsonl")
        assert not stream.store.messages

    in_world(body)
    (failure,) = told
    assert isinstance(failure, Failure)
    assert failure.code == "invalid_input"
    assert failure.detail == (
        "layer 1 (document) has 51 bytes: at most 50 (gateway.limits.layer_bytes); send less, or raise it"
    )
