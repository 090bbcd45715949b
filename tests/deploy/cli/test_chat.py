"""``chat`` and ``ask`` against a real broker, with a set whose answers are scripted."""

import asyncio
import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import click
import msgspec
import pytest

from actors.llm.calling import SentPiece
from actors.runtime.envelopes import to_record
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from events.log import Append
from events.make_decision import address_events, cause_of
from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.subjects import topic_filter
from schemas.vocabulary.act import ActFinished, Action, ActIterated, Performed
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import SAMPLE_RECOLLECTION
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected
from tests.broker import Broker
from tests.e2e.live import command, environment

DEADLINE_S = 60.0

Script = Callable[[InputReceived], Sequence[Event | bytes]]
"""From an input to what follows from it: events, and pieces for its inbox."""

RECALL = Action(index=0, skill="recall", query="my name")
LOOKED_UP: tuple[Event, ...] = (
    msgspec.structs.replace(
        entry_of(ModeSelected).sample,
        selected_mode="ACT",
        terminal_mode=None,
        tiebreaker_candidates=("ACT", "CLARIFY"),
        tiebreaker_used=True,
        tiebreaker_outcome="ACT",
    ),
    ActIterated(
        iteration=0,
        planner="llm",
        performed=(Performed(action=RECALL, ok=True, found=1),),
        productive=True,
        elapsed_ms=7,
    ),
    ActFinished(termination="plan_empty", iterations=1, productive=True, elapsed_ms=7, findings=(SAMPLE_RECOLLECTION,)),
    msgspec.structs.replace(entry_of(ModeSelected).sample, rerouted=True),
)


def piece(index: int, text: str) -> bytes:
    return msgspec.json.encode(SentPiece(request="r", exchange="x", attempt=1, index=index, text=text))


def answer(text: str, received: InputReceived) -> Event:
    return msgspec.structs.replace(
        entry_of(ResponseEmitted).sample,
        response=text,
        first_mode="ACT",
        backend="llm",
        model="qwen3:8b",
        reply_to=received.reply_to,
    )


@contextlib.asynccontextmanager
async def scripted(broker: Broker, script: Script) -> AsyncIterator[None]:
    """A set of which only the ends of its path are there: whatever is asked is answered by the script."""
    log = await JetStreamLog.connect(broker.url)
    try:
        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(_answer(log, script))
            yield
            answering.cancel()
    finally:
        await log.close()


async def _answer(log: JetStreamLog, script: Script) -> None:
    tail = await log.tail([topic_filter("forged_id.input.received")], 0)
    while True:
        for stored in await tail.next():
            recorded = decode(stored)
            assert isinstance(recorded, Recorded)
            received = recorded.message.event
            assert isinstance(received, InputReceived)
            for number, each in enumerate(script(received)):
                if isinstance(each, bytes):
                    await log.connection.publish(received.reply_to, each)
                    continue
                [decided] = address_events(f"test-{number}", cause_of(recorded), (each,), log.partitions)
                await log.append([Append([to_record(decided, "test", "", time.time_ns(), 0)])])


def printed(broker: Broker, folder: Path, script: Script, *arguments: str, stdin: str = "") -> str:
    """Run a command against a scripted set, with no terminal about; return what it printed."""
    status, out, err = ended(broker, folder, script, *arguments, stdin=stdin)
    assert status == 0, err
    return out


def ended(
    broker: Broker, folder: Path, script: Script, *arguments: str, stdin: str = ""
) -> tuple[int | None, str, str]:
    """Run a command against a scripted set, with no terminal about; return its status, and what it printed."""

    async def run() -> tuple[int | None, str, str]:
        async with scripted(broker, script), asyncio.timeout(DEADLINE_S):
            process = await asyncio.create_subprocess_exec(
                *command(*arguments, "--nats", broker.url),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=environment(),
            )
            out, err = await process.communicate(stdin.encode())
            return process.returncode, out.decode(), err.decode()

    return asyncio.run(run())


def at_a_terminal(broker: Broker, folder: Path, script: Script, *arguments: str) -> str:
    """Run a command against a scripted set at a terminal; return what stood on it in the end."""

    async def run() -> str:
        async with scripted(broker, script):
            return click.unstyle(await asyncio.to_thread("".join, _terminal(folder, *arguments, "--nats", broker.url)))

    return asyncio.run(run())


def _terminal(folder: Path, *arguments: str) -> Iterator[str]:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment()
    )
    os.close(theirs)
    try:
        while select.select([ours], [], [], DEADLINE_S)[0]:
            try:
                said = os.read(ours, 4096)
            except OSError:  # the terminal's other end is closed: the command has ended
                break
            yield said.decode(errors="replace").replace("\r\n", "\n")
        assert process.wait(DEADLINE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def looked_up(received: InputReceived) -> Sequence[Event | bytes]:
    return (*LOOKED_UP, answer(f"You said: {received.text}", received))


def test_each_line_of_a_chat_is_answered_with_its_decision_below(broker: Broker, tmp_path: Path) -> None:
    lines = printed(broker, tmp_path, looked_up, "chat", stdin="Who am I?\nAnd you?\n").splitlines()
    answers, sentences, decisions = lines[0::6], lines[1::6], lines[2::6]
    assert answers == ["You said: Who am I?", "You said: And you?"]
    assert all(
        decision.startswith(
            "DELIBERATIVE EXECUTED · reason RESPOND · mode RESPOND (first ACT) · confidence 0.30 · by llm qwen3:8b · "
        )
        for decision in decisions
    )
    assert all(told.startswith("Answered by the model qwen3:8b with an answer, because ") for told in sentences)
    assert lines[3:6] == lines[9:12] == [
        "tie-break by a model: ACT or CLARIFY → ACT (margin 0.300 of 0.164)",
        "ACT 0 (llm, 7 ms): recall “my name” found 1",
        "ACT ended: plan_empty, 1 found",
    ]  # fmt: skip


def test_a_chat_for_machines_prints_the_whole_decision_a_line_each(broker: Broker, tmp_path: Path) -> None:
    told = printed(broker, tmp_path, looked_up, "chat", "--json", stdin="Who am I?\nAnd you?\n")
    rows = [json.loads(line) for line in told.splitlines()]
    assert [row["response"] for row in rows] == ["You said: Who am I?", "You said: And you?"]
    assert len({row["session"] for row in rows}) == 1
    assert rows[0]["tiebreak"]["candidates"] == ["ACT", "CLARIFY"]
    assert rows[0]["act"]["iterations"][0]["steps"] == [
        {"skill": "recall", "query": "my name", "found": 1, "reason": ""}
    ]
    assert (rows[0]["backend"], rows[0]["model"]) == ("llm", "qwen3:8b")


@pytest.mark.parametrize("arguments", [("chat",), ("chat", "--json"), ("feed", "-", "--format", "text")], ids=" ".join)
def test_lines_that_failed_fail_the_command_that_they_were_piped_into(
    arguments: tuple[str, ...], broker: Broker, tmp_path: Path
) -> None:
    def script(received: InputReceived) -> Sequence[Event | bytes]:
        told = answer("Lima.", received)
        if received.text == "What now?":
            failed = {"stage": "ARBITER", "action": "FAILED", "reason": "no_owner: arbiter", "mode": None}
            told = msgspec.structs.replace(told, **failed)
        return (told,)

    lines = ("Who am I?", "What now?", "And you?")
    status, out, err = ended(broker, tmp_path, script, *arguments, stdin="\n".join(lines))
    assert (status, "1 exchange FAILED" in err) == (1, True), err
    assert out.count("no_owner: arbiter") >= 1


def test_without_a_terminal_no_words_are_asked_for_ahead(broker: Broker, tmp_path: Path) -> None:
    asked: list[InputReceived] = []

    def script(received: InputReceived) -> Sequence[Event | bytes]:
        asked.append(received)
        return (answer("Ada.", received),)

    printed(broker, tmp_path, script, "ask", "Who am I?")
    assert [(each.stream, each.reply_to) for each in asked] == [(False, "")]


def test_at_a_terminal_words_appear_as_they_come_and_once(broker: Broker, tmp_path: Path) -> None:
    asked: list[InputReceived] = []

    def script(received: InputReceived) -> Sequence[Event | bytes]:
        asked.append(received)
        return (*LOOKED_UP, piece(0, "You are"), piece(1, " Ada"), answer("You are Ada, I think.", received))

    told = at_a_terminal(broker, tmp_path, script, "ask", "Who am I?")
    assert asked[0].stream
    assert told.startswith("You are Ada, I think.\nAnswered by the model qwen3:8b with an answer, because ")
    assert told.count("Ada") == 1


def test_at_a_terminal_an_answer_that_came_otherwise_is_shown_too(broker: Broker, tmp_path: Path) -> None:
    def script(received: InputReceived) -> Sequence[Event | bytes]:
        return (piece(0, "You are Bo"), answer("No language model is attached.", received))

    told = at_a_terminal(broker, tmp_path, script, "ask", "Who am I?")
    assert told.startswith("You are Bo\n(in the end) No language model is attached.\nAnswered by the model qwen3:8b")
