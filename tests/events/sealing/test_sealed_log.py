"""A sealed log on a real broker: readable to whoever has the keys, and to nobody once they are destroyed."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from events.decoding import Recorded, decode
from events.errors import LogError, Misconfigured, NotPermitted, Refused, Unavailable, UnknownOutcome
from events.jetstream import JetStreamLog
from events.jetstream.connection import ApiError
from events.log import Append, Seal, Stored, Tail
from events.sealing.keys import KeyEntry, Keyring, KeyStore, key_name
from events.sealing.sealed_texts import CLOSED_TEXT, KEY_DESTROYED, SEALED_HEADER
from events.sealing.sealing import closed_sealing
from schemas.event import encode_event
from schemas.vocabulary.arbiter import ArbiterImmediate
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.operator import ForgetOrdered
from tests.actors.runtime.waiting import until
from tests.broker import Broker, files_below
from tests.events.sealing.records import recorded, said
from tests.events.setting import Setting, back, collect, plain, read

WORDS = "My name is Zanzibarius"
NAME = key_name("ann", "travel")


def keyring_of(log: JetStreamLog) -> Keyring:
    assert log.sealing is not None
    return log.sealing.keyring


def store_of(log: JetStreamLog) -> KeyStore:
    return keyring_of(log).store


def texts(messages: list[Stored]) -> list[str]:
    """Return what the inputs among some messages say."""
    found = [decode(message) for message in messages]
    events = [each.message.event for each in found if isinstance(each, Recorded)]
    return [event.text for event in events if isinstance(event, InputReceived)]


class OutOfReach:
    """A store that nobody reaches, until it is made reachable; ``asked`` counts attempts.

    ``says`` is what it says of a single key's entry, if not None.
    """

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self.reachable = False
        self.asked = 0
        self.says: LogError | None = None

    async def load(self, names: Collection[str]) -> Mapping[str, KeyEntry]:
        self.asked += 1
        if not self.reachable:
            raise Unavailable("out of reach")
        return await self._store.load(names)

    async def confirm(self, name: str) -> KeyEntry | None:
        if self.says is not None:
            raise self.says
        return await self._store.confirm(name)

    async def create(self, name: str, secret: bytes, revision: int) -> bool:
        return await self._store.create(name, secret, revision)

    async def destroy(self, name: str) -> bool:
        return await self._store.destroy(name)


def files_with(folder: Path, content: bytes) -> list[str]:
    """Return the names of the files below a folder that hold some bytes."""
    return sorted(path.name for path, held in files_below(folder) if content in held)


def test_words_are_read_by_another_process_and_lie_nowhere_on_disk(broker: Broker) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        other = await JetStreamLog.connect(broker.url, create=False)
        tail = await other.tail(["log.>"], 0)
        await log.append([plain(said(WORDS, id="e1")), plain(said(f"{WORDS} again", id="e2"))])
        assert texts(await read(tail, 2)) == texts(await collect(other)) == [WORDS, f"{WORDS} again"]
        await tail.close()
        await log.close()
        await other.close()

    asyncio.run(body())
    broker.stop()
    assert files_with(broker.folder, b"travel"), "the store is searched where it is"
    assert files_with(broker.folder, b"Zanzibarius") == []


def test_words_are_sent_at_once_only_where_their_key_is_at_hand_and_are_sealed_then(broker: Broker) -> None:
    def never(outcome: int | BaseException) -> None:
        raise AssertionError(f"nothing was sent, and became {outcome}")

    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        assert not log.append_now(plain(said(WORDS, id="e0")), never)
        await log.append([plain(said(WORDS, id="e1"))])
        sent: asyncio.Future[int | BaseException] = asyncio.get_running_loop().create_future()
        assert log.append_now(plain(said(f"{WORDS} again", id="e2")), sent.set_result)
        assert await sent == 2
        assert texts(await collect(log)) == [WORDS, f"{WORDS} again"]
        assert [SEALED_HEADER in stored.headers for stored in await collect(log.as_stored())] == [True, True]
        broken = msgspec.structs.replace(said(WORDS, id="e3"), data=b"no JSON")
        assert not log.append_now(plain(broken), never)
        await log.close()

    asyncio.run(body())
    broker.stop()
    assert files_with(broker.folder, b"Zanzibarius") == []


@pytest.mark.parametrize(
    "said_by_store",
    [UnknownOutcome("no answer"), ApiError("MSG.GET", {"err_code": 10118, "code": 500}), NotPermitted("no right")],
)
def test_whatever_the_store_of_keys_says_what_was_not_sent_is_neither_in_doubt_nor_refused_for_good(
    said_by_store: LogError, broker: Broker
) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        keyring_of(log).store = failing = OutOfReach(store_of(log))
        failing.says = said_by_store
        with pytest.raises(Unavailable) as refused:
            await log.append([plain(said(WORDS))])
        assert isinstance(refused.value, NotPermitted) is isinstance(said_by_store, NotPermitted)
        assert str(said_by_store) in str(refused.value)
        assert (await log.info()).last_seq == 0
        failing.says = None
        assert await log.append([plain(said(WORDS))]) == 1
        await log.close()

    asyncio.run(body())


def test_two_processes_that_write_at_once_make_one_key(broker: Broker) -> None:
    async def body() -> None:
        logs = [await JetStreamLog.connect(broker.url, sealed=True) for _ in range(6)]
        await asyncio.gather(*(log.append([plain(said(WORDS, id=f"e{at}"))]) for at, log in enumerate(logs)))
        for log in logs:
            messages = await collect(log)
            assert texts(messages) == [WORDS] * len(logs)
            assert len({message.headers[SEALED_HEADER] for message in messages}) == 1
            await log.close()

    asyncio.run(body())


def test_a_destroyed_key_is_gone_from_disk_and_opens_nothing_in_any_process(broker: Broker) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        other = await JetStreamLog.connect(broker.url, sealed=True)
        await log.append([plain(said(WORDS))])
        assert texts(await collect(other)) == [WORDS]
        entry = await store_of(log).confirm(NAME)
        assert entry is not None
        assert files_with(broker.folder, entry.secret)
        assert await store_of(log).destroy(NAME)
        assert not await store_of(log).destroy(NAME)
        assert files_with(broker.folder, entry.secret) == []
        await until(lambda: len(keyring_of(log)) == len(keyring_of(other)) == 0, "both to hear of it")
        for each in (log, other):
            messages = await collect(each)
            assert texts(messages) == [CLOSED_TEXT]
            assert messages[0].seal is Seal.CLOSED
            await each.close()

    asyncio.run(body())


def test_a_process_that_was_cut_off_while_a_key_was_destroyed_does_not_go_on_with_it(tmp_path: Path) -> None:
    async def body(broker: Broker) -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        await log.append([plain(said(WORDS))])
        broker.kill()
        broker.start()
        await back(Setting(log, broker.kill, broker.start))
        await until(lambda: len(keyring_of(log)) == 0, "it to forget what may have changed")
        assert texts(await collect(log)) == [WORDS]
        await log.close()

    with Broker(tmp_path / "b") as broker:
        asyncio.run(body(broker))


def test_a_forgotten_session_begins_anew_by_an_input_and_by_nothing_that_follows_from_before(broker: Broker) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        await log.append([plain(said("old", id="e1"))])
        await store_of(log).destroy(NAME)
        await until(lambda: len(keyring_of(log)) == 0, "it to hear of it")
        answer = ArbiterImmediate(precedent="p", answer="late words", similarity=1.0)
        await log.append([plain(recorded(answer, id="e2", cause="e1"))])
        await log.append([plain(recorded(ForgetOrdered(what="session", by="ann", why="asked"), id="e3"))])
        entry = await store_of(log).confirm(NAME)
        assert entry is not None
        assert entry.secret == b""
        await log.append([plain(said("new", id="e4"))])
        raw = await collect(log.as_stored())
        assert raw[1].headers[SEALED_HEADER] == KEY_DESTROYED
        assert b"late" not in raw[1].data
        assert texts(await collect(log)) == [CLOSED_TEXT, "new"]
        await log.close()

    asyncio.run(body())


def test_an_input_without_words_begins_its_session_for_what_follows_from_it(broker: Broker) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        answer = ArbiterImmediate(precedent="p", answer="words", similarity=1.0)
        await log.append([plain(said("", id="e1"))])
        await log.append([plain(recorded(answer, id="e2", cause="e1"))])
        found = decode((await collect(log))[1])
        assert isinstance(found, Recorded)
        assert found.message.event == answer
        await log.close()

    asyncio.run(body())


def test_what_a_batch_stores_is_sealed_and_a_repeated_append_is_the_same_bytes(broker: Broker) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        await log.append([Append([said("one", id="e1"), said("two", id="e2")])])
        assert await log.append([plain(said("one", id="e1"))]) == 1  # its message id is known: nothing is stored
        assert log.sealing is not None
        again = await log.sealing.seal([plain(said("one", id="e1"))])
        raw = await collect(log.as_stored())
        assert raw[0].data == again[0].records[0].data
        assert texts(raw) != ["one", "two"]
        assert texts(await collect(log)) == ["one", "two"]
        await log.close()

    asyncio.run(body())


def test_two_views_of_a_log_over_one_connection_read_apart(broker: Broker) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        await log.append([Append([said("one", id="e1"), said("two", id="e2")])])
        tail = await log.tail(("log.>",), 0)
        await read(tail, 2)  # its consumer, which is still there, has nothing left to give
        assert [stored.seq for stored in await collect(log.as_stored())] == [1, 2]
        await tail.close()
        await log.close()

    asyncio.run(body())


def test_a_message_that_came_another_way_is_opened_on_demand(broker: Broker) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        await log.append([plain(said(WORDS))])
        message = (await collect(log.as_stored()))[0]
        once = await log.opened(message)
        assert texts([once]) == [WORDS]
        assert await log.opened(once) is once
        assert (await closed_sealing().open([message]))[0].seal is Seal.CLOSED
        await log.close()

    asyncio.run(body())


@asynccontextmanager
async def tail_without_keys(
    broker: Broker,
) -> AsyncIterator[tuple[JetStreamLog, OutOfReach, Tail, "asyncio.Task[list[Stored]]"]]:
    """Yield a log whose keys are out of reach, their store, its tail, and a task that reads its one sealed message."""
    log = await JetStreamLog.connect(broker.url, sealed=True)
    await log.append([plain(said(WORDS))])
    other = await JetStreamLog.connect(broker.url, sealed=True)
    keyring_of(other).store = failing = OutOfReach(store_of(other))
    tail = await other.tail(["log.>"], 0)
    yield other, failing, tail, asyncio.create_task(read(tail, 1))
    await tail.close()
    await log.close()
    await other.close()


def test_a_tail_waits_for_the_keys_rather_than_hand_out_what_it_cannot_open(broker: Broker) -> None:
    async def body() -> None:
        async with tail_without_keys(broker) as (_, failing, tail, reading):
            await until(lambda: failing.asked > 1, "it to ask for the key, in vain")
            assert not reading.done()
            assert tail.cut_off_s > 0.0, "a worker that waits for it decides nothing, and has to say so"
            failing.reachable = True
            assert texts(await reading) == [WORDS]
            assert tail.cut_off_s == 0.0

    asyncio.run(body())


def test_a_tail_that_waits_for_keys_counts_no_time_without_a_broker(broker: Broker) -> None:
    async def body() -> None:
        async with tail_without_keys(broker) as (other, failing, tail, reading):
            await until(lambda: tail.cut_off_s > 0.0, "it to ask for the key, in vain")
            broker.kill()
            await until(lambda: not other.connection.connected, "the connection to be lost")
            since = asyncio.get_running_loop().time()
            await asyncio.sleep(0.1)
            await until(
                lambda: 0.0 < tail.cut_off_s < asyncio.get_running_loop().time() - since,
                "the time without a broker not to count, but the tail to count as cut off",
            )
            broker.start()
            await until(lambda: other.connection.connected, "the connection to be back")
            assert tail.cut_off_s > 0.0, "no key was had yet"
            failing.reachable = True
            assert texts(await reading) == [WORDS]
            assert tail.cut_off_s == 0.0

    asyncio.run(body())


def test_whether_a_log_is_sealed_is_fixed_when_it_is_made(broker: Broker) -> None:
    async def body() -> None:
        sealed = await JetStreamLog.connect(broker.url, stream="SEALED", sealed=True)
        assert sealed.sealing is not None
        with pytest.raises(Misconfigured, match="made with sealing"):
            await JetStreamLog.connect(broker.url, stream="SEALED", sealed=False)
        await sealed.connection.api("STREAM.DELETE.SEALED")
        open_log = await JetStreamLog.connect(broker.url, stream="OPEN", sealed=False)
        assert open_log.sealing is None
        with pytest.raises(Misconfigured, match="made without sealing"):
            await JetStreamLog.connect(broker.url, stream="OPEN", sealed=True)
        await open_log.append([plain(said(WORDS))])
        assert (await collect(open_log))[0].data == encode_event(InputReceived(text=WORDS))
        await sealed.close()
        await open_log.close()

    asyncio.run(body())


def test_a_body_that_cannot_be_read_is_not_stored(broker: Broker) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=True)
        broken = said("x")
        with pytest.raises(Refused, match="cannot be sealed"):
            await log.append([plain(type(broken)(broken.subject, broken.headers, b"{"))])
        assert (await log.info()).messages == 0
        await log.close()

    asyncio.run(body())
