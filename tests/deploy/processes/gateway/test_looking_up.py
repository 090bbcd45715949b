"""Exchanges that a gateway is asked about: a made-up id does not have it read a long log while others wait."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from actors.gateway.http.feedback.service import RatedExchange
from actors.gateway.http.operator_endpoints import Verdict
from actors.gateway.http.scopes import NotFound
from deploy.config.settings import LogSettings
from deploy.processes.gateway.operations import BrokerOperations
from deploy.processes.gateway.records import BrokerRecords
from deploy.processes.query_services import serving_queries
from deploy.replaying.log_questions import Answered, Asked, DecideAgain, Explain, Unanswered, answer
from events.errors import Unavailable
from events.jetstream import Access, JetStreamLog, KeyValueMembership
from events.ledger import LedgerWriter
from events.log import Append, Record, Stored
from events.replay.sources import StreamSource
from schemas.subjects import EVERYTHING
from schemas.vocabulary.feedback import FeedbackGiven
from tests.broker import Broker
from tests.events.ledger.messages import exchanges, stored

FEEDBACK = FeedbackGiven(mode="RESPOND", reward=1.0)
VERDICT = Verdict(exchange="x0", verdict="benign", by="ann", why="reviewed")


async def append(log: JetStreamLog, messages: Sequence[Stored]) -> None:
    for each in messages:
        await log.append([Append([Record(each.subject, each.headers, each.data)])])


@asynccontextmanager
async def logged(broker: Broker) -> AsyncIterator[JetStreamLog]:
    """A log of three exchanges: x0, x1 and x2, of four events each."""
    log = await JetStreamLog.connect(broker.url)
    try:
        await append(log, exchanges(3))
        yield log
    finally:
        await log.close()


@asynccontextmanager
async def asked_of(log: JetStreamLog, ledger: Path | None, upto: int) -> AsyncIterator[tuple[BrokerRecords, list[str]]]:
    """Yield a gateway's records, beside a ledger up to a sequence, and the exchanges that all of the log is searched
    for."""
    searched: list[str] = []

    async def search(exchange: str) -> bytes:
        searched.append(exchange)
        raise NotFound(exchange)

    membership = KeyValueMembership(log.connection)
    records = BrokerRecords(log.connection, log, asyncio.Event(), membership, search=search)
    if ledger is None:
        yield records, searched
        return
    async with await LedgerWriter.open(ledger, log.stream, log.partitions) as writer:
        async for batch in log.as_stored().history([EVERYTHING], 0, upto):
            await writer.append(batch)
    async with serving_queries(log.connection, ledger, None):
        yield records, searched


@pytest.mark.parametrize("upto", [12, 9, 5], ids=["all", "half an exchange less", "most of them less"])
def test_why_of_an_exchange_is_told_however_far_the_ledger_is(broker: Broker, tmp_path: Path, upto: int) -> None:
    async def body() -> None:
        async with logged(broker) as log, asked_of(log, tmp_path / "ledger.db", upto) as (records, searched):
            for exchange in ("x0", "x1", "x2"):
                assert json.loads(await records.why(exchange))["exchange"] == exchange
            assert searched == []

    asyncio.run(body())


@pytest.mark.parametrize("has_ledger", [True, False])
def test_why_of_a_made_up_exchange_has_the_log_searched_elsewhere(
    broker: Broker, tmp_path: Path, has_ledger: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        ledger = tmp_path / "ledger.db" if has_ledger else None
        async with logged(broker) as log, asked_of(log, ledger, 8) as (records, searched):

            def read_all(*_: Any) -> None:
                raise AssertionError("the whole log is read in the gateway")

            monkeypatch.setattr(StreamSource, "exchange", read_all)
            with pytest.raises(NotFound):
                await records.why("made-up")
            assert searched == ["made-up"]

    asyncio.run(body())


def test_an_exchange_is_not_looked_for_in_a_long_part_of_the_log_that_the_ledger_lacks(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with logged(broker) as log, asked_of(log, tmp_path / "ledger.db", 5) as (records, searched):
            assert (await records.find_exchange("x2")).started_seq == 9
            monkeypatch.setattr("deploy.processes.gateway.records._MOST_BEHIND", 6)
            assert (await records.find_exchange("x0")).ended_seq == 4
            with pytest.raises(Unavailable, match=r"^the ledger is 7 events behind the log: try again"):
                await records.find_exchange("x2")
            with pytest.raises(NotFound):
                await records.why("x2")
            assert searched == ["x2"]

    asyncio.run(body())


@pytest.mark.parametrize(("limit", "most"), [("_MOST_BEHIND", 2), ("_MOST_EXPLAINED", 3)])
def test_an_exchange_of_many_events_or_over_a_long_part_of_the_log_is_explained_elsewhere(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    async def body() -> None:
        async with logged(broker) as log, asked_of(log, tmp_path / "ledger.db", 12) as (records, searched):
            assert json.loads(await records.why("x1"))["exchange"] == "x1"
            monkeypatch.setattr(f"deploy.processes.gateway.records.{limit}", most)
            with pytest.raises(NotFound):
                await records.why("x1")
            assert searched == ["x1"]

    asyncio.run(body())


def test_of_an_exchange_with_late_feedback_the_log_between_is_not_read(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("events.replay.sources._SEARCHED_AROUND", 1)
    read: list[tuple[int, int]] = []
    as_stored = StreamSource.as_stored

    def noted(source: StreamSource, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        read.append((after, upto))
        return as_stored(source, filters, after, upto)

    async def body() -> None:
        async with logged(broker) as log:
            await append(log, [stored(13, FEEDBACK, exchange="x0")])
            async with asked_of(log, tmp_path / "ledger.db", 13) as (records, searched):
                monkeypatch.setattr(StreamSource, "as_stored", noted)
                explained = await records.why("x0")
                assert (b"feedback.given" in explained, searched) == (True, [])
                assert read == [(0, 5), (11, 13)]
                assert (await records.exchange("x0")).last_seq == 13

    asyncio.run(body())


def test_the_search_explains_an_exchange_and_says_that_there_is_none(broker: Broker) -> None:
    async def body() -> None:
        async with logged(broker):
            for exchange in ("x1", "made-up"):
                question = Explain(exchange=exchange)
                found = await answer(Asked(access=Access(servers=broker.url), log=LogSettings(), question=question))
                if exchange == "x1":
                    assert isinstance(found, Answered)
                    assert json.loads(bytes(found.body))["exchange"] == "x1"
                else:
                    assert isinstance(found, Unanswered)
                    assert (found.why, "'made-up'" in found.message) == ("absent", True)

    asyncio.run(body())


def test_settings_of_an_actor_that_the_log_does_not_hold_are_told_as_a_wrong_question(broker: Broker) -> None:
    async def body() -> None:
        async with logged(broker):
            question = DecideAgain(exchange="x0", upto=4, settings={"breaker.alpha": 0.5})
            found = await answer(Asked(access=Access(servers=broker.url), log=LogSettings(), question=question))
            assert isinstance(found, Unanswered)
            assert (found.why, found.field) == ("wrong", "settings")
            assert "the log holds nothing of breaker" in found.message

    asyncio.run(body())


def test_a_verdict_reads_the_input_where_it_is_and_nothing_of_a_long_log(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lookup(exchange: str) -> RatedExchange:
        if exchange != "x0":
            raise NotFound(f"no exchange {exchange}")
        return RatedExchange(exchange=exchange, agent="ada", session="s1", started_seq=1)

    def read_all(*_: Any) -> None:
        raise AssertionError("the whole log is read")

    async def body() -> None:
        async with logged(broker):
            access = Access(servers=broker.url)
            operations = BrokerOperations(access, "NEURAXIS", wait_s=20.0, lookup=lookup)
            monkeypatch.setattr(StreamSource, "exchange", read_all)
            with pytest.raises(NotFound, match="made-up"):
                await operations.judge(Verdict(exchange="made-up", verdict="benign", by="ann", why="reviewed"), "")
            recorded = await operations.judge(VERDICT, "")
            assert (recorded.agent, recorded.verdict) == ("ada", "benign")

    asyncio.run(body())
