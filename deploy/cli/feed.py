"""``neuraxis feed``."""

import asyncio
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from deploy.cli.ask import ANSWER_S
from deploy.cli.options import Target, agent_option, examples, target_options

if TYPE_CHECKING:
    from deploy.feeding import Failure, LineFormat, Outcome, Summary, Tally


@click.command(
    epilog=examples(
        "neuraxis feed prompts.jsonl > outcomes.jsonl",
        "neuraxis feed conversations.jsonl --rate 50",
        "tail -f inputs.txt | neuraxis feed - --format text --session support",
    )
)
@click.argument("file", metavar="FILE")
@target_options
@click.option("--format", "form", type=click.Choice(["auto", "jsonl", "text"]), default="auto", show_default=True)
@agent_option("of lines that name none")
@click.option("--session", default="", help="Session of lines that name none.  [default: a new one]")
@click.option("--session-per-line", is_flag=True, help="Give each line that names no session one of its own.")
@click.option(
    "--rate", type=click.FloatRange(0), default=0.0, metavar="N", help="Inputs a second at most; 0: no limit."
)
@click.option("--concurrency", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Lines under way.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=ANSWER_S,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for each end.",
)
def feed(
    target: Target,
    file: str,
    form: str,
    agent: str,
    session: str,
    session_per_line: bool,
    rate: float,
    concurrency: int,
    timeout: float,
) -> None:
    """Send the inputs or conversations of FILE (`-`: stdin) through the pipeline; a JSON line an exchange.

    A line is {"text": ...} with optional id, session, agent, context and layers, or {"turns": [{"role", "text"}]},
    whose user turns are sent in order, each after the one before has ended; other fields are ignored. Anything but
    JSON is plain text, an input a line. Outcomes are printed as exchanges end. A bad line is named on stderr, and
    the others go on; exit status 1 tells of it. Ctrl-C prints the summary so far.
    """
    from actors.gateway import check_name
    from deploy.cli.failures import INTERRUPTED, CheckFailed
    from deploy.feeding import LineFormat

    check_name("agent", agent)
    if session:
        check_name("session", session)

    options: dict[str, Any] = {
        "agent": agent,
        "session": session,
        "session_per_line": session_per_line,
        "rate": rate,
        "concurrency": concurrency,
        "answer_s": timeout,
        "limits": target.config().gateway.limits,
    }
    stream = _open(file)
    summary, interrupted = asyncio.run(_feed(target, stream, file, LineFormat(form), options))
    if not interrupted:
        stream.close()  # interrupted, its reader may wait for a pipe, and closing would wait for the reader
    click.echo(summary_text(summary), err=True)
    if interrupted:
        raise click.exceptions.Exit(INTERRUPTED)
    if summary.bad:
        raise CheckFailed(f"{summary.bad} of {summary.bad + summary.ended} inputs have no end: named above")


def summary_text(summary: "Summary") -> str:
    """Return a feed's summary for people."""
    counts = [
        f"{name} {', '.join(f'{key} {count}' for key, count in found.items())}"
        for name, found in (
            ("stages:", summary.stages),
            ("actions:", summary.actions),
            ("modes:", summary.modes),
            ("bad:", summary.failures),
        )
        if found
    ]
    speed = f"{summary.rate:g} exchanges/s, latency p50 {summary.p50_ms:g} ms, p99 {summary.p99_ms:g} ms"
    return "\n".join(
        [f"{summary.ended} exchanges ended, {summary.bad} bad, in {summary.seconds:g} s; {speed}", *counts]
    )


def _open(file: str) -> BinaryIO:
    from deploy.cli.failures import WrongUse

    # Of our own: the interpreter's stdin could not be closed while a thread waits for it.
    try:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb") if file == "-" else open(file, "rb")
    except OSError as wrong:
        raise WrongUse(f"{file} cannot be read: {wrong.strerror}; name a file, or - for stdin") from wrong


async def _feed(
    target: Target, stream: BinaryIO, name: str, form: "LineFormat", options: dict[str, Any]
) -> tuple["Summary", bool]:
    """Feed until the end of the stream or an interrupt; return the counts, and whether it was interrupted."""
    from actors.gateway import Edge
    from deploy.cli.connect import connected
    from deploy.feeding import Feeder, Tally, lines_of
    from deploy.rendering.terminal import progress

    tally, interrupted = Tally(), asyncio.Event()
    size = os.fstat(stream.fileno()).st_size or None
    async with connected(target) as log, Edge.open(log) as edge:
        feeder = Feeder(edge, log.partitions, lambda row: _report(row, tally), **options)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
        begun = time.perf_counter()
        # Rows on a terminal are progress enough.
        with progress("feeding", size, wanted=not sys.stdout.isatty()) as advance:
            feeding = asyncio.create_task(feeder.feed(lines_of(stream), form, name, advance))
            stopping = asyncio.create_task(interrupted.wait())
            await asyncio.wait((feeding, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            feeding.cancel()
            await asyncio.wait((feeding,))
        seconds = time.perf_counter() - begun
        if not feeding.cancelled():
            feeding.result()
    return tally.summary(seconds), interrupted.is_set()


def _report(row: "Outcome | Failure", tally: "Tally") -> None:
    import msgspec

    from deploy.feeding import Outcome

    if isinstance(row, Outcome):
        tally.ended(row)
        click.echo(msgspec.json.encode(row).decode())
        return
    tally.failed(row.code)
    named = "".join(
        [f" (id {row.id})" if row.id is not None else "", f" (exchange {row.exchange})" if row.exchange else ""]
    )
    click.echo(f"line {row.line}{named}: {row.code}: {row.detail}", err=True)
