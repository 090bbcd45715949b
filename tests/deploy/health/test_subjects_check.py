"""Events that nobody reads are told by the doctor, while it is new that somebody writes such."""

import asyncio
import time

import msgspec

from deploy.health.findings import Finding, Verdict
from deploy.health.subjects_check import RECENT_S, examine_subjects
from events.jetstream import JetStreamLog
from events.log import Append
from tests.broker import Broker
from tests.events.sealing.records import said


def test_events_on_subjects_that_nobody_reads_are_told_for_a_day(broker: Broker) -> None:
    async def examined() -> list[Finding]:
        log = await JetStreamLog.connect(broker.url)

        async def found(now_s: float) -> Finding:
            return await examine_subjects(log.connection, log.stream, log.partitions, now_s)

        try:
            nothing = await found(time.time())
            await log.append([Append([said("hello", id="right", session="s1")])])
            right = await found(time.time())
            for number, subject in enumerate(("log.00.00.input.recieved", "log.00.77.input.received")):
                record = said("hello", id=f"e{number}", session="s1")
                await log.append([Append([msgspec.structs.replace(record, subject=subject)])])
            return [nothing, right, await found(time.time()), await found(time.time() + RECENT_S + 60)]
        finally:
            await log.close()

    nothing, right, wrong, later = asyncio.run(examined())
    assert (nothing.verdict, right.verdict) == (Verdict.OK, Verdict.OK)
    assert wrong.verdict is Verdict.WARN
    assert "2 events that nobody reads" in wrong.detail
    assert "did you mean forged_id.input.received?" in wrong.detail
    assert wrong.remedy
    assert later.verdict is Verdict.OK
    assert "none came in the last 24 hours" in later.detail
