"""Events that nobody reads are told by the doctor, while it is new that somebody writes such."""

import asyncio
import time

import msgspec
import pytest

from deploy.health.findings import Finding, Verdict
from deploy.health.subjects_check import RECENT_S, examine_subjects
from events.jetstream import JetStreamLog
from events.log import Append
from events.unroutable import MOST_LISTED
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
    assert "2 events that no actor of this release reads" in wrong.detail
    assert "log.00.77.input.received: there is no partition '77'" in wrong.detail, "the one that was written last"
    assert wrong.remedy
    assert later.verdict is Verdict.OK
    assert "none came in the last 24 hours" in later.detail


@pytest.mark.parametrize("most", [1_000, 15])
def test_a_new_one_is_told_behind_any_number_of_old_ones(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The broker lists subjects by name: one that is written today may be the last of them."""
    monkeypatch.setattr("deploy.health.subjects_check.MOST_EXAMINED", most)

    async def examined() -> tuple[Finding, Finding]:
        log = await JetStreamLog.connect(broker.url)
        try:
            for number in range(MOST_LISTED + 1):
                record = msgspec.structs.replace(
                    said("hello", id=f"e{number}", session="s1"), subject=f"log.00.00.input.old-{number:02d}"
                )
                await log.append([Append([record])])
            await asyncio.sleep(1.1)
            between = time.time()
            record = msgspec.structs.replace(said("hello", id="new", session="s1"), subject="log.00.00.reflex.new")
            await asyncio.sleep(0.1)
            await log.append([Append([record])])
            at = between + RECENT_S
            counts = log.connection, log.stream, log.partitions
            return await examine_subjects(*counts, at), await examine_subjects(*counts, at + 60)
        finally:
            await log.close()

    recent, old = asyncio.run(examined())
    assert recent.verdict is Verdict.WARN
    if most >= MOST_LISTED:
        assert "log.00.00.reflex.new" in recent.detail
        assert old.verdict is Verdict.OK
    else:
        assert old.verdict is Verdict.WARN, "some were not looked at"
