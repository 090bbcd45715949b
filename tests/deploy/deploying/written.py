"""Deployment files as the commands write them, for tests to read."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from click.testing import CliRunner, Result

from deploy.cli import main


def deploy(*words: str) -> Result:
    """Run ``neuraxis deploy`` in this process."""
    return CliRunner().invoke(main, ["deploy", *words])


def refusal(*words: str) -> str:
    """Return what a command that is refused says, on one line."""
    told = deploy(*words)
    assert told.exit_code == 2, told.output
    return " ".join(told.stderr.split())


def written(kind: str, folder: Path, *more: str, configuration: str = "") -> dict[str, str]:
    """Return the files of a kind of deployment, path below the folder -> text."""
    folder.mkdir(exist_ok=True)
    if configuration:
        (folder / "neuraxis.toml").write_text(configuration)
    told = deploy(kind, "--out", str(folder), *more)
    assert told.exit_code == 0, told.stderr
    return {str(Path(line).relative_to(folder)): Path(line).read_text() for line in told.stdout.splitlines()}


class Unit:
    """A systemd unit with its drop-ins: what a service manager makes of them, as far as these units use it."""

    def __init__(self, root: Path, name: str) -> None:
        units = root / "etc/systemd/system"
        stem, _, kind = name.rpartition(".")
        template = f"{stem.partition('@')[0]}@.{kind}" if "@" in stem else name
        files = [units / template, *sorted((units / f"{name}.d").glob("*.conf"))]
        self.lines = [
            line.partition("=")[::2] for file in files for line in file.read_text().splitlines() if "=" in line
        ]

    def of(self, key: str) -> list[str]:
        """Return the values of a key, in order."""
        return [value for name, value in self.lines if name == key]

    def environment(self, specifiers: dict[str, str]) -> dict[str, str]:
        """Return the variables that it sets."""
        found: dict[str, str] = {}
        for line in self.of("Environment"):
            for assignment in [line[1:-1]] if line.startswith('"') else line.split():
                name, _, value = assignment.partition("=")
                found[name] = _specified(value, specifiers)
        return found

    def command(self, specifiers: dict[str, str]) -> list[str]:
        """Return the command that it starts, with its variables."""
        environment = self.environment(specifiers)
        [line] = self.of("ExecStart")
        words: list[str] = []
        for word in _specified(line, specifiers).split():
            if word.startswith("$"):
                words += environment[word[1:]].split()  # systemd splits a variable that stands alone
            else:
                words.append(_replaced(word, environment))
        return words


def _specified(text: str, specifiers: dict[str, str]) -> str:
    for sign, value in specifiers.items():
        text = text.replace(sign, value)
    return text


def _replaced(word: str, environment: dict[str, str]) -> str:
    for name, value in environment.items():
        word = word.replace(f"${{{name}}}", value)
    return word


def options(command: Sequence[str], name: str) -> list[str]:
    """Return the values of an option of a command."""
    return [after for word, after in pairwise(command) if word == name]
