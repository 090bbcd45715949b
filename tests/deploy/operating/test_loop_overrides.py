"""Overrides from the command line, on a simulated log with the real guardrails."""

import pytest

from deploy.operating.deadline import Deadline
from deploy.operating.guarding.loop_overrides import NotOverridden, give_override
from events.errors import Unavailable
from schemas.vocabulary.loops import LoopOverridden
from tests.actors.gateway.asking import clock, stored
from tests.actors.gateway.http.rig import complete, gateway, guarding
from tests.events.simulated_world import in_world, log_of
from tests.simulated import SimulatedStream

ORDER = LoopOverridden(
    loop_id="loop_001", override_fatigue=True, override_max_reruns=True, override_by="ann", override_reason="near"
)


def test_an_override_is_in_force_once_guardrails_say_so() -> None:
    async def body(stream: SimulatedStream) -> None:
        async with guarding(stream), gateway(stream) as client:
            await complete(client)
            done = await give_override(log_of(stream), "default", ORDER, deadline=Deadline(10))
        (ordered,), (answered,) = stored(stream, "loop.overridden"), stored(stream, "guardrails.overridden")
        assert (done.ordered_seq, done.answered_seq) == (ordered.seq, answered.seq)
        assert (done.family, done.by, done.why, done.lasts_s) == ("loop_001", "ann", "near", 3600.0)
        assert done.fatigue
        assert done.max_reruns

    in_world(body)


def test_an_override_of_an_unknown_loop_is_not_taken() -> None:
    async def body(stream: SimulatedStream) -> None:
        async with guarding(stream):
            with pytest.raises(NotOverridden, match="no loop 'loop_001' of agent 'felix'"):
                await give_override(log_of(stream), "felix", ORDER, deadline=Deadline(10))

    in_world(body)


def test_an_override_that_nobody_answers_is_said_to_be_in_the_log() -> None:
    async def body(stream: SimulatedStream) -> None:
        with pytest.raises(Unavailable, match=r"is in the log \(sequence 1\), but after 10.0 s guardrails have not"):
            async with Deadline(10).enforced() as deadline:
                await give_override(log_of(stream), "default", ORDER, deadline=deadline)
        assert clock() >= 10
        assert len(stored(stream, "loop.overridden")) == 1

    in_world(body)
