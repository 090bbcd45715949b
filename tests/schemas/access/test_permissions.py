"""Users of a real nats-server with the catalogue's permissions: what each may do, and that nothing else works."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from events.jetstream.connection import Access, Connection
from events.jetstream.key_value import KeyValueMembership
from events.jetstream.log import JetStreamLog
from events.jetstream.stored_snapshots import KeyValueSnapshots
from events.log import Append, Fence, Record
from events.loss_recording import record_loss
from schemas.catalogue import CATALOGUE, owned_by
from schemas.event import encode_event
from schemas.export.headers import sample_headers
from schemas.permissions import (
    ALERT_CONSUMERS,
    EXCHANGE_QUERY,
    LOSS_SUBJECT,
    MEMBERS_BUCKET,
    SNAPSHOTS_BUCKET,
    STREAM,
    BrokerUser,
    Permissions,
    admin_user,
    durable_name,
    durable_names,
    observer_user,
    owners,
    reader_user,
    specialist_user,
    stored_filters,
    worker_user,
)
from schemas.subjects import stored_subject
from schemas.vocabulary.ledger import LossRecorded
from tests.broker import Broker
from tests.each import each

USERS = {
    user.name: user
    for user in (
        *(worker_user(owner, (owner,)) for owner in owners()),
        *(observer_user(), reader_user(), admin_user(), specialist_user()),
    )
}
FORBIDDEN = "nobody.may.publish.here"
every_owner = each("owner", owners())
every_user = each("user", USERS.values(), named=lambda user: user.name)


def configured(user: BrokerUser) -> dict[str, Any]:
    may = user.permissions
    return {
        "user": user.name,
        "password": user.name,
        "permissions": {
            "publish": {"allow": list(may.publish_allow), "deny": list(may.publish_deny)},
            "subscribe": {"allow": list(may.subscribe_allow), "deny": list(may.subscribe_deny)},
            "allow_responses": may.allow_responses,
        },
    }


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    configuration = "authorization: " + json.dumps({"users": [configured(user) for user in USERS.values()]})
    with Broker(tmp_path_factory.mktemp("broker"), more=configuration) as server:
        asyncio.run(make_stream_and_buckets(server.url))
        yield server.url


async def make_stream_and_buckets(url: str) -> None:
    log = await JetStreamLog.connect(access(url, "admin"))
    await KeyValueMembership.over(log.connection)
    await KeyValueSnapshots.over(log.connection)
    await log.close()


def access(url: str, user: str) -> Access:
    return Access(servers=url, user=user, password=user, inbox_prefix=USERS[user].inbox_prefix)


@asynccontextmanager
async def log_of(url: str, user: str) -> AsyncIterator[JetStreamLog]:
    log = await JetStreamLog.connect(access(url, user), create=False)
    try:
        yield log
    finally:
        await log.close()


@asynccontextmanager
async def client_of(url: str, user: str) -> AsyncIterator[tuple[Client, asyncio.Queue[str]]]:
    """Connect a plain client; the queue fills with the errors that the server reports to it."""
    errors: asyncio.Queue[str] = asyncio.Queue()

    async def report(error: Exception) -> None:
        errors.put_nowait(str(error).lower())

    client = await nats.connect(
        url, user=user, password=user, inbox_prefix=USERS[user].inbox_prefix, error_cb=report, allow_reconnect=False
    )
    try:
        yield client, errors
    finally:
        await client.close()


async def denied(url: str, user: str, subjects: list[str], kind: str = "publish") -> set[str]:
    """Try to publish (or subscribe) to each subject; return those that the server denied."""

    async def ignore(_: object) -> None:
        return

    reported: set[str] = set()
    async with client_of(url, user) as (client, errors):
        for subject in subjects:
            if kind == "publish":
                await client.publish(subject, b"{}")
            else:
                await client.subscribe(subject, cb=ignore)
        # Denials come in order and nobody may publish this one: when it is reported, all are.
        await client.publish(FORBIDDEN, b"")
        async with asyncio.timeout(20):
            while FORBIDDEN not in (error := await errors.get()):
                reported.add(error)
    return {
        subject for subject in subjects if f'nats: permissions violation for {kind} to "{subject.lower()}"' in reported
    }


async def settled(client: Client) -> None:
    """Wait until the server took what was sent: nats-py writes a PING ahead of its buffer, so one flush is too few."""
    await client.flush(timeout=10)
    await client.flush(timeout=10)


async def last_sequence(url: str) -> int:
    async with log_of(url, "operator") as log:
        return (await log.info()).last_seq


def record_of(topic: str) -> Record:
    entry = CATALOGUE[topic]
    headers = sample_headers(entry)
    headers["Nats-Msg-Id"] = f"{topic}-{next(numbers)}"
    return Record(stored_subject(topic, "01", "07"), headers, encode_event(entry.sample))


numbers = iter(range(1_000_000))


# Appending


@every_owner
def test_a_worker_appends_each_of_its_own_events(url: str, owner: str) -> None:
    async def run() -> None:
        async with log_of(url, owner) as log:
            for entry in owned_by(owner):
                fence = Fence(f"log.*.07.{entry.prefix}.>", await log.last(f"log.*.07.{entry.prefix}.>"))
                sequence = await log.append([Append([record_of(entry.topic)], fence)])
                assert sequence > fence.last

    asyncio.run(run())


@every_owner
def test_a_worker_appends_its_events_in_one_batch(url: str, owner: str) -> None:
    async def run() -> None:
        async with log_of(url, owner) as log:
            before = (await log.info()).last_seq
            records = [record_of(entry.topic) for entry in owned_by(owner)]
            await log.append([Append([*records, record_of(owned_by(owner)[0].topic)])])
            assert (await log.info()).last_seq == before + len(records) + 1

    asyncio.run(run())


@every_user
def test_nobody_appends_another_owner_s_event(url: str, user: BrokerUser) -> None:
    foreign = [
        stored_subject(entry.topic, "01", "07") for entry in CATALOGUE.values() if entry.owner not in user.owners
    ]

    async def run() -> None:
        before = await last_sequence(url)
        assert await denied(url, user.name, foreign) == set(foreign)
        assert await last_sequence(url) == before

    asyncio.run(run())


@each("owner", ["reflex", "responder", "llm", "ledger"])
def test_a_worker_records_what_the_log_has_lost(url: str, owner: str) -> None:
    async def main() -> tuple[int, int]:
        async with log_of(url, owner) as log:
            before = (await log.losses()).last_seq
            seq = (await log.info()).last_seq + 1
            loss = LossRecorded(first_seq=seq, through_seq=seq, known_by="stream", given_again=False)
            await record_loss(log, loss, "test", "2026-01-01T00:00:00Z", "")
            return before, (await log.losses()).last_seq

    before, after = asyncio.run(main())
    assert after > before


def test_those_whose_events_come_from_outside_record_no_loss(url: str) -> None:
    for user in ("gateway", "operator", "observer", "reader"):
        assert asyncio.run(denied(url, user, [LOSS_SUBJECT])) == {LOSS_SUBJECT}


@every_user
def test_nobody_publishes_on_a_public_subject(url: str, user: BrokerUser) -> None:
    assert asyncio.run(denied(url, user.name, list(CATALOGUE))) == set(CATALOGUE)


@every_user
def test_nobody_but_the_admin_touches_streams(url: str, user: BrokerUser) -> None:
    calls = [
        f"$JS.API.STREAM.{call}"
        for call in ("CREATE.OTHER", f"UPDATE.{STREAM}", f"DELETE.{STREAM}", f"PURGE.{STREAM}", f"MSG.DELETE.{STREAM}")
    ] + [
        f"$JS.API.CONSUMER.NAMES.{STREAM}",
        f"$JS.API.CONSUMER.LIST.{STREAM}",
        f"$JS.API.STREAM.DELETE.KV_{MEMBERS_BUCKET}",
    ]
    if user.name == "admin":
        calls = [f"$KV.{SNAPSHOTS_BUCKET}.reflex.07", "log.01.07.reflex.passed"]
    assert asyncio.run(denied(url, user.name, calls)) == set(calls)


def test_a_pull_request_s_reply_subject_cannot_put_an_event_under_another_s(url: str) -> None:
    forged = stored_subject("forged_id.router.mode_selected", "03", "03")

    async def run() -> None:
        async with log_of(url, "reflex") as log, client_of(url, "reflex") as (client, errors):
            mine = Record(stored_subject("forged_id.reflex.passed", "03", "03"), {"ce-type": "forged"}, b"forged")
            sequence = await log.append([Append([mine])])
            config = {
                "name": "nx-reflex-hostile",
                "ack_policy": "none",
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": sequence,
                "filter_subject": mine.subject,
            }
            subject = f"$JS.API.CONSUMER.CREATE.{STREAM}.nx-reflex-hostile.{mine.subject}"
            await client.request(subject, json.dumps({"stream_name": STREAM, "config": config}).encode(), timeout=10)
            await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.nx-reflex-hostile", b"1", reply=forged)
            # The copy, under the subject it had, is what shows that the pull was served.
            copies = await log.tail([mine.subject], sequence)
            async with asyncio.timeout(20):
                assert (await copies.next())[0].data == mine.data
            await copies.close()
            assert await log.last(forged) == 0
            assert errors.empty()

    asyncio.run(run())


# Reading


@every_owner
def test_a_worker_reads_the_log(url: str, owner: str) -> None:
    async def run() -> None:
        async with log_of(url, "gateway") as gateway:
            sequence = await gateway.append([Append([record_of("forged_id.input.received")])])
        async with log_of(url, owner) as log:
            tail = await log.tail(["log.*.*.input.received"], sequence - 1)
            async with asyncio.timeout(20):
                assert (await tail.next())[0].seq == sequence
            await tail.close()
            found = [stored.seq async for batch in log.history(["log.>"], sequence - 1, sequence) for stored in batch]
            assert found == [sequence]

    asyncio.run(run())


@each("user", sorted(set(USERS) - {"admin"}))
def test_nobody_listens_to_appends_that_a_fence_may_yet_reject(url: str, user: str) -> None:
    assert asyncio.run(denied(url, user, ["log.>"], "subscription")) == {"log.>"}


@every_user
def test_nobody_listens_to_another_s_inbox(url: str, user: BrokerUser) -> None:
    others = [f"{other.inbox_prefix}.>" for other in USERS.values() if other is not user]
    assert asyncio.run(denied(url, user.name, ["_INBOX.>", *others], "subscription")) == {"_INBOX.>", *others}


@each("user", owners())
def test_a_worker_cannot_touch_another_s_durable_consumer(url: str, user: str) -> None:
    others = [name for other in owners() if other != user for name in durable_names(other)]
    others += ALERT_CONSUMERS  # the reader's, from which people are told
    calls = [
        f"$JS.API.CONSUMER.{call}"
        for name in others
        for call in (
            f"CREATE.{STREAM}.{name}",
            f"CREATE.{STREAM}.{name}.log.*.*.input.received",
            f"INFO.{STREAM}.{name}",
            f"MSG.NEXT.{STREAM}.{name}",
            f"DELETE.{STREAM}.{name}",
        )
    ] + [f"$JS.ACK.{STREAM}.{name}.1.1.1.1.0" for name in others]
    if user == "ledger":  # it creates those of narrow logins
        calls = [call for call in calls if ".CREATE." not in call or ".alerts" in call]
    assert asyncio.run(denied(url, user, calls)) == set(calls)


@each(("owner", "line"), [("responder", ""), ("webhook", "8")])
def test_an_effector_acknowledges_on_its_durable_consumers(url: str, owner: str, line: str) -> None:
    name = durable_name(owner, line)

    async def run() -> None:
        async with log_of(url, "gateway") as gateway:
            await gateway.append([Append([record_of("forged_id.input.received")])])
        async with client_of(url, owner) as (client, errors):
            config = {"durable_name": name, "name": name, "ack_policy": "explicit", "filter_subject": "log.*.*.input.>"}
            subject = f"$JS.API.CONSUMER.CREATE.{STREAM}.{name}.log.*.*.input.>"
            await client.request(subject, json.dumps({"stream_name": STREAM, "config": config}).encode(), timeout=10)
            inbox = await client.subscribe(client.new_inbox())
            await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{name}", b"1", reply=inbox.subject)
            message = await inbox.next_msg(timeout=10)
            await message.ack_sync(timeout=10)
            info = await client.request(f"$JS.API.CONSUMER.INFO.{STREAM}.{name}", timeout=10)
            assert json.loads(info.data)["num_ack_pending"] == 0
            assert errors.empty()

    asyncio.run(run())


# Buckets


@every_owner
def test_a_worker_renews_its_membership_and_keeps_its_snapshots(url: str, owner: str) -> None:
    async def run() -> None:
        connection = await Connection.open(access(url, owner))
        membership = await KeyValueMembership.over(connection)
        await membership.beat(f"{owner}-1", b"here")
        assert (await membership.members())[f"{owner}-1"] == b"here"
        await membership.leave(f"{owner}-1")
        snapshots = await KeyValueSnapshots.over(connection)
        await snapshots.save(f"{owner}.07", b"state" * 200_000, 0)
        assert await snapshots.load(f"{owner}.07") == b"state" * 200_000
        await connection.close()

    asyncio.run(run())


@every_user
def test_nobody_writes_another_s_snapshots(url: str, user: BrokerUser) -> None:
    keys = [f"$KV.{SNAPSHOTS_BUCKET}.{owner}.07" for owner in owners() if owner not in user.owners]
    assert asyncio.run(denied(url, user.name, keys)) == set(keys)


# Queries and answers


def test_the_gateway_asks_a_worker_and_gets_its_answer(url: str) -> None:
    async def run() -> None:
        async with client_of(url, "router") as (router, refused), client_of(url, "gateway") as (gateway, unheard):

            async def answer(request: Any) -> None:
                await request.respond(b"state of " + request.data)

            await router.subscribe("forged_id.query.router.state", queue="q", cb=answer)
            await settled(router)
            reply = await gateway.request("forged_id.query.router.state", b"session-1", timeout=10)
            assert reply.data == b"state of session-1"
            assert refused.empty()
            assert unheard.empty()

    asyncio.run(run())


@every_owner
def test_a_worker_serves_its_own_queries_only(url: str, owner: str) -> None:
    foreign = [f"forged_id.query.{other}.>" for other in owners() if other != owner]
    if owner != "gateway":  # it may hear everything public, so as to show it
        assert asyncio.run(denied(url, owner, foreign, "subscription")) == set(foreign)
    assert asyncio.run(denied(url, owner, [f"forged_id.query.{owner}.>"], "subscription")) == set()


@every_owner
def test_only_the_responder_and_llm_send_to_the_inbox_of_an_input(url: str, owner: str) -> None:
    inbox = f"{USERS['gateway'].inbox_prefix}.answer"
    expected = set() if owner in ("responder", "llm", "gateway") else {inbox}
    got = asyncio.run(denied(url, owner, [inbox]))
    assert got == ({inbox} if owner == "gateway" else expected)


def test_the_delegate_finds_a_specialist_and_asks_it(url: str) -> None:
    async def run() -> None:
        async with client_of(url, "specialist") as (specialist, refused):

            async def answer(request: Any) -> None:
                await request.respond(request.subject.encode())

            for subject in ("$SRV.INFO.calculator", "specialist.calculator"):
                await specialist.subscribe(subject, cb=answer)
            await settled(specialist)
            async with client_of(url, "delegate") as (delegate, unheard):
                for subject in ("$SRV.INFO.calculator", "specialist.calculator"):
                    assert (await delegate.request(subject, b"", timeout=10)).data == subject.encode()
                assert refused.empty()
                assert unheard.empty()

    asyncio.run(run())


def test_a_specialist_says_nothing_unasked_and_hears_no_events(url: str) -> None:
    subjects = ["specialist.other", "log.01.07.delegate.answered", "_INBOX.delegate.x", "$JS.API.INFO"]
    assert asyncio.run(denied(url, "specialist", subjects)) == set(subjects)
    heard = ["forged_id.>", "_INBOX.delegate.>", "specialist.>"]
    assert asyncio.run(denied(url, "specialist", heard, "subscription")) == {"forged_id.>", "_INBOX.delegate.>"}


@every_owner
def test_only_the_delegate_asks_specialists(url: str, owner: str) -> None:
    expected = set() if owner == "delegate" else {"specialist.calculator"}
    assert asyncio.run(denied(url, owner, ["specialist.calculator"])) == expected


@each("user", ["observer", "reader"])
def test_an_observer_hears_what_the_log_stored(url: str, user: str) -> None:
    async def run() -> None:
        async with client_of(url, user) as (observer, errors), log_of(url, "gateway") as log:
            subscription = await observer.subscribe("forged_id.>")
            await settled(observer)
            sequence = await log.append([Append([record_of("forged_id.input.received")])])
            message = await subscription.next_msg(timeout=10)
            assert message.subject == "forged_id.input.received"
            assert message.headers is not None
            assert message.headers["Nats-Sequence"] == str(sequence)
            assert errors.empty()

    asyncio.run(run())


@each("user", ["observer", "reader"])
def test_who_may_only_listen_takes_no_question_from_those_who_answer(url: str, user: str) -> None:
    """Servers give each question to one of a group: a listener in the group would be given its share."""
    question = "forged_id.query.ledger.health"
    assert asyncio.run(denied(url, user, [question, "forged_id.query.>"], "subscription")) == {
        question,
        "forged_id.query.>",
    }

    async def run() -> None:
        async with client_of(url, user) as (listener, _), client_of(url, "ledger") as (ledger, _):
            heard: list[str] = []

            async def answer(request: Any) -> None:
                await request.respond(b"well")

            async def note(message: Any) -> None:
                heard.append(message.subject)

            await ledger.subscribe(question, queue="q", cb=answer)
            for subject in ("forged_id.>", "forged_id.*.*.*"):
                await listener.subscribe(subject, queue="q", cb=note)
            await settled(ledger)
            await settled(listener)
            async with client_of(url, "gateway") as (gateway, _):
                for _ in range(20):
                    assert (await gateway.request(question, b"", timeout=10)).data == b"well"
            assert heard == []

    asyncio.run(run())


def test_an_observer_is_not_told_the_words_of_an_exchange(url: str) -> None:
    """In a sealed stream it hears words that it cannot open; the answer to this query has them opened."""
    assert asyncio.run(denied(url, "observer", [EXCHANGE_QUERY])) == {EXCHANGE_QUERY}
    assert asyncio.run(denied(url, "reader", [EXCHANGE_QUERY])) == {EXCHANGE_QUERY}
    assert asyncio.run(denied(url, "observer", ["forged_id.query.ledger.exchanges"])) == set()


# Data


def test_an_owner_that_the_catalogue_lacks_has_no_user() -> None:
    with pytest.raises(ValueError, match="nobody: no such owner"):
        worker_user("nobody", ("nobody",))


def test_a_user_of_several_owners_has_the_rights_of_each() -> None:
    user = worker_user("minds", ("reflex", "router"))
    allowed = set(user.permissions.publish_allow)
    assert {*stored_filters("reflex"), *stored_filters("router")} <= allowed
    assert not any(durable_name("router") in subject for subject in user.permissions.publish_deny)


def test_permissions_default_to_nothing() -> None:
    assert Permissions().publish_allow == Permissions().subscribe_allow == ()
