"""Every command that the documentation shows can be typed as it stands, and those it speaks of exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.deploy.typed import arguments_of, command_of, make_read, parse
from tests.each import each

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def lines(page: Path) -> list[str]:
    """Return the lines of a page's shell blocks, with their continuations."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def spoken_of(page: Path) -> Iterator[list[str]]:
    """Yield the words of the commands that a page's prose and tables name, as far as they stand on one line.

    Code is passed over: a guide may show how a command is made that there is not.
    """
    prose = re.sub(r"^```python\n.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for found in re.finditer(r"`neuraxis ([a-z][a-z-]*(?: [^`|#\n]*)?)", prose):
        yield found[1].split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_are_ones(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_read()
    for line in lines(page):
        if "neuraxis " in line:  # others may end in the middle of a quotation
            for words in arguments_of(line):
                parse(words)


@each("page", PAGES, named=lambda page: page.name)
def test_the_commands_and_flags_that_a_page_speaks_of_exist(page: Path) -> None:
    for words in spoken_of(page):
        two = len(words) > 1 and re.fullmatch("[a-z-]+", words[1])
        command, _ = command_of(words[: 2 if two else 1])
        if not isinstance(command, click.Group):
            known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
            assert {*re.findall(r"(?<!\S)--[a-z][a-z-]*", " ".join(words))} <= known, words


def test_the_pages_show_most_of_the_commands() -> None:
    shown = [words for page in PAGES for line in lines(page) if "neuraxis " in line for words in arguments_of(line)]
    spoken = [words for page in PAGES for words in spoken_of(page)]
    named = {words[0] for words in [*shown, *spoken] if words}
    assert {"up", "ask", "why", "replay", "what-if", "log", "backup", "alerts", "doctor"} <= named


def test_they_are_shown_in_one_form_and_the_readme_says_how_to_come_by_it() -> None:
    shown = [line for page in PAGES for line in lines(page)]
    assert not [line for line in shown if "bin/neuraxis" in line]
    first = next(line for line in lines(ROOT / "README.md") if line.startswith("neuraxis "))
    before = lines(ROOT / "README.md")
    assert before[before.index(first) - 1].startswith(". .venv/bin/activate")
