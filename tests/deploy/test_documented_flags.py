"""Every command and flag that the documentation shows exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from deploy.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shown(page: Path) -> Iterator[str]:
    """Yield what follows ``neuraxis`` on a page, up to the end of the code or a comment."""
    for line in page.read_text().splitlines():
        for found in re.finditer(r"neuraxis ([a-z][a-z-]*(?: [^`|#]*)?)", line):
            yield found[1]


def command_of(words: list[str]) -> click.Command:
    """Return the command that words begin with; fails where there is none."""
    context = click.Context(main)
    assert words[0] in main.list_commands(context), f"there is no command {words[0]}"
    command = main.get_command(context, words[0])
    assert command is not None
    if isinstance(command, click.Group) and len(words) > 1 and re.fullmatch("[a-z-]+", words[1]):
        inner = command.get_command(context, words[1])
        assert inner is not None, f"there is no command {words[0]} {words[1]}"
        return inner
    return command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_flag_of_a_page_exists(page: Path) -> None:
    for text in shown(page):
        command = command_of(text.split())
        if isinstance(command, click.Group):
            continue
        known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
        assert {*re.findall(r"(?<!\S)--[a-z][a-z-]*", text)} <= known, text


def test_the_pages_show_most_of_the_commands() -> None:
    named = {text.split()[0] for page in PAGES for text in shown(page)}
    assert {"up", "ask", "why", "replay", "what-if", "log", "backup", "alerts", "doctor"} <= named
