"""The example of a specialist: what it computes, what it refuses, and that the real delegate finds it."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.delegate.discovery import find_specialist
from deploy.config.settings import BrokerSettings
from deploy.examples.arithmetic import NotArithmetic, calculate
from deploy.examples.calculator import Context, answer_to, run
from deploy.processes.broker import EmbeddedBroker
from deploy.processes.broker.users import EFFECTORS, context_file
from deploy.processes.broker_access import BrokerChoice, access_of
from deploy.processes.running_set import DataFolder
from deploy.processes.supervising.supervisor import Supervisor
from events.jetstream import Connection
from tests.broker import USERS, Broker, close_for_good
from tests.deploy.waiting import DEADLINE_S
from tests.each import each


@each(
    ("expression", "result"),
    [("7 * 6", 42), ("7 × 6", 42), ("(1 + 2) * -3", -9), ("10 / 4", 2.5), ("10 / 5", 2), ("7 // 2", 3), ("7 % 4", 3),
     ("1,000 + 1", 1001), ("2 − 3", -1), (" .5 + .25 ", 0.75)],
)  # fmt: skip
def test_arithmetic_comes_to_what_it_is(expression: str, result: float) -> None:
    found = calculate(expression)
    assert found == result
    assert type(found) is type(result)


@each(
    "expression",
    ["", "six", "1 +", "1 / 0", "9 ** 9", "9^9", "x + 1", "__import__('os')", "(1).real", "[1][0]", "1 if 1 else 2",
     "True", "'a' * 9", "1j", "lambda: 1", "1 == 1", "1 and 2", "~1", "1 << 9", "(" * 150 + ")" * 150, "1" * 400,
     "1e308 * 10", "*".join(["99999999"] * 60), "1\n2"],
)  # fmt: skip
def test_what_is_no_arithmetic_or_too_much_of_it_is_refused(expression: str) -> None:
    with pytest.raises(NotArithmetic):
        calculate(expression)


whole = st.integers(-(10**6), 10**6)
expressions = st.recursive(
    whole.map(lambda number: (f"({number})", Fraction(number))),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
        lambda parts: (
            f"({parts[0][0]} {parts[1]} {parts[2][0]})",
            {"+": Fraction.__add__, "-": Fraction.__sub__, "*": Fraction.__mul__}[parts[1]](parts[0][1], parts[2][1]),
        )
    ),
    max_leaves=6,
).filter(lambda pair: len(pair[0]) <= 200)


@given(expressions)
def test_sums_differences_and_products_of_whole_numbers_are_exact(pair: tuple[str, Fraction]) -> None:
    assert calculate(pair[0]) == pair[1]


@given(st.text(max_size=60) | st.text("0123456789+-*/%(). ", max_size=60))
def test_no_question_does_more_than_be_answered_or_refused(query: str) -> None:
    with contextlib.suppress(NotArithmetic):
        assert " = " in answer_to(query)


@each(
    ("query", "answer"),
    [("What is 7 times 6, that is 7 * 6?", "7 * 6 = 42"), ("Please compute (2+3)*4.", "(2+3)*4 = 20"),
     ("-3 + 5", "-3 + 5 = 2")],
)  # fmt: skip
def test_the_arithmetic_in_a_question_is_found(query: str, answer: str) -> None:
    assert answer_to(query) == answer


def test_with_the_login_for_specialists_it_serves_the_effectors_of_an_embedded_broker(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, BrokerSettings())
    contexts = broker.layout.contexts

    async def ask() -> bytes:
        command = [sys.executable, "-m", "deploy.examples.calculator", "--context"]
        command.append(str(context_file(contexts, "specialist")))
        calculator = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
        assert calculator.stderr is not None
        try:
            async with asyncio.timeout(DEADLINE_S):
                assert b"calculator serves on specialist.calculator" in await calculator.stderr.readline()
                reach = BrokerChoice(context=str(context_file(contexts, EFFECTORS)))
                connection = await Connection.open(access_of(reach, DataFolder(tmp_path)))
                subject = await find_specialist(connection, "calculator", DEADLINE_S)
                assert subject == "specialist.calculator"
                answer = await connection.request(subject, b'{"query": "7 * 6", "request": "r", "timeout_ms": 1}')
                refused = await connection.request(subject, b"?")
                assert refused.headers["Nats-Service-Error-Code"] == "400"
                await connection.close()
                calculator.send_signal(signal.SIGTERM)
                assert await calculator.wait() == 0
        finally:
            if calculator.returncode is None:
                calculator.kill()
                await calculator.wait()
        return answer.data

    async def run() -> None:
        supervisor = Supervisor([[broker]])
        stop, ready = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(supervisor.run(stop, ready.set))
            try:
                async with asyncio.timeout(DEADLINE_S):
                    await ready.wait()
                assert json.loads(await ask()) == {"answer": "7 * 6 = 42"}
            finally:
                stop.set()

    asyncio.run(run())


def test_it_ends_where_the_broker_closes_its_connection_for_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main(broker: Broker) -> None:
        serving = asyncio.create_task(run(Context(url=broker.url, user="a", password="secret")))
        async with asyncio.timeout(DEADLINE_S):
            while "serves on" not in capsys.readouterr().err:  # noqa: ASYNC110 - what it prints tells nobody
                await asyncio.sleep(0.01)
            await close_for_good(broker, serving.done)
            await serving

    with (
        Broker(tmp_path, more=USERS.format("secret")) as broker,
        pytest.raises(click.ClickException, match="for good: nats: authorization failed"),
    ):
        asyncio.run(main(broker))
