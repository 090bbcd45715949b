"""Commands keep the time they were given, whatever the broker does, and say what really happened in it."""

import asyncio
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from events.jetstream import Access, Connection, JetStreamLog, KeyValueMembership
from tests.broker import Broker
from tests.e2e.live import command, environment
from tests.forked import forked

GIVEN_S = 3.0
FED_S = 8.0
HANGS_S = 60.0
"""What waits without a deadline, waits for longer: the broker stands still for as long as a test does."""

SHORT = (
    ("ask", "Hello"),
    ("forget", "--session", "s", "--why", "x"),
    ("patterns", "import", "rules.yaml"),
)
LONG = (
    ("feed", "lines.txt"),
    ("breaker", "reset", "s", "--by", "ann", "--why", "x"),
    ("breaker", "recover", "s", "--by", "ann", "--why", "x"),
    ("guardrails", "override", "l", "--fatigue", "--by", "ann", "--why", "x"),
    ("forget", "--session", "s", "--why", "x", "--yes"),
    ("patterns", "withdraw", "rules", "--why", "x"),
    ("precedents", "import", "cases.yaml"),
    ("precedents", "withdraw", "p", "--why", "x"),
    ("allowances", "add", "button", "--phrase", "ignore previous", "--why", "x"),
    ("failed", "redrive", "--yes"),
    ("rerun", "last"),
)
ORDERS = (*SHORT, *(pytest.param(order, marks=pytest.mark.faults) for order in LONG))
"""Every command that sends something; the first few stand for all in the short form."""


@pytest.fixture
def log(broker: Broker, tmp_path: Path) -> Broker:
    """A broker with a log that nobody works on, and the files that orders name."""

    async def made() -> None:
        await (await JetStreamLog.connect(broker.url)).close()

    asyncio.run(made())
    (tmp_path / "lines.txt").write_text("Hello\n")
    (tmp_path / "rules.yaml").write_text(
        "- {name: vault, action: BLOCK, confidence: 0.9, signatures: [open the vault]}\n"
    )
    (tmp_path / "cases.yaml").write_text("- {precedent: p, description: somebody asks}\n")
    return broker


def ended(folder: Path, broker: Broker, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end; fails when it hangs."""
    return forked((*arguments, "--nats", broker.url), folder=folder, environment=environment(), timeout=HANGS_S)


def in_time(folder: Path, broker: Broker, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command with GIVEN_S seconds; fails when it hangs."""
    return ended(folder, broker, *arguments, "--timeout", f"{GIVEN_S:g}")


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(order[:2]))
def test_a_stuck_broker_costs_a_command_no_more_than_its_time(
    order: Sequence[str], log: Broker, tmp_path: Path
) -> None:
    log.pause()
    try:
        done = in_time(tmp_path, log, *order)
    finally:
        log.resume()
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert re.search(r"(within|after) \d+(\.\d+)? s", line), line
    assert not re.search(r"\$JS|_INBOX|\blog\.\d", line), line
    assert "nothing was sent" in line or "no broker answers" in line, line
    assert "TimeoutError" not in line
    assert done.stdout == ""


@pytest.mark.parametrize("order", ORDERS[1:], ids=lambda order: "-".join(order[:2]))
def test_a_broker_that_is_not_there_is_named_in_one_line(order: Sequence[str], log: Broker, tmp_path: Path) -> None:
    log.kill()
    done = in_time(tmp_path, log, *order)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 1), done.stderr
    assert log.url in done.stderr


@pytest.mark.parametrize(
    ("order", "told", "find"),
    [
        (
            ("ask", "Hello"),
            r"^neuraxis: exchange (\w+) is in the log \(sequence 1\), but after \d+\.\d s it has no end",
            "why",
        ),
        (LONG[3], r"is in the log \(sequence 1\), but after \d+\.\d s guardrails have not answered", "doctor"),
    ],
)
def test_what_nobody_answers_is_said_to_be_stored(
    order: Sequence[str], told: str, find: str, log: Broker, tmp_path: Path
) -> None:
    done = in_time(tmp_path, log, *order)
    assert done.returncode == 3
    assert re.search(told, done.stderr), done.stderr
    assert f"neuraxis {find}" in done.stderr


@pytest.mark.parametrize(
    ("order", "status", "actor"),
    [
        (LONG[3], 3, "guardrails"),
        pytest.param(("forget", "--fact", "name", "--why", "x", "--yes"), 1, "memory", marks=pytest.mark.faults),
        pytest.param(("ask", "Hello"), 3, "responder", marks=pytest.mark.faults),
    ],
)
def test_who_waits_for_a_dead_actor_is_told_long_before_the_time_is_up(
    order: Sequence[str], status: int, actor: str, log: Broker, tmp_path: Path
) -> None:
    async def make_bucket() -> None:
        connection = await Connection.open(Access(servers=log.url))
        await KeyValueMembership.over(connection)
        await connection.close()

    asyncio.run(make_bucket())  # as the first worker does, or `deploy streams`
    begun = time.monotonic()
    done = ended(tmp_path, log, *order, "--timeout", f"{HANGS_S:g}")
    assert time.monotonic() - begun < HANGS_S / 2
    assert (done.returncode, len(done.stderr.splitlines())) == (status, 1), done.stderr
    assert f"nobody serves {actor} (no owner)" in done.stderr
    assert "is in the log" in done.stderr
    assert "when a worker does" in done.stderr


@pytest.fixture(scope="module")
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have a feed compiled before one has to connect in the time given."""
    subprocess.run(
        command("feed", "-", "--format", "text", "--timeout", "0.1", "--nats", "nats://127.0.0.1:1"),
        stdin=subprocess.DEVNULL, capture_output=True, cwd=tmp_path_factory.mktemp("loading"), env=environment(),
        timeout=HANGS_S, check=False,
    )  # fmt: skip


class Feeding:
    """A feed that has connected, and waits for the lines of its stdin."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self.process = subprocess.Popen(
            # Its time counts from its start: what loading takes on a busy machine comes on top.
            command("feed", "-", "--format", "text", "--timeout", f"{FED_S:g}", "--nats", broker.url),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=environment(),
        )  # fmt: skip
        asyncio.run(_reads(broker))

    def end(self, line: bytes) -> str:
        """Send a last line; return what the feed said on stderr."""
        _, said = self.process.communicate(line, timeout=HANGS_S)
        return said.decode()


async def _reads(broker: Broker) -> None:
    """Wait until somebody reads the log: has a consumer on it, and has asked that for messages."""
    log = await JetStreamLog.connect(broker.url, create=False)
    try:
        async with asyncio.timeout(30):
            while True:
                consumers = (await log.connection.api("CONSUMER.LIST.NEURAXIS"))["consumers"] or []
                if any(consumer["num_waiting"] > 1 for consumer in consumers):
                    return
                await asyncio.sleep(0.02)
    finally:
        await log.close()


@pytest.mark.usefixtures("_compiled")
def test_an_input_that_meets_a_stuck_broker_is_said_to_be_in_doubt(log: Broker, tmp_path: Path) -> None:
    feeding = Feeding(tmp_path, log)
    log.pause()
    try:
        said = feeding.end(b"Hello\n")
    finally:
        log.resume()
    found = re.search(
        r"\(exchange (\w+)\): unknown_outcome: .* within \d+\.\d s: it may be stored, .*why (\w+)` tells", said
    )
    assert found, said
    assert found[1] == found[2]
    assert re.search(r"^neuraxis: the broker has not answered", said, re.MULTILINE), said


@pytest.mark.usefixtures("_compiled")
def test_an_input_for_a_broker_that_has_gone_is_said_not_to_be_stored(log: Broker, tmp_path: Path) -> None:
    feeding = Feeding(tmp_path, log)
    log.kill()
    said = feeding.end(b"Hello\n")
    assert re.search(r"unavailable: not stored within \d+\.\d s: the broker at \S+ is not connected", said), said
    assert next(line for line in said.splitlines() if line.startswith("neuraxis: ")) == (
        f"neuraxis: the broker at {log.url} is gone: waiting for it to come back"
    )
    assert said.count("is gone") == 1
    assert "{" not in said


@pytest.mark.parametrize("reading", [("state", "router", "s"), pytest.param(("alerts",), marks=pytest.mark.faults)])
def test_what_reads_gives_a_stuck_broker_up_soon(reading: Sequence[str], log: Broker, tmp_path: Path) -> None:
    log.pause()
    try:
        done = ended(tmp_path, log, *reading)
    finally:
        log.resume()
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 1), done.stderr
    assert not re.search(r"\$JS|_INBOX", done.stderr), done.stderr


def test_who_asks_is_told_once_that_the_broker_went_and_once_that_it_is_back(log: Broker, tmp_path: Path) -> None:
    asking = subprocess.Popen(
        command("ask", "Hello", "--json", "--timeout", "8", "--nats", log.url),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment(),
    )  # fmt: skip
    asyncio.run(_reads(log))
    log.kill()
    time.sleep(1.5)  # in which a client tries fifteen times
    log.start()
    out, said = asking.communicate(timeout=60)
    assert (asking.returncode, out) == (3, b"")
    gone, back, end = said.decode().splitlines()
    assert gone == f"neuraxis: the broker at {log.url} is gone: waiting for it to come back"
    assert back == "neuraxis: the broker is back"
    assert "it has no end" in end
