"""Slow questions, one after another: none is answered after its asker gave up, and no crowd holds up the next."""

import asyncio
from typing import Any

from nats.aio.msg import Msg
from nats.micro.request import Request

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


def test_one_answer_does_for_all_who_wait_with_the_same_question() -> None:
    """As ten dashboards do: each would otherwise wait until the others' overviews were computed one by one."""

    class Client:
        def __init__(self) -> None:
            self.told: dict[str, bytes] = {}
            self.told_all = asyncio.Event()

        async def publish(self, subject: str, data: bytes, headers: dict[str, str] | None = None) -> None:
            self.told[subject] = data or (headers or {})["Nats-Service-Error-Code"].encode()
            if len(self.told) == 6:
                self.told_all.set()

    async def body() -> None:
        client, go, begun = Client(), asyncio.Event(), asyncio.Event()
        answered: list[bytes] = []

        def asked(name: str, question: bytes) -> Request:
            return Request(Msg(_client=client, subject="q", reply=name, data=question))  # type: ignore[arg-type]

        async def answer(request: Request) -> None:
            answered.append(request.data)
            begun.set()
            await go.wait()
            if request.data == b"bug":
                raise KeyError("a bug")
            await request.respond(request.data * 2)

        queue = QuestionQueue(answer, key_of=lambda request: request.data)
        async with queue.serving():
            await queue(asked("first", b"now"))
            await begun.wait()
            for name, question in (("a", b"now"), ("b", b"then"), ("c", b"now"), ("d", b"bug"), ("e", b"bug")):
                await queue(asked(name, question))
            go.set()
            async with asyncio.timeout(DEADLINE_S):
                await client.told_all.wait()
        assert answered == [b"now", b"now", b"then", b"bug"], "who came while the first was answered gets a new answer"
        assert client.told == {
            "first": b"nownow", "a": b"nownow", "c": b"nownow", "b": b"thenthen", "d": b"500", "e": b"500",
        }  # fmt: skip

    asyncio.run(body())
