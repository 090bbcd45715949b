"""The gateway's metrics beside a log or a ledger that does not answer: who scrapes does not wait for long."""

import asyncio
from typing import Any, cast

import pytest

from actors.gateway.http.readiness_checks import ReadinessChecks
from actors.gateway.metrics import Metrics
from deploy.health.stage_watch import StageWatch
from deploy.processes.gateway.process import METRICS_WAIT_S, metrics_source
from events.errors import Unavailable
from tests.actors.gateway.asking import clock
from tests.events.simulated_world import in_world, log_of
from tests.simulated import SimulatedConnection, SimulatedMembership, SimulatedStream


class Standing:
    """Records whose ledger's process stands still."""

    async def ledger_seq(self) -> int:
        await asyncio.Event().wait()
        raise AssertionError


class StandingLog:
    """A log whose broker stands still."""

    async def info(self) -> Any:
        await asyncio.Event().wait()


class NotReady:
    """Readiness checks of which one fails."""

    async def checks(self) -> dict[str, str]:
        return {"log": "ok", "storing": "the disk is full"}


@pytest.mark.parametrize("log_stands", [False, True])
def test_metrics_do_not_wait_for_who_stands_still(log_stands: bool) -> None:
    async def body(stream: SimulatedStream) -> None:
        log, membership = log_of(stream), SimulatedMembership(SimulatedConnection(stream, "g"))
        asked: Any = StandingLog() if log_stands else log
        records: Any = Standing()
        stages, readiness = StageWatch(membership, log.partitions), cast("ReadinessChecks", NotReady())
        source = metrics_source(Metrics(), asked, records, stages, membership, readiness)
        begun = clock()
        async with asyncio.timeout(60):
            if log_stands:
                with pytest.raises(Unavailable, match="has not answered within 2 s"):
                    await source.render()
            else:
                text = await source.render()
                assert b"neuraxis_ledger_sequence -1.0" in text
                assert b"neuraxis_ready 0.0" in text
        assert clock() - begun == pytest.approx(METRICS_WAIT_S, abs=0.1), "one wait came after the other"

    in_world(body)
