"""Slow questions, one after another: none is answered after its asker gave up, and no crowd holds up the next."""

import asyncio
from typing import Any

from deploy.processes.question_queue import QuestionQueue

DEADLINE_S = 30.0


class Asked:
    """A request of a NATS micro service, as far as a handler uses it."""

    subject = "forged_id.query.ledger.exchanges"

    def __init__(self, name: str) -> None:
        self.name = name
        self.told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def respond_error(self, code: str, description: str) -> None:
        self.told.set_result(f"{code}: {description}")


async def answers(queue: QuestionQueue, *requests: Any) -> list[str]:
    for each in requests:
        await queue(each)
    async with asyncio.timeout(DEADLINE_S):
        return [await each.told for each in requests]


def test_questions_are_answered_in_turn_and_what_waited_too_long_is_refused() -> None:
    async def body() -> None:
        begun: list[str] = []

        async def answer(request: Any) -> None:
            begun.append(request.name)
            if request.name == "slow":
                await asyncio.sleep(0.3)
            request.told.set_result("answered")

        queue = QuestionQueue(answer, patience_s=0.1)
        async with queue.serving():
            first, second = await answers(queue, Asked("slow"), Asked("late"))
            assert (first, second[:8]) == ("answered", "503: it ")
            assert await answers(queue, Asked("next")) == ["answered"]
        assert begun == ["slow", "next"], "nobody waited for the other any more"

    asyncio.run(body())


def test_more_questions_than_may_wait_are_refused_at_once() -> None:
    async def body() -> None:
        go = asyncio.Event()

        async def answer(request: Any) -> None:
            await go.wait()
            request.told.set_result("answered")

        queue = QuestionQueue(answer, most_waiting=2)
        async with queue.serving():
            await queue(first := Asked("a"))
            await asyncio.sleep(0)
            waiting = [Asked("b"), Asked("c")]
            for each in waiting:
                await queue(each)
            await queue(refused := Asked("d"))
            assert refused.told.result() == "503: 2 such questions wait, as many as may: ask later"
            go.set()
            async with asyncio.timeout(DEADLINE_S):
                assert [await each.told for each in (first, *waiting)] == ["answered"] * 3

    asyncio.run(body())


def test_a_bug_in_one_answer_ends_neither_the_queue_nor_a_wait() -> None:
    async def body() -> None:
        async def answer(request: Any) -> None:
            if request.name == "bad":
                raise KeyError("a bug")
            request.told.set_result("answered")

        queue = QuestionQueue(answer)
        async with queue.serving():
            assert await answers(queue, Asked("bad"), Asked("good")) == ["500: KeyError", "answered"]

    asyncio.run(body())


def test_a_quick_question_does_not_wait_behind_slow_ones() -> None:
    async def body() -> None:
        go = asyncio.Event()

        async def answer(request: Any) -> None:
            if request.name != "quick":
                await go.wait()
            request.told.set_result("answered")

        queue = QuestionQueue(answer, lambda request: request.name == "quick")  # type: ignore[attr-defined]
        async with queue.serving():
            slow = [Asked("a"), Asked("b")]
            for each in slow:
                await queue(each)  # type: ignore[arg-type]
            assert await answers(queue, Asked("quick")) == ["answered"]
            assert not any(each.told.done() for each in slow)
            go.set()
            async with asyncio.timeout(DEADLINE_S):
                assert [await each.told for each in slow] == ["answered"] * 2

    asyncio.run(body())
