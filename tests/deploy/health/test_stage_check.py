"""Who serves which stage, watched from outside, over a real broker."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from actors.runtime.membership.heartbeat import Heartbeat, report
from deploy.health import stage_watch
from deploy.health.stage_watch import StageWatch, log_unserved_stages, unserved_text
from deploy.processes.broker.configuration import Layout, render, server_configuration
from deploy.processes.broker.storage_watch import storing_fault
from events.jetstream import Access, Connection, JetStreamLog, KeyValueMembership
from events.log import Append, Record
from schemas.input_path import REQUIRED, names_of, scopes
from schemas.permissions import MEMBERS_BUCKET
from schemas.subjects import Partitions
from tests.actors.runtime.waiting import until
from tests.broker import USERS, Broker

PARTITIONS = Partitions(agents=1, sessions=2)


def serving(*names: str) -> bytes:
    serves = {stage: names_of(scopes()[stage], PARTITIONS) for stage in names}
    return msgspec.json.encode(Heartbeat((), serves=serves))


@asynccontextmanager
async def watched(broker: Broker, *needed: str, **options: Any) -> AsyncIterator[KeyValueMembership]:
    """Watch over stages as a set does, with ``options`` of the watch; yields where workers say that they live."""
    access = Access(servers=broker.url)
    connection = await Connection.open(access)
    membership = await KeyValueMembership.over(connection)
    watching = asyncio.create_task(log_unserved_stages(access, PARTITIONS, needed, **options))
    try:
        yield membership
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await connection.close()


def test_who_says_ready_has_told_that_it_works_so_a_start_accuses_nobody(broker: Broker) -> None:
    async def main() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        try:
            membership = await KeyValueMembership.over(connection)
            written, told_of = asyncio.Event(), asyncio.Event()
            reporting = asyncio.create_task(report(membership, "w", {"ledger": written.is_set}, told_of))
            seen = StageWatch(membership, PARTITIONS, ("ledger",))

            async def stalls() -> bool:
                await seen.look()
                return unserved_text(seen.unserved(), PARTITIONS) == "ledger (stalled)"

            await until(stalls, "the ledger to be told of")
            assert not told_of.is_set()
            written.set()
            await asyncio.wait_for(told_of.wait(), 5.0)
            await seen.look()
            assert seen.unserved() == {}
            reporting.cancel()
            await asyncio.wait((reporting,))
        finally:
            await connection.close()

    asyncio.run(main())


def test_a_stage_that_was_never_served_counts_at_once_and_one_that_was_after_a_while(broker: Broker) -> None:
    async def main() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        try:
            membership = await KeyValueMembership.over(connection)
            seen = StageWatch(membership, PARTITIONS, ("reflex", "arbiter"))
            await membership.beat("w", serving("reflex"))
            await seen.look()
            assert unserved_text(seen.unserved(), PARTITIONS) == "arbiter (no owner)"
            assert seen.unserved(patient=True) == {}, "the set may have come up a moment ago"
            await membership.beat("w", serving("reflex", "arbiter"))
            await seen.look()
            assert seen.unserved() == {}
            await membership.beat("w", serving("reflex"))
            await seen.look()
            assert seen.unserved() == {}, "another worker may be about to take over"

            async def named() -> bool:
                await membership.beat("w", serving("reflex"))
                await seen.look()
                return "arbiter" in seen.unserved()

            await until(named, "the arbiter to be away for long enough")
        finally:
            await connection.close()

    asyncio.run(main())


def test_a_set_s_log_tells_which_stages_are_lost_and_when_they_are_found(broker: Broker) -> None:
    async def main() -> None:
        async with watched(broker, "reflex", "ledger") as membership:

            async def beats(*names: str) -> None:
                await membership.beat("w", serving(*names))

            async def lost() -> bool:
                await beats("reflex")
                return any(each["event"] == "stage_lost" and each["stage"] == "ledger" for each in logs)

            async def found() -> bool:
                await beats("reflex", "ledger")
                return any(each["event"] == "stage_found" and each["stage"] == "ledger" for each in logs)

            await until(lost, "the loss to be told")
            await until(found, "the end of it to be told")

    with capture_logs() as logs:
        asyncio.run(main())
    [warned] = [each for each in logs if each["event"] == "stage_lost" and each["stage"] == "ledger"]
    assert (warned["log_level"], warned["reason"], warned["partitions"]) == ("warning", "no_owner", ("all",))


def test_the_watch_over_stages_goes_on_after_an_error_that_nobody_foresaw(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_watch, "POLL_INTERVAL_S", 0.05)
    noted: list[str] = []
    members, wrong = KeyValueMembership.members, [RuntimeError("a bug")]

    async def once_wrong(self: KeyValueMembership) -> Mapping[str, bytes]:
        if wrong:
            raise wrong.pop()
        return await members(self)

    monkeypatch.setattr(KeyValueMembership, "members", once_wrong)

    async def main() -> None:
        async with watched(broker, "ledger", note=noted.append) as membership:

            async def lost() -> bool:
                await membership.beat("w", serving("reflex"))
                return any(each["event"] == "stage_lost" for each in logs)

            await until(lost, "the loss to be told")

    with capture_logs() as logs:
        asyncio.run(main())
    assert [each["error"] for each in logs if each["event"] == "stages_not_seen"] == ["RuntimeError"]
    assert "it cannot be seen whether all stages are served (RuntimeError)" in noted


def test_a_set_whose_workers_cannot_be_heard_is_not_said_to_be_ready(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("POLL_INTERVAL_S", "FAULT_INTERVAL_S", "TAKEOVER_S"):
        monkeypatch.setattr(stage_watch, name, 0.1)
    noted: list[str] = []

    async def main() -> None:
        async with watched(broker, "reflex", note=noted.append) as membership:

            async def told(fault: str) -> bool:
                if not fault:
                    await membership.beat("w", serving("reflex"))
                return bool(noted) and noted[-1] == fault

            await until(lambda: told(""), "all to be well")
            connection = await Connection.open(Access(servers=broker.url))
            await connection.api(f"STREAM.DELETE.KV_{MEMBERS_BUCKET}")
            await connection.close()
            await until(lambda: told("what workers say of themselves cannot be read"), "that to be told")

    asyncio.run(main())


def test_a_watch_whose_login_was_taken_away_goes_on_when_it_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker closes its connection for good: the set was said to be out of reach of its broker from then on."""
    for name in ("POLL_INTERVAL_S", "FAULT_INTERVAL_S", "TAKEOVER_S"):
        monkeypatch.setattr(stage_watch, name, 0.1)
    noted: list[str] = []

    async def main(broker: Broker) -> None:
        access = Access(servers=broker.url, user="a", password="secret")
        watching = asyncio.create_task(log_unserved_stages(access, PARTITIONS, ("reflex",), note=noted.append))
        for password, fault in (("secret", "read"), ("another", "cannot be reached"), ("secret", "read")):
            broker.reload(USERS.format(password))
            await until(lambda fault=fault: fault in "".join(noted[-1:]), f"{fault!r} to be told")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    with Broker(tmp_path, more=USERS.format("secret")) as broker:
        asyncio.run(main(broker))


def test_whoever_asks_whether_a_set_is_ready_is_told_what_keeps_it_from_its_work(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("deploy.health.stage_watch.FAULT_INTERVAL_S", 0.1)
    monkeypatch.setattr("deploy.processes.broker.storage_watch.store_fault", lambda store, stream: "")
    noted: list[str] = []
    layout = Layout(tmp_path)

    def limit(most: int) -> None:
        configuration = server_configuration(layout, port=-1, sync="always", max_store=most, accounts={})
        layout.configuration.write_bytes(render(configuration))

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)  # makes the stream
        try:
            await log.append([Append([Record("log.00.00.input.received", {"Nats-Msg-Id": "m"}, b"{}")])])

            async def storing(connection: Connection) -> str:
                return await storing_fault(connection, log.stream, layout.store)

            async with watched(broker, "reflex", storing=storing, note=noted.append) as membership:

                async def is_told(text: str) -> bool:
                    if text == "":
                        await membership.beat("w", serving("reflex"))
                    return bool(noted) and (noted[-1] == text if not text else text in noted[-1])

                async def told(text: str) -> None:
                    await until(lambda: is_told(text), f"{text!r} to be told, not {noted[-1:]}")

                await told("not served: reflex (no owner)")
                await told("")
                limit(1)
                await told("the broker's store is at its limit of 1 bytes")
                limit(1_000_000_000)
                await told("")
                broker.pause()
                await told("has not answered")
                broker.resume()
                await told("")
                broker.kill()
                await told("cannot be reached")
        finally:
            await log.close()

    asyncio.run(main())


def test_an_exchange_has_nobody_to_end_it_where_a_guard_and_who_would_tell_of_it_are_both_away(broker: Broker) -> None:
    async def main() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        try:
            membership = await KeyValueMembership.over(connection)
            seen = StageWatch(membership, PARTITIONS)
            rest = {*REQUIRED, "swarm"} - {"arbiter", "swarm"}
            await membership.beat("w", serving(*rest, "arbiter", "swarm"))
            await seen.look()
            assert seen.why_no_end("a", "s") == ""

            async def named() -> bool:
                await membership.beat("w", serving(*rest))
                await seen.look()
                return seen.why_no_end("a", "s") == "arbiter (no owner), swarm (no owner)"

            await until(named, "both to be away for long enough")
            await membership.beat("w", serving(*rest, "swarm"))
            await seen.look()
            assert seen.why_unserved("arbiter", "a", "s") == "arbiter (no owner)"
            assert seen.why_no_end("a", "s") == "", "swarm tells, and the responder ends it"
        finally:
            await connection.close()

    asyncio.run(main())
