"""Events by NATS subjects, with each login that the embedded broker writes, through a restart of the broker."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import nats
import pytest

import neuraxis
from actors.registry import ACTORS
from deploy.processes.broker import DECIDERS, EmbeddedBroker
from deploy.processes.supervising.supervisor import Supervisor
from events.errors import LogError
from events.jetstream import JetStreamLog
from events.log import Append, Record
from neuraxis import Event
from neuraxis.nats import Login, alerts, listen, read
from schemas.catalogue import CATALOGUE
from schemas.event import encode_event
from schemas.export.headers import sample_headers
from tests.broker import USERS, Broker, close_for_good
from tests.cluster import Deployed, deployed
from tests.deploy.processes.broker.test_broker import as_user, embedded, run

ALERT, BLOCKED = "forged_id.alert.critical.breaker", "forged_id.reflex.blocked"
STORED = {ALERT: "log.00.03.alert.critical.breaker", BLOCKED: "log.00.03.reflex.blocked"}
DEADLINE_S = 60.0


async def store(log: JetStreamLog, topic: str, name: str) -> None:
    entry = CATALOGUE[topic]
    headers = sample_headers(entry) | {"Nats-Msg-Id": name, "ce-id": name}
    await log.append([Append([Record(STORED[topic], headers, encode_event(entry.sample))])])


async def taken(events: AsyncGenerator[Event, None], count: int) -> list[Event]:
    """The first events of a reading, which ends with them."""
    found: list[Event] = []
    async with asyncio.timeout(DEADLINE_S), aclosing(events):
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return found


def login(broker: EmbeddedBroker, user: str) -> Login:
    return Login.load(broker.layout.contexts / f"{user}.json")


async def heard_at_once(broker: EmbeddedBroker, log: JetStreamLog) -> int:
    """``listen`` hears what comes once it listens: something is stored until it is heard; returns how often."""
    hearing = asyncio.create_task(taken(listen("alert.>", login(broker, "observer")), 1))
    count = 0
    while not hearing.done():
        await store(log, ALERT, f"heard-{count}")
        await asyncio.wait((hearing,), timeout=0.2)
        count += 1
    (event,) = hearing.result()
    assert (event.topic, event.id.partition("-")[0], event.seq > 0) == (ALERT, "heard", True)
    assert event.alert is not None
    assert (event.alert.severity, event.alert.status) == ("critical", "firing")
    return count


async def dealt_with(broker: EmbeddedBroker, log: JetStreamLog, stored: int) -> None:
    """``alerts`` gives what was not dealt with: the one that each reading left with comes again, the others do not."""
    reader = login(broker, "reader")
    (left,) = await taken(alerts(reader), 1)
    rest = await taken(alerts(reader), stored)
    assert left in rest
    assert len({each.id for each in rest}) == stored
    await store(log, ALERT, "late")
    last = await taken(alerts(reader), 2)
    assert {each.id for each in last} == {rest[-1].id, "late"}


async def nothing_missed(broker: EmbeddedBroker, log: JetStreamLog, pid: int) -> None:
    """``read`` gives all behind a sequence, each once and in order, through the end of a broker."""
    reading = read(">", login(broker, "operator"), after=0)
    found: list[Event] = []
    async with asyncio.timeout(DEADLINE_S), aclosing(reading):
        async for event in reading:
            found.append(event)
            if event.id == "last-before":
                os.kill(pid, signal.SIGKILL)
                await stored_again(log, "after")
            if event.id == "after":
                break
    seqs = [each.seq for each in found]
    assert seqs == sorted(set(seqs))
    assert seqs[:1] == [1]


async def stored_again(log: JetStreamLog, name: str) -> None:
    while True:
        try:
            await store(log, BLOCKED, name)
            return
        except LogError:
            await asyncio.sleep(0.05)


def test_events_come_by_subject_and_go_on_after_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = embedded(tmp_path / ".neuraxis" / "broker")

    async def body(supervisor: Supervisor) -> None:
        log = await JetStreamLog.connect(as_user(broker, DECIDERS), create=False)
        for number in range(3):
            await store(log, ALERT, f"alert-{number}")
        heard = await heard_at_once(broker, log)
        await dealt_with(broker, log, 3 + heard)
        await store(log, BLOCKED, "last-before")
        (status,) = supervisor.statuses()
        assert status.pid is not None
        await nothing_missed(broker, log, status.pid)
        monkeypatch.setattr("neuraxis.nats.CONNECT_S", 2.0)  # how long the broker is silent to who may not ask
        with pytest.raises(neuraxis.Forbidden):
            await taken(read(">", login(broker, "observer"), after=0), 1)
        await log.close()

    run(broker, body)


def test_a_broker_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(neuraxis.NotReachable, match=r"127\.0\.0\.1:1"):
        asyncio.run(taken(listen(">", Login(url="nats://127.0.0.1:1")), 1))


def test_a_login_with_an_nkey_and_an_authority_of_its_own_gets_in(tmp_path: Path) -> None:
    """As ``deploy nats-conf`` writes it, wherever the client is started."""

    async def body(running: Deployed) -> None:
        log = await JetStreamLog.connect(running.access("w"), create=False)
        await store(log, BLOCKED, "first")
        await log.close()
        (event,) = await taken(read(">", Login.load(running.logins / "operator.json"), after=0), 1)
        assert event.id == "first"

    with deployed(tmp_path, nodes=1, workers={"w": tuple(ACTORS)}, dev_ca=True) as running:
        asyncio.run(body(running))
        context = json.loads((running.logins / "operator.json").read_text())
        (running.logins / "elsewhere.json").write_text(json.dumps({**context, "ca": ""}))
        with pytest.raises(neuraxis.NotReachable, match="shows no certificate that is trusted"):
            asyncio.run(taken(listen(">", Login.load(running.logins / "elsewhere.json")), 1))


def test_a_reading_from_behind_the_end_of_the_log_is_refused(broker: Broker) -> None:
    """It would wait in silence until the log is as long, and leave out what comes until then."""

    async def act() -> None:
        log = await JetStreamLog.connect(broker.url)
        await store(log, BLOCKED, "first")
        await log.close()
        assert (await taken(read(">", Login(url=broker.url), after=0), 1))[0].id == "first"
        for after, expected in ((2, "the log ends at sequence 1:"), (-1, "after is -1")):
            with pytest.raises(neuraxis.BadInput, match=expected):
                await taken(read(">", Login(url=broker.url), after=after), 1)

    asyncio.run(act())


def test_of_several_servers_one_that_lives_is_found(broker: Broker) -> None:
    async def act() -> None:
        publisher = await nats.connect(broker.url)
        listening = listen(">", Login(url=f"nats://127.0.0.1:1, {broker.url}"))
        first = asyncio.ensure_future(anext(listening))
        while not first.done():
            await publisher.publish(BLOCKED, b"{}")
            await asyncio.wait((first,), timeout=0.05)
        assert first.result().topic == BLOCKED
        await listening.aclose()
        await publisher.close()

    asyncio.run(act())


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"token": "t"}, "uses token, which this client does not support"),
        ({"user_jwt": "j", "nsc": "n"}, "uses nsc, user_jwt"),
        ({"nkey": "gone.nk"}, r"gone\.nk cannot be read"),
        ({"nkey": "odd"}, "odd does not hold the seed of an nkey"),
        ({"creds": "odd"}, "odd holds no NATS credentials"),
        ({"creds": "gone.creds"}, r"gone\.creds cannot be read"),
        ({"ca": "odd"}, "odd is no file of certificates"),
    ],
)
def test_a_login_that_cannot_be_used_is_told_before_anything_is_sent(
    context: dict[str, str], expected: str, tmp_path: Path
) -> None:
    """Of a credentials file without a token nats-py read the end for ever, and its event loop stood still."""
    (tmp_path / "odd").write_text("nothing of the kind\n")
    (tmp_path / "login.json").write_text(json.dumps({"url": "nats://127.0.0.1:1", **context}))
    with pytest.raises(neuraxis.Misconfigured, match=expected):
        asyncio.run(taken(listen(">", Login.load(tmp_path / "login.json")), 1))


def test_a_broker_that_does_not_come_back_is_raised(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuraxis.nats.RECONNECTS", 1)

    async def act() -> None:
        publisher = await nats.connect(broker.url)
        listening = listen(">", Login(url=broker.url))
        first = asyncio.ensure_future(anext(listening))
        while not first.done():
            await publisher.publish(BLOCKED, b"{}")
            await asyncio.wait((first,), timeout=0.05)
        await publisher.close()
        broker.kill()
        with pytest.raises(neuraxis.NotReachable, match="has not come back"):
            await taken(listening, 10_000)

    asyncio.run(act())


@pytest.mark.parametrize("kind", ["listen", "read"])
def test_a_broker_that_falls_silent_is_raised(kind: str, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its connections and takes new ones, as a paused or a cut off machine does, and answers nothing."""
    monkeypatch.setattr("neuraxis.nats._PING_S", 0.5)

    async def act() -> None:
        log = await JetStreamLog.connect(broker.url)
        await store(log, BLOCKED, "first")
        reading = read(">", Login(url=broker.url), after=0) if kind == "read" else listen(">", Login(url=broker.url))
        first = asyncio.ensure_future(anext(reading))
        while not first.done():
            await log.connection.publish(BLOCKED, b"{}")
            await asyncio.wait((first,), timeout=0.05)
        await log.close()
        monkeypatch.setattr("neuraxis.nats.AWAY_S", 1.0)
        monkeypatch.setattr("neuraxis.nats.CONNECT_S", 1.0)
        broker.pause()
        try:
            with pytest.raises(neuraxis.NotReachable, match=r"has not come back|told nothing of the log"):
                await taken(reading, 10_000)
        finally:
            broker.resume()

    asyncio.run(act())


def test_a_broker_that_serves_no_log_any_more_is_raised(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers pings, and nothing about the log: JetStream is switched off, or a cluster has no leader for it."""
    monkeypatch.setattr("neuraxis.nats._FETCH_S", 0.2)

    async def act() -> None:
        log = await JetStreamLog.connect(broker.url)
        await store(log, BLOCKED, "first")
        await log.close()
        reading = read(">", Login(url=broker.url), after=0)
        assert (await anext(reading)).id == "first"
        monkeypatch.setattr("neuraxis.nats.AWAY_S", 1.0)
        broker.kill()
        broker.jetstream = False
        broker.start()
        with pytest.raises(neuraxis.NotReachable, match="told nothing of the log"):
            await taken(reading, 10_000)

    asyncio.run(act())


@pytest.mark.parametrize("topic", ["", "a..b", "reflex. blocked", "alert.>.breaker"])
def test_a_topic_that_is_no_subject_is_refused_before_anything_waits_for_it(topic: str, broker: Broker) -> None:
    reading = (listen(topic, Login(url=broker.url)), read(topic, Login(url=broker.url), after=0))
    for events in reading:
        with pytest.raises(neuraxis.BadInput, match="is no subject"):
            asyncio.run(taken(events, 1))


def test_who_may_not_listen_is_told_and_does_not_wait_for_ever(tmp_path: Path) -> None:
    broker = embedded(tmp_path / ".neuraxis" / "broker")

    async def body(supervisor: Supervisor) -> None:
        with pytest.raises(neuraxis.Forbidden, match="may not listen"):
            await taken(listen("alert.>", login(broker, DECIDERS)), 1)

    run(broker, body)


def test_a_sequence_behind_the_end_is_refused_and_the_end_itself_is_not(broker: Broker) -> None:
    """The broker would begin at the end, and the reader leave out all up to that sequence."""

    async def act() -> None:
        log = await JetStreamLog.connect(broker.url)
        await store(log, BLOCKED, "first")
        with pytest.raises(neuraxis.BadInput, match="the log ends at sequence 1:") as refused:
            await taken(read(">", Login(url=broker.url), after=2), 1)
        assert refused.value.field == "after"
        reading = asyncio.create_task(taken(read("alert.>", Login(url=broker.url), after=1), 1))
        await store(log, ALERT, "next")
        assert [each.seq for each in await reading] == [2]
        await log.close()

    asyncio.run(act())


def test_a_log_that_lost_what_was_read_ends_the_reading(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuraxis.nats._FETCH_S", 0.5)

    async def act() -> None:
        log = await JetStreamLog.connect(broker.url)
        for number in range(3):
            await store(log, BLOCKED, f"first-{number}")
        await log.close()
        async with aclosing(read(">", Login(url=broker.url), after=0)) as reading:
            assert [(await anext(reading)).seq for _ in range(3)] == [1, 2, 3]
            broker.kill()
            shutil.rmtree(broker.store)
            broker.start()
            log = await JetStreamLog.connect(broker.url)
            await store(log, BLOCKED, "another")
            await log.close()
            with pytest.raises(neuraxis.NeuraxisError, match="after the event of sequence 3: the log ends") as cut:
                async with asyncio.timeout(DEADLINE_S):
                    await anext(reading)
            assert cut.value.code == "log_cut"

    asyncio.run(act())


def test_a_log_that_has_grown_past_what_it_lost_is_told_to_who_names_the_last_event(broker: Broker) -> None:
    """By its sequence alone, what got the sequences of lost events would be passed over in silence."""

    async def stored(name: str, count: int) -> None:
        log = await JetStreamLog.connect(broker.url)
        for number in range(count):
            await store(log, BLOCKED, f"{name}-{number}")
        await log.close()

    async def act() -> None:
        await stored("first", 3)
        last = (await taken(read(">", Login(url=broker.url), after=0), 3))[-1]
        await stored("second", 1)
        assert [each.seq for each in await taken(read(">", Login(url=broker.url), after=last), 1)] == [4]
        broker.kill()
        shutil.rmtree(broker.store)
        broker.start()
        await stored("another", 5)
        with pytest.raises(neuraxis.NeuraxisError, match="after the event of sequence 3: the log has lost it") as cut:
            await taken(read(">", Login(url=broker.url), after=last), 1)
        assert cut.value.code == "log_cut"
        assert [each.seq for each in await taken(read(">", Login(url=broker.url), after=last.seq), 1)] == [4]

    asyncio.run(act())


def test_a_broker_without_the_log_is_told(broker: Broker) -> None:
    with pytest.raises(neuraxis.NeuraxisError, match="gives no reader"):
        asyncio.run(taken(read(">", Login(url=broker.url), after=0), 1))


def test_a_login_is_read_from_the_running_set_and_shows_no_password(tmp_path: Path) -> None:
    with pytest.raises(neuraxis.Misconfigured, match=r"run\.json is not there"):
        Login.of_set(data=tmp_path)
    contexts = tmp_path / "contexts"
    contexts.mkdir()
    (tmp_path / "run.json").write_text(f'{{"contexts": "{contexts}"}}')
    with pytest.raises(neuraxis.Misconfigured, match="no context"):
        Login.of_set(data=tmp_path)
    (contexts / "observer.json").write_text('{"url": "nats://127.0.0.1:4", "user": "o", "password": "hidden-word"}')
    found = Login.of_set(data=tmp_path)
    assert (found.user, found.password, "hidden-word" in repr(found)) == ("o", "hidden-word", False)


def test_a_login_that_is_taken_away_ends_a_reading_by_that_reason(tmp_path: Path) -> None:
    async def main(broker: Broker) -> None:
        heard = asyncio.create_task(taken(listen(">", Login(url=broker.url, user="a", password="secret")), 1))
        await asyncio.sleep(0.2)
        await close_for_good(broker, heard.done)
        await heard

    with (
        Broker(tmp_path, more=USERS.format("secret")) as broker,
        pytest.raises(neuraxis.Unauthorized, match="the broker does not know a"),
    ):
        asyncio.run(main(broker))
