"""What a command's deadline knows of the work at its end."""

import asyncio

import pytest

from deploy.cli.connect import open_log
from deploy.cli.options import Target
from deploy.operating.deadline import Deadline
from events.errors import Unavailable
from events.jetstream import JetStreamLog
from tests.broker import Broker


def test_why_the_broker_stores_nothing_is_told_of_what_was_stored_before_too() -> None:
    async def main() -> None:
        async with Deadline(0.05).enforced() as deadline:
            deadline.note_sending("exchange x", "look")
            deadline.reason = "it was away"
            deadline.note_stored(7, "it has no end")
            assert deadline.reason == ""  # it is not away any more
            deadline.reason = "its disk is full"
            await asyncio.sleep(30)

    told = r"^exchange x is in the log \(sequence 7\), but after \d\.\d s it has no end \(its disk is full\)$"
    with pytest.raises(Unavailable, match=told):
        asyncio.run(main())


def test_a_command_that_waits_for_an_answer_looks_near_its_end_whether_the_broker_stores(
    broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        limits = (await log.connection.api("STREAM.INFO.NEURAXIS"))["config"]
        await log.connection.api("STREAM.UPDATE.NEURAXIS", {**limits, "sealed": True})  # it stores nothing any more
        await log.close()
        target = Target(tmp_path_factory.mktemp("none"), broker.url, "", "", "", None, ())

        async def wait() -> None:
            async with Deadline(4).enforced() as deadline, open_log(target, deadline=deadline):
                deadline.note_sending("exchange x", "look")
                deadline.note_stored(7, "it has no end")
                await asyncio.sleep(30)

        with pytest.raises(Unavailable, match=r"it has no end \(stream NEURAXIS is sealed"):
            await wait()

    asyncio.run(main())
