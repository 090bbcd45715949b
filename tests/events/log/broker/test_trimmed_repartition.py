"""A log whose stream has lost its beginning to the ledger gets more partitions, and requests still see all of it."""

import asyncio
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from actors.gateway.http.operator_endpoints import NotLearned
from actors.gateway.http.scopes import NotFound
from actors.gateway.operator_orders import Order
from deploy.cli.connect import open_log
from deploy.cli.options import Target
from deploy.config.settings import LogSettings
from deploy.copying import repartitioning, trimming
from deploy.copying.repartitioning import Repartitioned, cancel, repartition
from deploy.operating.deadline import Deadline
from deploy.operating.forgetting import NothingToForget, forget_session, survey
from deploy.operating.order_client import give
from deploy.processes.gateway.operations import BrokerOperations
from deploy.processes.gateway.records import BrokerRecords
from deploy.processes.query_services import serving_queries
from deploy.replaying.log_questions import Answered, Asked, Explain, Unanswered, answer
from events.errors import Misconfigured
from events.jetstream import Access, JetStreamLog, KeyValueMembership
from events.ledger import LedgerArchive, compare, verify
from events.log import Stored
from schemas.permissions import SNAPSHOTS_BUCKET
from schemas.subjects import Partitions
from schemas.vocabulary.allowances import AllowanceRecorded
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.runtime.living import PARTITIONS, at_rest, converse, exchange_of, led_by, living, on_broker
from tests.broker import Broker
from tests.events.ledger.messages import exchanges as of_another_set
from tests.events.ledger.messages import read, write
from tests.events.log.broker.test_repartition import asked as conversed
from tests.events.log.broker.test_trimming import CONFIG, EVERY, projected, resting, trimmed, until_gone
from tests.events.setting import collect
from tests.judging import broken_promises, exchanges, replayed

SESSIONS = 4
AFTER = (2 * PARTITIONS.agents, 2 * PARTITIONS.sessions)


async def divided(broker: Broker, ledger: Path | None, counts: tuple[int, int] = AFTER) -> Repartitioned:
    return await repartition(Access(servers=broker.url), CONFIG, *counts, lambda _what, _seq: None, ledger)


async def with_trimmed_log(log: JetStreamLog, broker: Broker, ledger: Path) -> int:
    """Have a conversation of which the stream keeps the end; return the last sequence that it lacks."""
    async with living(broker, "before") as worker:
        await converse(log, SESSIONS, 1)
        order = AllowanceRecorded(allowance="old", text="ignore all of it", by="ann", why="our own words")
        await give(log, [Order(event=order, agent="agent-1")], 20.0)
        await at_rest(log)
        await resting(log, worker)
        await worker.stopped()
    old = time.monotonic()
    async with living(broker, "between") as worker:
        await asyncio.sleep(2.5)  # so long ago the broker removes events, in whole seconds
        await conversed(log, [(1, 7, "Hello there")])
        await resting(log, worker)
        await worker.stopped()
    await projected(broker, ledger)
    done = await trimmed(broker, ledger, time.monotonic() - old - 1.0)
    return done.first_seq - 1


@pytest.fixture(autouse=True)
def any_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "_MIN_AGE_S", 0.0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A folder with a broker's trimmed log and its ledger, and the last sequence that the stream lacks."""
    folder, through = tmp_path_factory.mktemp("trimmed"), list[int]()

    with pytest.MonkeyPatch.context() as patch, Broker(folder / "broker") as broker:
        patch.setattr(trimming, "_MIN_AGE_S", 0.0)

        async def body(log: JetStreamLog) -> None:
            through.append(await with_trimmed_log(log, broker, folder / "ledger.db"))

        on_broker(broker, body)
        broker.stop()
    return folder, through[0]


@pytest.fixture
def through(recorded: tuple[Path, int]) -> int:
    return recorded[1]


@pytest.fixture
def ledger(recorded: tuple[Path, int], tmp_path: Path) -> Path:
    """A copy of that ledger."""
    return Path(shutil.copy(recorded[0] / "ledger.db", tmp_path))


@pytest.fixture
def broker(recorded: tuple[Path, int], tmp_path: Path) -> Iterator[Broker]:
    """A broker on a copy of that log."""
    shutil.copytree(recorded[0] / "broker" / "store", tmp_path / "broker" / "store")
    with Broker(tmp_path / "broker") as running:
        yield running


def test_partitions_are_divided_by_what_the_ledger_and_the_stream_hold(
    broker: Broker, ledger: Path, through: int, tmp_path: Path
) -> None:
    async def body(log: JetStreamLog) -> None:
        assert through > 0
        kept = await collect(log)
        for wrong, said in ((None, "run this where the ledger is"), (tmp_path / "none.db", "is not there")):
            with pytest.raises(Misconfigured, match=said):
                await divided(broker, wrong)
        assert await collect(log) == kept, "a refusal has changed the log"

        done = await divided(broker, ledger)
        assert (done.after.agents, done.after.sessions) == AFTER
        assert done.states >= SESSIONS
        after = await JetStreamLog.connect(broker.url, create=False)
        assert after.trimmed_through == through
        async with living(broker, "after", partitions=Partitions(*AFTER)) as worker:
            texts = [(number, 9, "Do you remember what we discussed?") for number in range(SESSIONS)]
            ends = await conversed(after, texts)
            await resting(after, worker)
            used, count = worker.worker.counters.snapshots_used, len(worker.worker.shards)
            await worker.stopped()
        assert used == count, "a partition was folded without its snapshot"
        await projected(broker, ledger)
        assert verify(ledger).ok
        assert (await compare(ledger, after.as_stored())).ok
        # The whole log, decided anew: nothing in it depends on what the stream lacks.
        operations = BrokerOperations(Access(servers=broker.url), "NEURAXIS", wait_s=20.0, ledger=ledger)
        async with operations._log("agent") as whole:
            found = await collect(whole)
        assert [each.seq for each in found] == list(range(1, found[-1].seq + 1))
        answered = exchanges(found, ResponseEmitted)
        assert {end.exchange for end in ends} <= set(answered)
        replay = replayed(EVERY, found, after.partitions)
        assert broken_promises(EVERY, found, answered, after.partitions, replay) == []
        # Snapshots of the new partitions can be written anew, too.
        await until_gone(after)
        assert (await trimmed(broker, ledger, None)).snapshots >= count
        await after.close()

    on_broker(broker, body)


def test_what_was_interrupted_leaves_snapshots_to_their_owners(
    broker: Broker, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(*_: object) -> int:
        raise SystemExit

    async def body(log: JetStreamLog) -> None:
        with monkeypatch.context() as during:
            during.setattr(repartitioning, "write_snapshots", killed)
            during.setattr(repartitioning, "_open", killed)  # as SIGKILL: nothing is put back
            with pytest.raises(SystemExit):
                await divided(broker, ledger)
        with pytest.raises(Misconfigured, match="is being repartitioned"):
            await JetStreamLog.connect(broker.url, create=False)
        assert await cancel(Access(servers=broker.url), CONFIG)
        await _own_snapshot_is_taken(log)
        done = await divided(broker, ledger)
        assert (done.before, done.after.sessions) == (PARTITIONS, AFTER[1])
        await _own_snapshot_is_taken(log)

    on_broker(broker, body)


async def _own_snapshot_is_taken(log: JetStreamLog) -> None:
    answer = await log.connection.request(f"$KV.{SNAPSHOTS_BUCKET}.probe", b"x")
    assert b'"seq"' in answer.data, answer.data


def test_requests_over_http_see_allowances_that_were_removed_from_the_stream(
    broker: Broker, ledger: Path, tmp_path: Path
) -> None:
    async def body(log: JetStreamLog) -> None:
        access = Access(servers=broker.url)
        without = BrokerOperations(access, "NEURAXIS", wait_s=20.0, ledger=tmp_path / "elsewhere.db")
        assert (await without.allowances("agent-1")).allowances == ()
        operations = BrokerOperations(access, "NEURAXIS", wait_s=20.0, ledger=ledger)
        assert [each.allowance for each in (await operations.allowances("agent-1")).allowances] == ["old"]
        await operations.withdraw("agent-1", "old", "ben", "no longer")
        assert (await operations.allowances("agent-1")).allowances == ()

    on_broker(broker, body)


def test_a_gateway_without_the_ledger_says_what_it_does_not_see_and_resets_what_was_judged_there(
    broker: Broker, ledger: Path, through: int, tmp_path: Path
) -> None:
    old = exchange_of(0, 0)

    async def body(log: JetStreamLog) -> None:
        log.trimmed_through = 0  # as known to a gateway that ran on while the log was trimmed
        beside = log.with_archive(LedgerArchive(ledger))
        assert [each.seq async for some in beside.history([">"], 0, through + 1) for each in some][:1] == [1]
        log.trimmed_through = 0
        await log.info()
        assert log.trimmed_through == through, "a gateway that ran on meanwhile would say nothing of it"
        unseen = f"events up to sequence {through:,} were removed from stream NEURAXIS"
        access = Access(servers=broker.url)
        without = BrokerOperations(access, "NEURAXIS", wait_s=20.0, ledger=tmp_path / "elsewhere.db")
        assert unseen in (await without.allowances("agent-1")).unread
        with capture_logs() as lines, pytest.raises(NotFound, match=unseen):
            await without.withdraw("agent-1", "old", "ben", "no longer")
        assert lines == [], "each request warns anew of what the first has said"
        with pytest.raises(NotLearned, match=unseen):
            await without.learn_harm(old, "ben", "it did harm")
        # A terminated session stays so until it is reset, however long ago its inputs were.
        async with living(broker, "after") as worker:
            await led_by(worker)
            reset = await without.reset_breaker("agent-0", "session-0", "ben", "reviewed")
            await worker.stopped()
        assert (reset.session, reset.state) == ("session-0", "NORMAL")

        after = await JetStreamLog.connect(broker.url, create=False)
        settings = LogSettings(agents=PARTITIONS.agents, sessions=PARTITIONS.sessions)
        for file, kind, said in ((str(ledger), Answered, old), ("", Unanswered, unseen)):
            asked = Asked(access=access, log=settings, question=Explain(exchange=old), ledger=file)
            assert isinstance(found := await answer(asked), kind), found
            assert said in msgspec.json.encode(found).decode()
        async with serving_queries(after.connection, ledger, None):
            membership = KeyValueMembership(after.connection)
            for archive, beside in ((LedgerArchive(ledger), None), (None, ledger), (None, None)):
                whole = after.with_archive(archive)
                whole.trimmed_through = 0  # as in a gateway that began before the trim
                records = BrokerRecords(
                    after.connection, after, asyncio.Event(), membership, whole=whole, ledger=beside
                )
                if archive is not None or beside is not None:
                    assert not (await records.whole_log()).unseen
                    assert old.encode() in await records.why(old)
                    continue
                with pytest.raises(NotFound, match=f"{unseen}.*`neuraxis why` explains it there"):
                    await records.why(old)
        await after.close()

    on_broker(broker, body)


def test_a_command_goes_on_without_what_was_removed_where_the_ledger_cannot_be_read_or_is_another_sets(
    broker: Broker, ledger: Path, through: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may only be about to ask something. What another set once heard is no beginning of this log."""
    damaged, other, altered = tmp_path / "damaged", tmp_path / "other", tmp_path / "altered"
    for folder in (damaged, other, altered):
        folder.mkdir()
    (damaged / "ledger.db").write_bytes(b"no ledger any more")
    write(other / "ledger.db", of_another_set(1_000))

    async def body(log: JetStreamLog) -> None:
        await asyncio.to_thread(
            write, altered / "ledger.db", _with_another_agent(ledger, through + 1), partitions=PARTITIONS
        )
        for folder, first in ((tmp_path, 1), (damaged, through + 1), (other, through + 1), (altered, through + 1)):
            removed = f"events up to sequence {through:,} were removed from stream NEURAXIS"
            async with open_log(Target(folder, broker.url, "", "", "", None, ())) as opened:
                assert (opened.trimmed_through, (await opened.info()).first_seq) == (through, first)
                # Somebody's words may be there, and those of sessions that repeat them.
                assert (removed in (await survey(opened, "agent-0", "session-0")).unread) is (folder != tmp_path)
                with pytest.raises(NothingToForget) as nothing:
                    await forget_session(opened, "agent-0", "never", by="ann", why="asked", deadline=Deadline(20))
                assert (removed in str(nothing.value)) is (folder != tmp_path)
            said = capsys.readouterr().err
            assert (removed in said, str(damaged) in said) == (folder != tmp_path, folder == damaged), said

    on_broker(broker, body)


def _with_another_agent(ledger: Path, seq: int) -> list[Stored]:
    """Return a ledger's messages, of which one has another header."""
    return [
        msgspec.structs.replace(each, headers={**each.headers, "ce-agent": "somebody"}) if each.seq == seq else each
        for each in read(ledger)
    ]
