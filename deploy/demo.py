"""``python -m deploy.demo``: the whole set in a folder of its own, fed with a few conversations and then examined.

It runs what a person would run, ``neuraxis up`` in a process and the other commands in this one, and ends with
status 0 only if each of them did what it should. The set ends with it; with ``--keep``, at Ctrl-C.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import MutableMapping, Sequence
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import click

from actors.gateway.http.dashboard import PAGE
from deploy.cli import main as neuraxis
from deploy.cli.asking.feed import summary_text
from deploy.cli.failures import explain
from deploy.cli.output import table
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.client import connect
from deploy.config.settings import GatewaySettings
from deploy.feeding import Failure, Feeder, LineFormat, Outcome, Tally, lines_of
from deploy.processes.event_loop import run_command
from deploy.processes.running_set import DataFolder
from events.loggers import structlog
from neuraxis_server import write_every_character

CONVERSATIONS = "demo_conversations.jsonl"
EXPLAINED_ID = "jailbreak"
"""Id of the line whose exchange is explained at the end, besides the last exchange of the feed."""

CONCURRENCY = 4
"""Lines that are sent at the same time: few, so that the latencies are those of a quiet system."""

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
"""Seconds in which the set must be ready, and must have ended after SIGTERM."""

_LEADING_OUTSIDE = (
    "NEURAXIS_BROKER__URL",
    "NEURAXIS_BROKER__CONTEXT",
    "NEURAXIS_WEBHOOK__",
    "NEURAXIS_TELEMETRY__",
    "NEURAXIS_GATEWAY__UPSTREAM__",
)
"""Beginnings of the variables that set what a set speaks to besides its own processes."""

_MAX_ANSWER_CHARACTERS = 70
_MIN_WIDTH_FOR_ANSWERS = 150
"""Width of a terminal, in columns, from which the table shows the answers."""

_LOG_LINES_SHOWN = 20


class DemoFailed(Exception):
    """A step did not do what it should; the message says which and why."""

    code = "demo_failed"


@click.command()
@click.option("--keep", is_flag=True, help="Let the set run on at the end, for its dashboard, until Ctrl-C.")
def main(keep: bool) -> None:
    """Run the demonstration; ends the process with 0, or with 1 after saying what failed."""
    # Only errors (40): the set's warnings, such as reconnections, are in its own log, which is shown if it fails.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    _keep_to_itself(os.environ)
    write_every_character()
    # SIGTERM reaches this process alone. An exit by an exception runs the `finally` that stops the set.
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="neuraxis-demo-") as folder:
        log = Path(folder, "up.log")
        try:
            _run(Path(folder), log, begun, keep=keep)
        except Exception as error:
            click.echo(f"\ndemo failed: {explain(error)[0]}", err=True)
            if log.exists():
                latest = log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
                click.echo("\n".join(["the last lines of the set's log:", *latest]), err=True)
            sys.exit(1)
    if not keep:
        click.echo(f"\nDone in {time.monotonic() - begun:.1f} s. Next: `make up`, and in another terminal:")
        click.echo('  .venv/bin/neuraxis ask "What is the capital of Peru?"')
        click.echo(
            f"In a browser: http://{GatewaySettings().http}{PAGE} (`make demo KEEP=1` shows these conversations)"
        )


def _keep_to_itself(environment: MutableMapping[str, str]) -> None:
    """Remove the variables that would have the set use another broker's log, or send its alerts and traces out."""
    for name in [*environment]:
        if name == "NATS_URL" or name.upper().startswith(_LEADING_OUTSIDE):
            del environment[name]


def _exit_on_sigterm(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)


def _run(folder: Path, log: Path, begun: float, *, keep: bool) -> None:
    data, ready = folder / "data", folder / "ready"
    _configuration_of(data).write_text("")
    step("neuraxis up: an embedded broker, the actors, and the ledger")
    with log.open("wb") as output:
        running = _start(data, ready, output)
    try:
        _wait_until_ready(running, ready)
        click.echo(f"ready (process {running.pid})")
        step(f"neuraxis feed {CONVERSATIONS}: each input's decision")
        outcomes = run_command(_feed(data))
        explained = next(outcome.exchange for outcome in outcomes if outcome.id == EXPLAINED_ID)
        command("why", explained, data=data)
        command("why", outcomes[-1].exchange, data=data)
        command("replay", "--verify", data=data)
        command("log", "verify", data=data)
        if keep:
            _keep_running(running, DataFolder(data), begun)
    finally:
        status = _stop(running)
    step("stop")
    if status != 0:
        raise DemoFailed(f"the set ended with exit status {status} instead of 0")
    click.echo("every process ended in good order")


def _keep_running(running: "subprocess.Popen[bytes]", data: DataFolder, begun: float) -> None:
    """Show where the dashboard is, and wait until a person has seen enough."""
    step("the dashboard")
    click.echo(f"Done in {time.monotonic() - begun:.1f} s. Ctrl-C stops the set. Open in a browser:")
    click.echo(f"  {data.read().http}{PAGE}")
    with contextlib.suppress(KeyboardInterrupt):
        running.wait()


def step(what: str) -> None:
    """Print the heading of the next step."""
    click.echo(click.style(f"\n== {what}", bold=True))


def command(*arguments: str, data: Path) -> None:
    """Run a `neuraxis` command in this process; raises what the command raises."""
    step(f"neuraxis {' '.join(arguments)}")
    neuraxis.main([*arguments, *_flags(data)], prog_name="neuraxis", standalone_mode=False)


def _configuration_of(data: Path) -> Path:
    """Return the demonstration's own file: a ``neuraxis.toml`` of the working folder may name a broker in use."""
    return data.with_name("neuraxis.toml")


def _flags(data: Path) -> tuple[str, ...]:
    return "--data", str(data), "--config", str(_configuration_of(data))


# Without a model, so that the demo shows the same everywhere.
_UP_COMMAND = (sys.executable, "-P", "-m", "neuraxis_server", "up", "--llm", "composer")


def _start(data: Path, ready: Path, output: BinaryIO) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*_UP_COMMAND, *_flags(data), "--ready-file", str(ready)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,  # Ctrl-C reaches this process alone, which then stops the set in order
    )


def _wait_until_ready(running: "subprocess.Popen[bytes]", ready: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not ready.exists():
        if running.poll() is not None:
            raise DemoFailed(f"the set ended before it was ready, with exit status {running.returncode}")
        if time.monotonic() > deadline:
            raise DemoFailed(f"the set was not ready within {START_TIMEOUT_S:g} s")
        time.sleep(0.02)


def _stop(running: "subprocess.Popen[bytes]") -> int:
    if running.poll() is None:
        running.send_signal(signal.SIGTERM)
    try:
        return running.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        running.kill()
        return running.wait()


async def _feed(data: Path) -> Sequence[Outcome]:
    """Feed the bundled lines, print a table of their decisions, and return them in the lines' order."""
    lines = files("deploy").joinpath(CONVERSATIONS).read_bytes()
    outcomes: list[Outcome] = []
    failures: list[Failure] = []

    def report(row: Outcome | Failure) -> None:
        if isinstance(row, Outcome):
            outcomes.append(row)
        else:
            failures.append(row)

    begun = time.perf_counter()
    async with connect(data) as client:
        feeder = Feeder(client, report, session_per_line=True, concurrency=CONCURRENCY)
        await feeder.feed(lines_of(BytesIO(lines)), LineFormat.JSONL)
    seconds = time.perf_counter() - begun
    order = {name: index for index, name in enumerate(_ids(lines))}
    outcomes.sort(key=lambda outcome: (order[outcome.id], outcome.turn))
    tally = Tally()
    for outcome in outcomes:
        tally.ended(outcome)
    table((_row(outcome) for outcome in outcomes), _columns())
    click.echo(summary_text(tally.summary(seconds)))
    if failures:
        raise DemoFailed(f"line {failures[0].line} had no end: {failures[0].detail}")
    if failed := [outcome.exchange for outcome in outcomes if outcome.action == "FAILED"]:
        raise DemoFailed(f"{counted(len(failed), 'exchange')} ended as FAILED, the first is {failed[0]}")
    return outcomes


def _ids(lines: bytes) -> list[object]:
    from deploy.feeding import LineInputs, parse

    inputs = (parse(number, line, LineFormat.JSONL) for number, line in enumerate(lines.splitlines(), 1))
    return [each.id for each in inputs if isinstance(each, LineInputs)]


def _columns() -> tuple[str, ...]:
    """Return what the table shows: the answers only where there is room for them."""
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < _MIN_WIDTH_FOR_ANSWERS
    return ("input", "stage", "action", "reason", "mode", "ms", *(() if narrow else ("answer",)))


def _row(outcome: Outcome) -> dict[str, object]:
    answer = outcome.response
    return {
        "input": f"{outcome.id} {outcome.turn}" if outcome.turn else outcome.id,
        "stage": outcome.stage,
        "action": outcome.action,
        "reason": outcome.reason,
        "mode": outcome.mode,
        "ms": round(outcome.latency_ms, 1),
        "answer": answer if len(answer) <= _MAX_ANSWER_CHARACTERS else answer[: _MAX_ANSWER_CHARACTERS - 1] + "…",
    }


if __name__ == "__main__":
    main()
