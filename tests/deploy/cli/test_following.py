"""What a command that follows the log says while it cannot read."""

import asyncio

import pytest

from deploy.cli import following
from deploy.cli.following import FollowedTail
from events.jetstream import JetStreamLog
from tests.broker import Broker
from tests.deploy.waiting import until
from tests.events.setting import plain, record


def test_who_follows_is_told_at_once_and_again_that_nothing_can_be_read_and_when_it_can(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(following, "_LOOK_INTERVAL_S", 0.05)
    monkeypatch.setattr(following, "_LASTS_S", 0.1)
    heard: list[str] = []

    def has_said(words: str, times: int = 1) -> bool:
        heard.append(" ".join(capsys.readouterr().err.split()))
        return " ".join(heard).count(words) >= times

    async def follow() -> None:
        log = await JetStreamLog.connect(broker.url)
        await log.append([plain(record())])
        tail = FollowedTail(await log.tail(["log.>"], 1), log)
        coming = asyncio.create_task(tail.next())
        broker.kill()
        await asyncio.to_thread(until, lambda: has_said("the broker has been away for 1 s"), "it is away")
        broker.jetstream = False
        broker.start()
        await asyncio.to_thread(
            until, lambda: has_said("nothing could be read, although the broker is there", 2), "cut"
        )
        assert not has_said("the log can be read again")
        broker.kill()
        broker.jetstream = True
        broker.start()
        await asyncio.to_thread(until, lambda: has_said("the log can be read again"), "it reads")
        assert await log.append([plain(record())]) == 2
        assert [each.seq for each in await coming] == [2]
        await tail.close()
        await log.close()

    asyncio.run(follow())
