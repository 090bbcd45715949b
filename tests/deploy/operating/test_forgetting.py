"""Forgetting on a real set: what is said in a session, and what becomes of it everywhere the set keeps it.

The tests share a set: each has an agent, sessions and words of its own.
"""

import asyncio
import contextlib
import json
import re
import shutil
import sqlite3
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.gateway import Client, new_input
from actors.registry import ACTORS
from deploy.operating.operator_session import FACTS_SESSION
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog, KeyValueSnapshots
from events.jetstream.session_keys import KeyValueKeys
from events.ledger import LedgerReader
from events.routes import partition_names
from events.sealing.keys import key_name
from events.snapshot import snapshot_key
from schemas.permissions import keys_bucket
from schemas.subjects import Partitions
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import MemoryForgotten
from tests.broker import Broker, files_below
from tests.faults.rig import DEADLINE, RunningSet, at_rest, ledger_caught_up, read_all, running_set, waited
from tests.forked import forked

NAME, LOVE, OTHER = "Zanzibarius", "quokkas", "xylophones"
SAID = (f"My name is {NAME} and I love {LOVE}", f"Tell me about {LOVE}", "What is my name?", "And what do I love?")
WORDS = (NAME, LOVE)


@pytest.fixture(scope="module")
def sealed_set(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSet]:
    """Run a set whose log is sealed, and which takes snapshots all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURAXIS_LOG__SEALED", "true")
        patch.setenv("NEURAXIS_RUNTIME__SNAPSHOT_EVERY", "10")
        with running_set(tmp_path_factory.mktemp("sealed"), processes=1) as running:
            waited(running.ready, "the set to be ready")
            yield running


def neuraxis(running: RunningSet, *words: str) -> "subprocess.CompletedProcess[str]":
    return forked((*words, "--data", str(running.data.path)), folder=running.data.path)


def said_as_json(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def converse(running: RunningSet, session: str, texts: tuple[str, ...], agent: str = "ann") -> list[str]:
    """Have a conversation, up to the last that it leads to; returns the answers."""

    async def talk() -> list[str]:
        answers = []
        async with running.log() as log:
            async with Client.open(log) as edge:
                for text in texts:
                    addressed = new_input(
                        text, agent=agent, session=session, partitions=log.partitions, now_ns=time.time_ns()
                    )
                    await edge.submit(addressed)
                    answers.append((await edge.await_end(addressed.exchange, DEADLINE)).event.response)
            await at_rest(log)
        return answers

    return asyncio.run(talk())


def holding(data: bytes, words: tuple[str, ...] = WORDS) -> list[str]:
    """Return the words that some bytes hold, as they are or in a compressed piece."""
    pieces = [data.lower()]
    place = data.find(b"\x78\x01")
    while place >= 0:
        with contextlib.suppress(zlib.error):  # two bytes that began nothing
            pieces.append(zlib.decompressobj().decompress(data[place:]).lower())
        place = data.find(b"\x78\x01", place + 1)
    return [word for word in words if any(word.lower().encode() in piece for piece in pieces)]


def files_holding(folder: Path, words: tuple[str, ...] = WORDS) -> list[str]:
    """Return the files below a folder that hold any of the words."""
    return [str(path.relative_to(folder)) for path, content in files_below(folder) if holding(content, words)]


async def caught_up(running: RunningSet) -> None:
    """Wait until the ledger holds all that the log holds."""
    async with running.log() as log:
        await ledger_caught_up(running.data.ledger, log)


async def snapshots_of(log: JetStreamLog) -> list[bytes]:
    """Return every snapshot that is kept."""
    shelf = KeyValueSnapshots(log.connection)
    keys = [snapshot_key(actor, name) for actor in ACTORS.values() for name in partition_names(actor, log.partitions)]
    return [found for key in keys if (found := await shelf.load(key)) is not None]


def test_after_forgetting_a_session_its_words_are_nowhere_and_its_decisions_still_replay(
    sealed_set: RunningSet,
) -> None:
    running = sealed_set
    answers = converse(running, "travel", SAID)
    assert any(NAME in answer for answer in answers), "memory is at work"
    converse(running, "music", (f"I play {OTHER}",), agent="bob")

    async def kept() -> bool:
        async with running.log() as log:
            return any(holding(snapshot) for snapshot in await snapshots_of(log))

    async def before() -> None:
        async with running.log() as log:
            assert any(NAME.encode() in stored.data for stored in await read_all(log))

    waited(lambda: asyncio.run(kept()), "a snapshot that holds her words")
    asyncio.run(before())
    assert holding(neuraxis(running, "log", "tail", "--no-follow", "--since", "1", "--text").stdout.encode())
    plan = said_as_json(neuraxis(running, "forget", "--session", "travel", "--agent", "ann", "--why", "w", "--json"))
    assert plan["exchanges"] == len(SAID)
    assert plan["sealed"] > len(SAID)
    assert (plan["gone"], plan["readable"], plan["open"], plan["reminded"]) == (0, 0, 0, [])

    order = (
        "forget",
        "--session",
        "travel",
        "--agent",
        "ann",
        "--by",
        "operator",
        "--why",
        "she asked",
        "--yes",
        "--json",
    )
    done = said_as_json(neuraxis(running, *order))
    assert done["unreadable"] == plan["sealed"]
    assert done["key_destroyed"]
    assert done["memories"] == plan["memories"] > 0
    assert done["readable"] == 0

    async def after() -> None:
        async with running.log() as log:
            messages = await read_all(log)
            assert not any(holding(stored.data) for stored in messages)
            assert not any(holding(snapshot) for snapshot in await snapshots_of(log))
            assert any(OTHER.encode() in stored.data for stored in messages)
            told = [found.message for found in map(decode, messages) if isinstance(found, Recorded)]
            orders = [each.event for each in told if isinstance(each.event, MemoryForgotten) and each.agent == "ann"]
            assert [(each.what, each.by, each.why) for each in orders] == [("session", "operator", "she asked")]
            shown = neuraxis(running, "log", "tail", "--no-follow", "--since", "1", "--text").stdout
            assert "[sealed]" in shown
            assert not holding(shown.encode())
            assert OTHER in shown

    asyncio.run(after())
    report = said_as_json(neuraxis(running, "replay", "--verify", "--json"))
    assert report["clean"]
    coverage = report["coverage"]
    assert sum(actor["unverified"].get("sealed", 0) for actor in coverage.values()) > len(SAID)
    assert coverage["arbiter"]["unverified"] == coverage["breaker"]["unverified"] == {}
    assert coverage["coherence"]["identical"] >= len(SAID)
    assert neuraxis(running, "replay", "--verify", "--strict").returncode == 1

    again = said_as_json(neuraxis(running, *order))
    assert (again["key_destroyed"], again["unreadable"]) == (False, plan["sealed"])
    assert converse(running, "travel", ("Hello again, I am new here",))
    assert not any(NAME in answer for answer in converse(running, "travel", ("What is my name?",)))
    assert neuraxis(running, "log", "verify").returncode == 0


def test_after_the_set_has_stopped_no_file_of_its_folder_holds_a_forgotten_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURAXIS_LOG__SEALED", "true")
    monkeypatch.setenv("NEURAXIS_RUNTIME__SNAPSHOT_EVERY", "10")
    with running_set(tmp_path, processes=1) as running:
        waited(running.ready, "the set to be ready")
        converse(running, "travel", SAID)
        waited(lambda: bool(files_holding(tmp_path)), "a snapshot that holds her words")
        done = neuraxis(running, "forget", "--session", "travel", "--agent", "ann", "--why", "w", "--yes")
        assert done.returncode == 0, done.stderr
        assert files_holding(tmp_path) == []
    assert files_holding(tmp_path) == []
    ledger = tmp_path / "data" / "ledger.db"
    with LedgerReader(ledger) as reader:
        assert not any(holding(stored.data) for batch in reader.history() for stored in batch)
    report = said_as_json(forked(("replay", "--verify", "--json", "--log", str(ledger)), folder=tmp_path))
    assert report["clean"]
    # Each text, and what was asked for its answer: reflex keeps both.
    assert report["coverage"]["reflex"]["unverified"] == {"sealed": 2 * len(SAID)}


def test_a_ledger_copy_is_readable_only_to_whoever_reaches_the_keys(sealed_set: RunningSet, tmp_path: Path) -> None:
    running = sealed_set
    converse(running, "copied", ("My name is Quillonius",), agent="cora")
    copy = tmp_path / "copy.db"
    asyncio.run(caught_up(running))
    with sqlite3.connect(running.data.ledger) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    assert holding(copy.read_bytes(), ("Quillonius",)) == []
    tail = ("log", "tail", "--text", "--log", str(copy), "--count", "100000", "--since", "1")
    assert "Quillonius" in neuraxis(running, *tail).stdout
    shown = forked((*tail, "--data", str(tmp_path / "nowhere")), folder=tmp_path).stdout
    assert "[sealed]" in shown
    assert "Quillonius" not in shown


def test_a_caller_that_missed_its_answer_gets_it_readable_until_it_is_forgotten(sealed_set: RunningSet) -> None:
    running = sealed_set

    async def asked() -> str:
        async with running.log() as log:
            told = [each.message for each in map(decode, await read_all(log)) if isinstance(each, Recorded)]
            (exchange,) = (
                each.exchange for each in told if each.agent == "lea" and isinstance(each.event, InputReceived)
            )
            question = json.dumps({"exchange": exchange}).encode()
            answer = await log.connection.nc.request("forged_id.query.ledger.exchange", question, timeout=10)
            found = json.loads(answer.data) if answer.data else {}
            return str((found.get("ended") or {}).get("response", ""))

    (answer,) = converse(running, "missed", ("My name is Ostrogoth",), agent="lea")
    waited(lambda: asyncio.run(asked()) == answer, "the ledger to tell the answer")
    assert "Ostrogoth" in answer
    done = neuraxis(running, "forget", "--session", "missed", "--agent", "lea", "--why", "w", "--yes")
    assert done.returncode == 0, done.stderr
    assert asyncio.run(asked()) == "[sealed]"


def test_a_fact_is_forgotten_by_memory_and_its_order_names_who_and_why(sealed_set: RunningSet) -> None:
    running = sealed_set
    assert any(
        "Bartholdus" in answer
        for answer in converse(running, "introduced", ("My name is Bartholdus", "What is my name?"), agent="fay")
    )
    forget = ("forget", "--fact", "name", "--agent", "fay", "--by", "operator", "--why", "outdated")
    plan = said_as_json(neuraxis(running, *forget, "--json"))
    assert plan["memories"] > 0
    done = said_as_json(neuraxis(running, *forget, "--yes", "--json"))
    assert done["session"] == FACTS_SESSION
    assert done["memories"] == plan["memories"]
    again = neuraxis(running, *forget, "--yes")
    assert again.returncode == 1
    assert "knows no fact 'name'" in again.stdout
    assert "memory holds nothing under 'name'" in again.stderr

    async def kept() -> list[bytes]:
        async with running.log() as log:
            return await snapshots_of(log)

    assert not any(holding(snapshot, ("Bartholdus",)) for snapshot in asyncio.run(kept()))
    for session in ("introduced", "later"):
        answers = converse(running, session, ("What is my name?", "What did I say before that?"), agent="fay")
        assert not any("Bartholdus" in answer for answer in answers)
    assert said_as_json(neuraxis(running, "replay", "--verify", "--json"))["clean"]


def test_a_session_that_nobody_had_is_not_forgotten(sealed_set: RunningSet) -> None:
    for more in ((), ("--yes",)):
        done = neuraxis(sealed_set, "forget", "--session", "travle", "--agent", "ann", "--why", "w", *more)
        assert done.returncode == 1
        assert "the log holds nothing of session travle of agent ann" in done.stderr


def test_the_memories_of_an_agent_that_is_named_like_another_partition_are_found(sealed_set: RunningSet) -> None:
    assert Partitions().agent_token("01") != "01"
    converse(sealed_set, "numbered", ("My name is Ermintrude",), agent="01")
    plan = said_as_json(neuraxis(sealed_set, "forget", "--fact", "name", "--agent", "01", "--why", "w", "--json"))
    assert plan["memories"] > 0


def test_a_session_that_others_were_reminded_of_says_which(sealed_set: RunningSet) -> None:
    running = sealed_set
    converse(running, "home", ("My name is Gwendolyn",), agent="gil")
    assert any("Gwendolyn" in answer for answer in converse(running, "office", ("What is my name?",), agent="gil"))
    plan = said_as_json(neuraxis(running, "forget", "--session", "home", "--agent", "gil", "--why", "w", "--json"))
    assert plan["reminded"] == ["office"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--session or --fact"),
        (("--session", "s", "--fact", "f"), "one of them"),
        (("--session", FACTS_SESSION), "would be undone"),
    ],
    ids=["neither", "both", "the_session_of_orders"],
)
def test_what_makes_no_sense_is_refused_before_anything_is_reached(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = forked(("forget", *words, "--why", "w", "--data", str(tmp_path)), folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


async def lost_key(running: RunningSet, agent: str, session: str) -> None:
    """Remove a session's key as a damaged bucket loses it: nothing says that it was destroyed."""
    async with running.log() as log:
        bucket = keys_bucket(log.stream)
        entry = await KeyValueKeys(log.connection, bucket).confirm(key_name(agent, session))
        assert entry is not None
        await log.connection.api(f"STREAM.MSG.DELETE.KV_{bucket}", {"seq": entry.revision})


def test_a_backup_is_restored_readable_with_its_keys_and_as_forgotten_without(
    sealed_set: RunningSet, broker: Broker, tmp_path: Path
) -> None:
    converse(sealed_set, "garden", ("I planted rutabagas",), "rose")
    asyncio.run(caught_up(sealed_set))
    assert "session-keys.json: " in neuraxis(sealed_set, "backup", str(tmp_path / "monday"), "--keys").stdout
    assert (tmp_path / "monday" / "session-keys.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / "bare").mkdir()
    shutil.copy(tmp_path / "monday" / "ledger.db", tmp_path / "bare")

    def at(where: Broker, *words: str, status: int = 0) -> "subprocess.CompletedProcess[str]":
        done = forked((*words, "--nats", where.url), folder=tmp_path)
        assert done.returncode == status, done.stderr
        return done

    asyncio.run(lost_key(sealed_set, "rose", "garden"))
    lacking = neuraxis(sealed_set, "backup", str(tmp_path / "tuesday"), "--keys", "--json")
    assert json.loads(lacking.stdout)["keys_missing"] == 1
    assert "1 session of the copy lacks a key at the broker" in " ".join(lacking.stderr.split())
    converse(sealed_set, "garden", ("I planted turnips",), "rose")  # under a new key
    asyncio.run(caught_up(sealed_set))
    spoken_since = neuraxis(sealed_set, "backup", str(tmp_path / "wednesday"), "--keys", "--json")
    assert json.loads(spoken_since.stdout)["keys_missing"] == 1

    shown = ("log", "tail", "--no-follow", "--text", "--count", "100000")
    assert re.search(r"sealed; \d+ keys? put back", at(broker, "restore", "monday").stderr)
    assert "rutabagas" in at(broker, *shown).stdout
    again = at(broker, "restore", "monday").stderr
    assert "imported already" in again
    assert "each was there, or was destroyed since" in again
    into_a_folder = forked(("restore", "monday", "--data", str(tmp_path / "restored")), folder=tmp_path)
    assert re.search(r"sealed; \d+ keys? put back", into_a_folder.stderr), into_a_folder.stderr
    elsewhere = at(broker, "restore", "bare", "--set", "log.stream=OTHER", status=2)
    assert "stream NEURAXIS has these subjects" in elsewhere.stderr
    with Broker(tmp_path / "other") as other:
        assert "count as forgotten" in at(other, "restore", "bare").stderr
        assert "rutabagas" not in at(other, *shown).stdout
