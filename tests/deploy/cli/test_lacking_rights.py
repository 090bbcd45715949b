"""A login that lacks a right at the broker: the command says which one, at once, and what to do."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from actors.gateway.inputs import new_input
from deploy.cli import main
from events.jetstream import Access, JetStreamLog
from events.log import Append
from tests.broker import Broker

USERS = """
authorization {
  users = [
    {user: all, password: secret}
    {user: writer, password: secret, permissions: {publish: {deny: ["$JS.API.CONSUMER.CREATE.>"]}}}
    {user: reader, password: secret, permissions: {publish: {deny: ["log.>"]}}}
    {user: deaf, password: secret, permissions: {subscribe: {deny: ["_INBOX.>"]}}}
  ]
}
"""
WITHIN_S = 4.0
"""Less than the 5 s that a call waits for an answer."""


@pytest.fixture
def with_logins(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "broker", more=USERS) as broker:
        access = Access(servers=broker.url, user="all", password="secret")

        async def make() -> None:
            log = await JetStreamLog.connect(access)
            made = new_input("Hello", agent="ann", session="s", exchange="e-1", partitions=log.partitions, now_ns=1)
            await log.append([Append([made.record])])
            await log.close()

        asyncio.run(make())
        yield broker


def neuraxis(broker: Broker, user: str, *arguments: str) -> tuple[Result, float]:
    url = broker.url.replace("nats://", f"nats://{user}:secret@")
    begun = time.monotonic()
    result = CliRunner().invoke(main, [*arguments, "--nats", url])
    return result, time.monotonic() - begun


def test_a_right_that_is_lacking_is_named_at_once_with_its_subject(with_logins: Broker) -> None:
    for user, arguments, right in (
        ("reader", ("ask", "Hello", "--session", "s"), "may not publish to log."),
        ("writer", ("rerun", "e-1"), "may not publish to $JS.API.CONSUMER.CREATE.NEURAXIS."),
        ("writer", ("failed", "redrive", "--yes"), "may not publish to $JS.API.CONSUMER.CREATE.NEURAXIS."),
        ("writer", ("alerts", "--no-follow"), "may not publish to $JS.API.CONSUMER.CREATE.NEURAXIS."),
    ):
        result, took_s = neuraxis(with_logins, user, *arguments)
        assert (result.exit_code, result.stdout) == (3, ""), (arguments, result.output)
        (line,) = result.stderr.splitlines()
        assert right in line
        assert "`neuraxis deploy nats-conf --permissions`" in line
        assert "secret" not in line
        assert took_s < WITHIN_S
    assert neuraxis(with_logins, "all", "log", "info")[0].exit_code == 0


def test_a_login_that_may_not_hear_answers_is_told_so(with_logins: Broker) -> None:
    result, took_s = neuraxis(with_logins, "deaf", "log", "info")
    assert result.exit_code == 3
    assert "may not subscribe to _INBOX." in result.stderr
    assert took_s < WITHIN_S
