"""A process that stood still reads what has come meanwhile before it takes an answer for missing."""

import asyncio
import time

import pytest

from events.errors import UnknownOutcome
from events.jetstream import JetStreamLog
from events.jetstream import log as jetstream_log
from events.log import Append, Fence
from tests.broker import Broker
from tests.events.setting import plain, record

DEADLINE_S = 0.4
STALL_S = 2 * DEADLINE_S


async def stall() -> None:
    """Let the process stand still once what was asked is on its way."""
    await asyncio.sleep(0.01)
    time.sleep(STALL_S)  # noqa: ASYNC251 - nothing of this process runs meanwhile


@pytest.mark.parametrize("way", ["request", "append", "append_now", "batch"])
def test_an_answer_that_came_during_a_stall_counts(way: str, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetstream_log, "_APPEND_DEADLINE", DEADLINE_S)

    async def ask(log: JetStreamLog) -> object:
        one = record("log.00.00.reflex.passed", b"{}")
        match way:
            case "request":
                return await log.connection.api(f"STREAM.INFO.{log.stream}", deadline=DEADLINE_S)
            case "append":
                return await log.append([plain(one)])
            case "batch":
                return await log.append([plain(one), plain(one)])
        done: asyncio.Future[int | BaseException] = asyncio.get_running_loop().create_future()
        assert log.append_now(Append((one,), Fence(one.subject, 0)), done.set_result)
        outcome = await done
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        asked, _ = await asyncio.gather(ask(log), stall())
        assert asked
        await log.close()

    asyncio.run(main())


def test_an_answer_that_does_not_come_is_missed_in_time(broker: Broker) -> None:
    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        subscription = await log.connection.nc.subscribe("asked")  # it never answers
        begun = time.monotonic()
        with pytest.raises(UnknownOutcome, match=r"within 0\.4 s"):
            await asyncio.gather(log.connection.request("asked", deadline=DEADLINE_S), stall())
        assert STALL_S <= time.monotonic() - begun < 30
        await subscription.unsubscribe()
        await log.close()

    asyncio.run(main())
