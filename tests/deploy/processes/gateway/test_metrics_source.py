"""The gateway's metrics beside a log or a ledger that does not answer: who scrapes does not wait for long."""

import asyncio
import re
from typing import Any, cast

import pytest

from actors.gateway.http.readiness_checks import ReadinessChecks
from actors.gateway.metrics import Metrics
from deploy.health.stage_watch import TAKEOVER_S, StageWatch
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


class Known:
    """Records whose ledger's process answers."""

    async def ledger_seq(self) -> int:
        return 0


def test_who_serves_a_stage_is_not_known_before_the_heartbeats_were_read_nor_long_after() -> None:
    async def body(stream: SimulatedStream) -> None:
        log, membership = log_of(stream), SimulatedMembership(SimulatedConnection(stream, "g"))
        stages, records = StageWatch(membership, log.partitions), Known()
        readiness = cast("ReadinessChecks", NotReady())
        source = metrics_source(Metrics(), log, records, stages, membership, readiness)  # type: ignore[arg-type]
        told = [await source.render()]
        await stages.look()
        told.append(await source.render())
        await asyncio.sleep(2 * TAKEOVER_S)
        told.append(await source.render())
        served = [re.findall(rb'neuraxis_stage_served\{stage="reflex"\} (\S+)', each) for each in told]
        assert served == [[b"NaN"], [b"0.0"], [b"NaN"]]

    in_world(body)
