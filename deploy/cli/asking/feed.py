"""``neuraxis feed``."""

import asyncio
import os
import signal
import sys
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from deploy.cli.asking.ask import ANSWER_S, warn_of_user_without_effect
from deploy.cli.command_types import command
from deploy.cli.connect import agent_per, input_limits, open_log, target_store
from deploy.cli.options import Number, Target, agent_and_user_options, examples, target_options, timeout_option
from deploy.cli.outcomes import INTERRUPTED, CheckFailed, WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.wrapped_lines import say, say_note
from deploy.operating.deadline import Deadline
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from deploy.feeding import Failure, LineFormat, Outcome, Summary, Tally

_REASON_TIMEOUT_S = 0.5
"""Seconds in which to find out, after the feed, why the broker confirmed nothing."""

_SHARED_AGENT_WARNING = (
    "several sessions went to the agent default, which remembers across all of them: where they are of people"
    ' who must not learn of each other, start the set with gateway.agent_per = "user" or "session", or name agents'
)


@command(
    epilog=examples(
        "neuraxis feed prompts.jsonl > outcomes.jsonl",
        "neuraxis feed conversations.jsonl --rate 50",
        "neuraxis feed prompts.jsonl --check --session-per-line",
        "tail -f inputs.txt | neuraxis feed - --format text --session support",
    )
)
@click.argument("file", metavar="FILE")
@target_options
@click.option("--format", "form", type=click.Choice(["auto", "jsonl", "text"]), default="auto", show_default=True)
@agent_and_user_options("of lines that name none")
@click.option("--session", default="", help="Session of lines that name none.  [default: a new one; checks: one each]")
@click.option("--session-per-line", is_flag=True, help="Give each line that names no session one of its own.")
@click.option("--rate", type=Number(0), default=0.0, metavar="N", help="Inputs a second at most; 0: no limit.")
@click.option("--concurrency", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Lines under way.")
@click.option("--check", is_flag=True, help="Have the guards judge them only: nobody answers, nothing is remembered.")
@timeout_option(ANSWER_S, "How long each exchange may take, and connecting before the first.")
@click.option(
    "--ignore", "ignored", multiple=True, metavar="FIELD", help="Pass over a field that is no input's, such as a label."
)
def feed(
    target: Target,
    file: str,
    form: str,
    agent: str | None,
    user: str,
    session: str,
    session_per_line: bool,
    rate: float,
    concurrency: int,
    check: bool,
    timeout: float,
    ignored: tuple[str, ...],
) -> None:
    """Send the inputs or conversations of FILE (`-`: stdin) through the pipeline; a JSON line an exchange.

    A line is {"text": ...} with optional id, session, agent, user, context, layers, documents and tool_results, or
    {"turns": [{"role", "text"}]}, whose user turns are sent in order, each after the one before has ended
    (docs/inputs.md). Other fields are refused. Anything but JSON is plain text, an input a line. Outcomes are
    printed as exchanges end. A bad line is named on stderr, and the others go on; exit status 1 tells of it, and of
    exchanges that FAILED. Ctrl-C prints the summary so far.
    """
    from actors.gateway import check_name
    from deploy.feeding import FIELDS, LineFormat

    if agent is not None:
        check_name("agent", agent)
    warn_of_user_without_effect(agent, user)
    if session:
        check_name("session", session)
    for field in ignored:
        if field in FIELDS:
            raise WrongUse(f"--ignore {field}: that is part of the input; take it out of FILE to leave it unread")

    options: dict[str, Any] = {
        "agent": agent or "",
        "user": user,
        "agent_per": agent_per(target),
        "session": session,
        # As in all commands: without a named session, each input is checked by itself.
        "session_per_line": session_per_line or (check and not session),
        "rate": rate,
        "concurrency": concurrency,
        "purpose": "check" if check else "answer",
        "answer_s": timeout,
        "ignored_fields": ignored,
    }
    stream = _open_file(file)
    summary, interrupted = run_command(_feed(target, stream, file, LineFormat(form), options))
    if not interrupted:
        stream.close()  # not after an interrupt: its reader thread may wait for a pipe, and close would wait for that
    say(summary_text(summary), err=True)
    if interrupted:
        raise click.exceptions.Exit(INTERRUPTED)
    if not summary.bad + summary.ended:
        raise CheckFailed(
            f"{file} holds no inputs: nothing was sent; put one on each line, as `neuraxis feed --help` says"
        )
    failed = summary.actions.get("FAILED", 0)
    failed_text = f"{counted(failed, 'exchange')} FAILED, their outcomes say on what" if failed else ""
    if summary.bad:
        raise CheckFailed(f"{_bad_text(summary)}: named above{failed_text and f'; {failed_text}'}")
    if failed:
        raise CheckFailed(failed_text)


def _bad_text(summary: "Summary") -> str:
    from actors.gateway import UnreadableEnd

    unread = summary.failures.get(UnreadableEnd.code, 0)
    text = f"{summary.bad - unread} of {summary.bad + summary.ended} inputs have no end"
    return f"{text}, and {unread} ended in a way that this release cannot read" if unread else text


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
    ended = f"{counted(summary.ended, 'exchange')} ended, {summary.bad} bad, in {summary.seconds:g} s"
    speed = f"{summary.rate:g} exchanges/s, latency p50 {summary.p50_ms:g} ms, p99 {summary.p99_ms:g} ms"
    return "\n".join([ended, *([speed] if summary.ended else []), *counts])


def _open_file(file: str) -> BinaryIO:
    # A file object of our own: the interpreter's stdin could not be closed while a thread reads it.
    try:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb") if file == "-" else open(file, "rb")
    except OSError as wrong:
        raise WrongUse(f"{file} cannot be read: {wrong.strerror}; name a file, or - for stdin") from wrong


async def _feed(
    target: Target, stream: BinaryIO, name: str, form: "LineFormat", options: dict[str, Any]
) -> tuple["Summary", bool]:
    """Feed until the end of the stream or an interrupt; return the counts, and whether it was interrupted."""
    from deploy.client import client_on
    from deploy.feeding import Feeder, Tally, lines_of
    from deploy.processes.broker.storage_watch import storing_fault

    tally, interrupted = Tally(), asyncio.Event()
    size = os.fstat(stream.fileno()).st_size or None
    async with AsyncExitStack() as open_things:
        async with Deadline(options["answer_s"], target.begun).enforced() as opening:
            log = await open_things.enter_async_context(open_log(target, deadline=opening))
            client = await open_things.enter_async_context(client_on(log, input_limits(target)))
        feeder = Feeder(client, lambda row: _report(row, tally), **options)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
        begun = time.perf_counter()
        # If rows are printed to a terminal, they show the progress.
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
        store = target_store(target)
        if tally.in_doubt and (reason := await storing_fault(log.connection, log.stream, store, _REASON_TIMEOUT_S)):
            say_note(reason)
    if feeder.shares_memory:
        say_note(_SHARED_AGENT_WARNING)
    say_note(feeder.user_without_agent)
    return tally.summary(seconds), interrupted.is_set()


def _report(row: "Outcome | Failure", tally: "Tally") -> None:
    from deploy.feeding import Outcome

    if isinstance(row, Outcome):
        tally.ended(row)
        print_json(row)
        return
    tally.failed(row.code)
    named = "".join(
        [f" (id {row.id})" if row.id is not None else "", f" (exchange {row.exchange})" if row.exchange else ""]
    )
    say(f"line {row.line}{named}: {row.code}: {row.detail}", err=True)
