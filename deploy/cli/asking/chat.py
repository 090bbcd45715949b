"""``neuraxis chat``."""

import sys
from functools import partial
from typing import NamedTuple

import click

from deploy.cli.asking.ask import ANSWER_S, agent_of, new_session, streamed_answer_for
from deploy.cli.command_types import command
from deploy.cli.connect import access_to, run_until
from deploy.cli.options import Target, agent_and_user_options, examples, json_option, target_options, timeout_option
from deploy.cli.outcomes import CheckFailed
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.operating.deadline import Deadline

_LONGEST_LINE = 4_000_000
"""Bytes of a line that are read at most: an input has a megabyte at most."""


@command(epilog=examples("neuraxis chat", "neuraxis chat --session travel", "neuraxis chat --json < questions.txt"))
@target_options
@agent_and_user_options("that the inputs are for")
@click.option("--session", default="", help="Session to talk in.  [default: a new one]")
@timeout_option(ANSWER_S, "How long an exchange may take, connecting included.")
@json_option
def chat(target: Target, agent: str | None, user: str, session: str, timeout: float, as_json: bool) -> None:
    """Talk, line by line, in one session; Ctrl-D ends it.

    Below each answer stand its mode and confidence, who wrote it, and, where there were any, the tie-break and the
    steps of an ACT loop. On a terminal a model's words appear as it speaks.

    Exit status of lines that are piped in: 1 when one was not sent, or its exchange FAILED.
    """
    from actors.gateway import InvalidInput, check_name
    from deploy.cli.asking.run_exchange import run_exchange, show

    # Each line is sent in an event loop and connection of its own: while a person types, no event loop would answer the
    # broker's pings. It also lets Ctrl-C and line editing work as in any shell.
    session_name = session or new_session("chat")
    agent_name = agent_of(target, agent, user, session_name)
    check_name("agent", agent_name)
    check_name("session", session_name)
    access_to(target)  # fail now if no set runs, before the person types anything
    at_terminal = sys.stdin.isatty()
    if at_terminal:
        import readline  # noqa: F401 (line editing and history for input())

        click.echo(f"session {session_name}; Ctrl-D ends", err=True)
    unsent = failed = 0
    while (line := _next_line(at_terminal)) is not None:
        if isinstance(line, _BadLine):
            click.echo(f"not sent: {line.why}", err=True)
            unsent += 1
            continue
        try:
            streamed = streamed_answer_for(as_json)
            # The time counts from now on, without the time that the person took to type.
            exchange = partial(run_exchange, target, line, agent=agent_name, session=session_name, streamed=streamed)
            found = run_until(Deadline(timeout), exchange)
        except InvalidInput as wrong:
            click.echo(f"not sent: {wrong}", err=True)
            unsent += 1
            continue
        show(found, as_json=as_json, streamed=streamed, answer_first=True)
        failed += found.action == "FAILED"
    if not at_terminal:  # at a terminal, the person has read it
        _check_all_ended_well(unsent, failed)


def _check_all_ended_well(unsent: int, failed: int) -> None:
    """Raise CheckFailed if a line was not sent, or its exchange FAILED."""
    complaints = [f"{counted(unsent, 'line')} {'was' if unsent == 1 else 'were'} not sent"] if unsent else []
    complaints += [f"{counted(failed, 'exchange')} FAILED"] if failed else []
    if complaints:
        raise CheckFailed(f"{', and '.join(complaints)}: named above")


class _BadLine(NamedTuple):
    """A line that cannot be sent, and why."""

    why: str


def _next_line(at_terminal: bool) -> str | _BadLine | None:
    """Return the next line without its line end, or why it cannot be sent; None at the end of the input."""
    if not at_terminal:
        line = piece = sys.stdin.buffer.readline(_LONGEST_LINE)
        while len(piece) == _LONGEST_LINE and not piece.endswith(b"\n"):  # the rest of the line is passed over
            piece = sys.stdin.buffer.readline(_LONGEST_LINE)
        if len(line) == _LONGEST_LINE:
            return _BadLine(f"the line has {_LONGEST_LINE:,} bytes or more: no input is so long")
        try:
            return line.decode().rstrip("\r\n") if line else None
        except UnicodeDecodeError as wrong:
            return _BadLine(f"byte {wrong.start + 1} of the line is not UTF-8: convert the text")
    try:
        return input("> ")
    except EOFError:
        click.echo(err=True)
        return None
