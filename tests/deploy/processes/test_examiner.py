"""Long questions get processes of their own, which end with whoever asked."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import pytest

from actors.gateway.external_events import InvalidField
from actors.gateway.http.scopes import NotFound
from deploy.processes import examiner
from deploy.processes.examiner import AT_ONCE, WAITING, Examiner
from events.errors import Unavailable
from tests.each import each

ECHO = """
import socket, sys, time
line = socket.socket(fileno=int(sys.argv[1]))
asked = b""
while part := line.recv(65536):
    asked += part
if asked == b"silent":
    time.sleep(600)
line.sendall(asked)
"""
"""Answers with the question; in the place of what answers in earnest, which takes seconds to start."""


@pytest.fixture(autouse=True)
def echoing(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Have the echo answer; returns the processes."""
    processes: list[Any] = []
    real = examiner.spawn

    async def spawned(command: Any, **options: Any) -> Any:
        process = await real((sys.executable, "-c", ECHO, command[-1]), **options)
        processes.append(process)
        return process

    monkeypatch.setattr(examiner, "spawn", spawned)
    return processes


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_an_answer_is_handed_on_and_its_process_ended(echoing: list[Any]) -> None:
    assert run(Examiner(60).ask(b'{"type":"Answered","body":{"a":1}}')) == b'{"a":1}'
    assert [process.returncode is not None for process in echoing] == [True]


@each(("why", "kind"), [("wrong", InvalidField), ("absent", NotFound), ("away", Unavailable)])
def test_what_went_wrong_is_told_by_its_kind(why: str, kind: type[Exception]) -> None:
    answer = f'{{"type":"Unanswered","why":"{why}","message":"no stream at nats://10.0.0.1:4222","field":"path"}}'
    with pytest.raises(kind) as told:
        run(Examiner(60).ask(answer.encode()))
    assert why != "absent" or "10.0.0.1" not in str(told.value)


def test_a_process_that_says_nothing_is_ended_at_the_deadline(echoing: list[Any]) -> None:
    with pytest.raises(Unavailable, match="no answer within"):
        run(Examiner(0.5).ask(b"silent"))
    assert all(process.returncode is not None for process in echoing)


def test_an_empty_answer_is_told(echoing: list[Any]) -> None:
    with pytest.raises(Unavailable, match="ended"):
        run(Examiner(60).ask(b""))


def test_an_answer_that_is_too_large_is_refused_and_its_process_ended(
    echoing: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examiner, "MOST_BYTES", 10)
    with pytest.raises(InvalidField, match="by its path"):
        run(Examiner(60).ask(b"x" * 1_000))
    assert all(process.returncode is not None for process in echoing)


def test_who_leaves_takes_the_process_along_and_too_many_are_refused(echoing: list[Any]) -> None:
    async def body() -> None:
        asking = Examiner(600)
        waiting = [asyncio.create_task(asking.ask(b"silent")) for _ in range(AT_ONCE + WAITING)]
        while len(echoing) < AT_ONCE:  # noqa: ASYNC110  # the test waits for processes of its own
            await asyncio.sleep(0.01)
        with pytest.raises(Unavailable, match="as many as may be"):
            await asking.ask(b"silent")
        for question in waiting:
            question.cancel()
        await asyncio.wait(waiting)
        assert await asking.ask(b'{"type":"Answered","body":1}') == b"1"

    run(asyncio.wait_for(body(), 60))
    assert [process.returncode is not None for process in echoing] == [True] * (AT_ONCE + 1)
