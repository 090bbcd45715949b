"""A worker process by itself, against a real broker."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from nats.aio.msg import Msg

from actors.registry import ACTORS
from actors.runtime.committer import Group
from actors.runtime.envelopes import to_record
from deploy.config.loading import all_sections, assignment_layer, resolve
from deploy.processes.effector_registry import EFFECTORS
from deploy.processes.supervising.lifeline import READY
from deploy.processes.worker import UnknownWork, check_work, known_work, reply_sender, work_with_settings
from events.jetstream import Access, Connection, JetStreamLog
from events.log import Append, Record
from events.make_decision import Cause, NewEvent, address_events
from schemas.actor import Message
from schemas.catalogue import CATALOGUE
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.event import encode_event
from schemas.subjects import Partitions
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.responder import ResponseRequested
from tests.actors.llm.scripted import ANSWER, fails, in_background, says
from tests.actors.llm.sessions import begun
from tests.broker import Broker
from tests.deploy.waiting import until
from tests.forked import forked

ALIVE_S = 60.0


def command(broker: Broker, folder: Path, *hosts: str) -> list[str]:
    return [sys.executable, "-m", "deploy.cli", "worker", *hosts, "--nats", broker.url, "--data", str(folder)]


def refusal(broker: Broker, folder: Path, *hosts: str) -> str:
    """Return the last line that a worker says that does not start, since it is used wrongly."""
    done = forked(("worker", *hosts, "--nats", broker.url, "--data", str(folder)), folder=folder)
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[-1]


@contextmanager
def worker(broker: Broker, folder: Path, *hosts: str) -> Iterator[tuple[subprocess.Popen[str], socket.socket]]:
    """Start a worker on a lifeline; yields the process and our end."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [*command(broker, folder, *hosts), "--lifeline", str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        stderr=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    ours.settimeout(ALIVE_S)
    try:
        yield process, ours
    finally:
        ours.close()
        process.kill()
        process.communicate()


def test_a_worker_says_when_it_serves_and_ends_cleanly_when_asked(broker: Broker, tmp_path: Path) -> None:
    with worker(broker, tmp_path, "clock", "router") as (process, line):
        assert line.recv(64) == READY
        process.send_signal(signal.SIGTERM)
        assert process.wait(ALIVE_S) == 0


def test_a_worker_ends_by_itself_when_its_supervisor_is_gone(broker: Broker, tmp_path: Path) -> None:
    with worker(broker, tmp_path, "ledger") as (process, line):
        assert line.recv(64) == READY
        line.close()
        assert process.wait(ALIVE_S) == 0
        assert (tmp_path / "ledger.db").exists()


def test_a_worker_refuses_a_stream_of_other_partitions_in_one_line(broker: Broker, tmp_path: Path) -> None:
    async def make_a_stream() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=Partitions(2, 8))
        await log.close()

    asyncio.run(make_a_stream())
    said = refusal(broker, tmp_path, "clock")
    assert "has 2 agent and 8 session partitions, but 4 and 16 are configured" in said


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        ("webhook", "no receiver is configured: write a table [webhook.receivers.NAME], or run no webhook worker"),
        ("llm", "no language model is attached: set llm.base_url"),
        ("effectors", "no effector has anything to do: set llm.base_url for a language model, or write a table"),
    ],
)
def test_an_effector_that_is_not_configured_is_refused_in_one_line(
    broker: Broker, tmp_path: Path, host: str, complaint: str
) -> None:
    assert refusal(broker, tmp_path, host).startswith(f"neuraxis: {complaint}")


def test_a_refused_effector_beside_actors_is_all_that_is_complained_of(broker: Broker, tmp_path: Path) -> None:
    refused = command(broker, tmp_path, "webhook", "clock", "ledger")
    done = subprocess.run(refused, capture_output=True, text=True, timeout=ALIVE_S, check=False)
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(said) == 1, said
    assert said[0].startswith("neuraxis: no receiver is configured")


AWAY_S = 8.0
MOST_OF_A_KIND = 12
"""In those seconds, with growing intervals, some four lines of a kind about the same; without, forty to two hundred."""


@pytest.mark.parametrize("back", [False, True], ids=["no broker", "a broker without JetStream"])
def test_a_broker_that_stays_away_does_not_fill_the_log(broker: Broker, tmp_path: Path, back: bool) -> None:
    said = tmp_path / "worker.log"

    def lines() -> list[tuple[str, ...]]:
        """Return what each line tells, and of which partition."""
        found = [json.loads(line) for line in said.read_text().splitlines() if line.startswith("{")]
        return [tuple(each.get(key, "") for key in ("event", "actor", "partition")) for each in found]

    def events() -> set[str]:
        return {event for event, *_ in lines()}

    with said.open("wb") as output:
        process = subprocess.Popen(command(broker, tmp_path, "all", "ledger"), stdin=subprocess.DEVNULL, stderr=output)
    try:
        until(lambda: "worker_ready" in events(), "the worker serves", ALIVE_S)
        before = len(lines())
        broker.kill()
        if back:
            broker.jetstream = False
            broker.start()
            until(lambda: "broker_reconnected" in events(), "the worker has found it", ALIVE_S)
        time.sleep(AWAY_S)
        told = Counter(lines()[before:])
        assert process.poll() is None
        assert ("reading_retries" if back else "broker_unreachable") in {event for event, *_ in told}
        assert max(told.values()) <= MOST_OF_A_KIND, told
    finally:
        process.kill()
        process.wait()


def test_a_worker_of_all_hosts_every_actor_that_decides(broker: Broker, tmp_path: Path) -> None:
    with worker(broker, tmp_path, "all") as (process, line):
        assert line.recv(64) == READY
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=ALIVE_S)
    [ready] = [json.loads(row) for row in said.splitlines() if '"event":"worker_ready"' in row]
    assert ready["hosts"] == sorted(ACTORS)


def test_of_the_effectors_those_are_run_that_are_configured() -> None:
    given = resolve(all_sections(), [assignment_layer("llm.base_url=http://127.0.0.1:1/v1")])
    assert work_with_settings(("effectors",), given) == ("delegate", "llm")
    assert work_with_settings(("effectors", "webhook"), given) == ("delegate", "llm", "webhook"), "it was named"
    assert work_with_settings(("all", "llm"), resolve(all_sections(), [])) == (*ACTORS, "llm")
    with pytest.raises(UnknownWork, match="no effector has anything to do"):
        work_with_settings(("effectors",), resolve(all_sections(), []))


def test_a_worker_that_stands_by_itself_does_not_end_without_a_supervisor(broker: Broker, tmp_path: Path) -> None:
    said = tmp_path / "worker.log"
    with said.open("wb") as output:
        process = subprocess.Popen(command(broker, tmp_path, "ledger"), stdin=subprocess.DEVNULL, stderr=output)
    try:
        until(lambda: "worker_ready" in said.read_text() or process.poll() is not None, "the worker is ready")
        assert process.poll() is None, said.read_text()
    finally:
        process.terminate()
        process.wait(ALIVE_S)
    assert process.returncode == 0, said.read_text()


def test_work_is_named_once_and_by_known_names() -> None:
    assert check_work(("router", "ledger", "router")) == ("router", "ledger")
    assert check_work(("all",)) == tuple(ACTORS)
    assert check_work(("effectors", "llm")) == tuple(EFFECTORS)
    assert set(known_work()) >= {"clock", "reflex", "responder", "router", "ledger", "llm", "delegate"}
    with pytest.raises(UnknownWork, match="there is no actor 'legder': did you mean 'ledger'"):
        check_work(("legder",))


def test_a_worker_of_effectors_answers_requests_and_logs_neither_key_nor_words(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, words = "sk-nobody-may-see-this", "Name the capital of Peru."
    monkeypatch.setenv("NEURAXIS_LLM_API_KEY", secret)
    asked = ResponseRequested(
        mode="RESPOND",
        call=ModelCall(purpose="respond", messages=(ChatMessage(role="user", content=words),)),
        entities=(),
        prompts={},
    )
    cause = Cause("cause", 0, 0, "ann", "s", "exchange-0", "_", "_")
    [decided] = address_events("responder", cause, (asked,), Partitions())

    async def answer() -> bytes:
        log = await JetStreamLog.connect(broker.url)
        await begun(log)
        await log.append([Append([to_record(decided, "test", "", 1_750_000_000_000_000_000, 0)])])
        tail = await log.tail(["log.*.*.llm.>"], 0)
        async with asyncio.timeout(ALIVE_S):
            [stored] = await tail.next()
        await tail.close()
        await log.close()
        return stored.data

    with in_background(fails(500), says()) as endpoint:
        flags = ("--set", f"llm.base_url={endpoint.base_url}", "--set", "runtime.log_level=debug")
        with worker(broker, tmp_path, "llm", "delegate", *flags) as (process, line):
            assert line.recv(64) == READY
            completed = msgspec.json.decode(asyncio.run(answer()), type=LlmCompleted)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=ALIVE_S)
    assert process.returncode == 0, said
    assert (completed.text, completed.attempts, completed.request) == (ANSWER, 2, decided.message.id)
    assert endpoint.asked[0].headers["authorization"] == f"Bearer {secret}"
    assert "call_failed" in said
    assert not any(hidden in said for hidden in (secret, words, ANSWER))


def test_a_worker_of_llm_without_a_model_says_what_to_set(broker: Broker, tmp_path: Path) -> None:
    said = refusal(broker, tmp_path, "llm", "--set", "llm.backend=composer")
    assert said.startswith("neuraxis: no language model is attached: set llm.base_url")


def test_kinds_of_work_with_users_of_their_own_are_not_mixed_on_an_embedded_broker(tmp_path: Path) -> None:
    for mixed, apart in ((("clock", "llm"), "llm"), (("ledger", "router"), "ledger")):
        environment = {name: value for name, value in os.environ.items() if name != "NATS_URL"}
        refused = forked(("worker", *mixed, "--data", str(tmp_path)), folder=tmp_path, environment=environment)
        assert refused.returncode == 2
        assert f"run `neuraxis worker {apart}` by itself" in refused.stderr


def answer_to(inbox: str) -> Group:
    """Return a stored answer that names ``inbox``."""
    sample = CATALOGUE["forged_id.response.emitted"].sample
    event = msgspec.structs.replace(sample, reply_to=inbox)
    message = Message(event=event, seq=7, id="a1", time_ns=0, exchange="e1")
    subject = "log.00.00.response.emitted"
    decided = NewEvent(message, "forged_id.response.emitted", subject, encode_event(event), "c1", 6, 0, 1)
    return Group((decided,), (Record(subject, {"ce-id": "a1"}, decided.data),))


def sent_for(broker: Broker, *inboxes: str) -> dict[str, bytes]:
    """Return what was published, by subject, when an answer to each of ``inboxes`` was to be sent."""

    async def scenario() -> dict[str, bytes]:
        connection = await Connection.open(Access(servers=broker.url))
        sent: dict[str, bytes] = {}
        ended = asyncio.Event()

        async def take(message: Msg) -> None:
            sent[message.subject] = message.data
            if message.subject == "end":
                ended.set()

        await connection.nc.subscribe(">", cb=take)
        for inbox in inboxes:
            await reply_sender(connection)(inbox, answer_to(inbox))
        await connection.publish("end", b"")
        async with asyncio.timeout(ALIVE_S):
            await ended.wait()
        await connection.close()
        del sent["end"]
        return sent

    return asyncio.run(scenario())


def test_a_copy_of_an_answer_reaches_the_inbox_its_input_named(broker: Broker) -> None:
    sent = sent_for(broker, "_INBOX.operator.x1")
    assert sent == {"_INBOX.operator.x1": answer_to("_INBOX.operator.x1").records[0].data}


def test_an_answer_goes_nowhere_but_to_an_inbox(broker: Broker) -> None:
    assert sent_for(broker, "log._.00.input.received", "_INBOX.*", "_INBOX.>", "_INBOX.a b", "_INBOX.", "x") == {}
