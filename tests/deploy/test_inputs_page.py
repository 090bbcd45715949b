"""What docs/inputs.md shows is taken, or refused, as it says."""

import re
from pathlib import Path

from deploy.feeding import BadLine, LineFormat, LineInputs, parse

PAGE = (Path(__file__).parents[2] / "docs" / "inputs.md").read_text(encoding="utf-8")


def lines(kind: str) -> list[str]:
    [block] = re.findall(rf"```jsonl {kind}\n(.*?)```", PAGE, re.DOTALL)
    return block.splitlines()


def test_every_line_that_the_page_shows_is_an_input() -> None:
    talks = [parse(number, line.encode(), LineFormat.JSONL) for number, line in enumerate(lines("inputs"), 1)]
    assert [talk.id for talk in talks if isinstance(talk, LineInputs)] == ["plain", "attached", "layers", "talk"]
    roles = [
        [layer.role for turn in talk.turns for layer in turn.layers] for talk in talks if isinstance(talk, LineInputs)
    ]
    assert roles == [[], ["document"], ["system", "tool"], ["tool"]]


def test_the_line_that_the_page_shows_refused_is_refused_in_its_words() -> None:
    [line] = lines("refused")
    found = parse(1, line.encode(), LineFormat.JSONL)
    assert isinstance(found, BadLine)
    assert f"    line {found.line}: {found.code}: {found.detail}\n" in PAGE
