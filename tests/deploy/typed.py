"""Command lines as people type them: what a shell leaves of them, and whether the command line takes it."""

import shlex
import shutil
from pathlib import Path

import click

from deploy.cli import main

_SHELL = "|&;<>()"


def make_read() -> None:
    """Make what examples read in the current folder: such arguments are looked at when they are parsed."""
    for name in ("prompts.jsonl", "turns.jsonl", "ledger.db", "backup/ledger.db"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    for name in ("weights-of-march", "models"):
        shutil.copytree(Path(__file__).parents[2] / "actors" / "intuition" / "scorer", name)


def arguments_of(line: str) -> list[list[str]]:
    """Return the arguments of each ``neuraxis`` in a line of shell, without what the shell makes of the rest."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_SHELL)
    lexer.whitespace_split = True
    found: list[list[str]] = []
    current: list[str] | None = None
    for word in lexer:
        if set(word) <= set(_SHELL):
            current = None
        elif current is not None:
            current.append(word)
        elif word.rpartition("/")[2] == "neuraxis":
            current = []
            found.append(current)
    return found


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that words begin with, and the rest; raises click.UsageError where there is none."""
    command: click.Command = main
    rest = list(words)
    while isinstance(command, click.Group) and rest:
        name = rest.pop(0)
        found = command.get_command(click.Context(command), name)
        if found is None:
            raise click.UsageError(f"no command {name}")
        command = found
    return command, rest


def parse(words: list[str]) -> None:
    """Have the command line read arguments, and run nothing; raises click.UsageError for what it does not take."""
    command, rest = command_of(words)
    command.make_context(command.name, rest)
