"""Who inputs are for is an agent, in all that a user reads; events keep the name that they are recorded with."""

from collections.abc import Iterator

import click

from deploy.cli import main
from schemas.catalogue import CATALOGUE
from tests.each import each


def helps(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    context = click.Context(group, info_name=" ".join(("neuraxis", *path)))
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from helps(command, (*path, name))
        yield " ".join((*path, name)), command.get_help(click.Context(command, info_name=name))


@each(("command", "text"), list(helps()), named=[command for command, _ in helps()])
def test_no_help_calls_an_agent_a_citizen(command: str, text: str) -> None:
    assert "citizen" not in text.lower(), command


def test_no_event_is_described_by_another_word() -> None:
    assert not [topic for topic, entry in CATALOGUE.items() if "citizen" in entry.meaning.lower()]
