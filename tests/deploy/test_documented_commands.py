"""Every command that the documentation shows can be typed as it stands."""

import re
from pathlib import Path

import pytest

from tests.deploy.typed import arguments_of, parse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def lines(page: Path) -> list[str]:
    """Return the lines of a page's shell blocks, with their continuations."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_are_ones(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prompts.jsonl").touch()  # a file that is to be trained from must be there
    for line in lines(page):
        if "neuraxis " in line:  # others may end in the middle of a quotation
            for words in arguments_of(line):
                parse(words)


def test_they_are_shown_in_one_form_and_the_readme_says_how_to_come_by_it() -> None:
    shown = [line for page in PAGES for line in lines(page)]
    assert not [line for line in shown if "bin/neuraxis" in line]
    first = next(line for line in lines(ROOT / "README.md") if line.startswith("neuraxis "))
    before = lines(ROOT / "README.md")
    assert before[before.index(first) - 1].startswith(". .venv/bin/activate")
