"""Sentences at a terminal are broken between words, and elsewhere not at all."""

import click
import pytest

from deploy.cli import wrapped_lines

LONG = "neuraxis: the port 4222 is taken by another-program: stop that one, or choose another port with --port"


class Stream:
    def __init__(self, terminal: bool) -> None:
        self.terminal, self.text = terminal, ""

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


@pytest.fixture(params=["stdout", "stderr"])
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "40")
    return str(request.param)


def said(name: str, text: str, monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    stream = Stream(terminal)
    monkeypatch.setattr(f"sys.{name}", stream)
    wrapped_lines.say(text, err=name == "stderr")
    return stream.text


def test_a_terminal_gets_whole_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = said(name, LONG, monkeypatch, terminal=True).splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 40 for line in lines)
    assert " ".join(line.strip() for line in lines) == LONG
    assert all(line.startswith("  ") for line in lines[1:])


def test_a_word_that_is_longer_than_the_terminal_is_not_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/a/very/long/path/that/somebody/may/want/to/copy/ledger.db"
    assert path in said(name, f"see {path} there", monkeypatch, terminal=True)


def test_anything_else_gets_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(name, LONG, monkeypatch, terminal=False) == f"{LONG}\n"


def test_styled_words_are_wrapped_as_plain_ones_are_and_keep_their_style(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = LONG.index("stop")
    for styled in (click.style(LONG, fg="yellow"), LONG[:at] + click.style("stop that", bold=True) + LONG[at + 9 :]):
        told = said(name, styled, monkeypatch, terminal=True)
        assert click.unstyle(told) == said(name, LONG, monkeypatch, terminal=True)
        assert told.replace("\n ", "").count("\x1b[") == 2
