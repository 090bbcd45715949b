"""A pytest plugin: every bundle (``*.nxb``, a part of a log) among the collected paths is a test of its decisions.

The server's command ``neuraxis log test BUNDLE --json`` makes the decisions again, in a process and an environment of
its own. So nothing of the server is imported here, and a project's packages may have the same names as the server's.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

_SUFFIX = ".nxb"

# Names of ini options, and of an environment variable.
COMMAND = "neuraxis_command"
CONFIG = "neuraxis_config"
BUNDLES = "neuraxis_bundles"
MODELS = "neuraxis_models"
VARIABLE = "NEURAXIS_COMMAND"
TIMEOUT_S = 600.0
"""Seconds that the test of one bundle may take."""

# Statuses of the server's command.
_PASSED, _FAILED = 0, 1


class DecisionChanged(Exception):
    """A bundle's decision differs from the recorded one, or none could be made; the message explains."""


class NotTested(Exception):
    """The server's command could not test a bundle; the message says why, and what to do."""


class BundleFile(pytest.File):
    """A bundle among the collected files."""

    def collect(self) -> Iterator[pytest.Item]:
        """Give the bundle's one test."""
        yield BundleTest.from_parent(self, name="decisions")


class BundleTest(pytest.Item):
    """The test that a bundle's decisions come out as recorded."""

    def runtest(self) -> None:
        """Have the decisions made again; raises DecisionChanged, or NotTested where that is not possible."""
        report = _test_report(self.path, self.config)
        self.add_report_section("call", "neuraxis", str(report.get("summary", "")))
        if complaint := report.get("complaint"):
            raise DecisionChanged(complaint)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """Show what was found; a traceback only for unexpected errors."""
        if isinstance(excinfo.value, DecisionChanged | NotTested):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Name the bundle in reports."""
        return self.path, None, f"decisions of {self.path.name}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini options; paths are relative to the ini file."""
    parser.addini(
        COMMAND,
        f"the server's command (default: ${VARIABLE}, else neuraxis beside this Python or on PATH)",
        "string",
        "",
    )
    parser.addini(CONFIG, "neuraxis configuration file under whose settings bundles are decided anew", "string", "")
    parser.addini(MODELS, "folder of older weights that decisions in bundles rest on", "string", "")
    parser.addini(BUNDLES, "folders whose bundles are tests (default: any)", "args", [])


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a configuration that tests nothing: a configured folder without bundles, or one that is not collected."""
    if hasattr(config, "workerinput"):
        return  # a worker of pytest-xdist: its controller has checked this
    for name in config.getini(BUNDLES):
        folder = _relative_to_ini(config, name)
        if folder is None:
            continue
        bundles = [*folder.rglob(f"*{_SUFFIX}")]
        if not bundles:
            raise pytest.UsageError(
                f"{BUNDLES} names {folder}, which holds no bundle, so that no decision would be tested: "
                "keep one there by `neuraxis log record NAME --folder FOLDER`, or take the folder out"
            )
        if _collects_all(config) and not any(_is_collected(bundle, config) for bundle in bundles):
            raise pytest.UsageError(
                f"{BUNDLES} names {folder}, where pytest does not look, so that no decision would be tested: add it to "
                "testpaths, and see that norecursedirs does not leave it out"
            )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> BundleFile | None:
    """Collect bundles."""
    if file_path.suffix != _SUFFIX:
        return None
    folders = [_relative_to_ini(parent.config, folder) for folder in parent.config.getini(BUNDLES)]
    if folders and not any(folder in file_path.parents for folder in folders):
        return None
    return BundleFile.from_parent(parent, path=file_path)


def _collects_all(config: pytest.Config) -> bool:
    """Whether this run is of all tests: nobody has named what to run, or what not to."""
    narrowed = any(config.getoption(name, None) for name in ("ignore", "ignore_glob", "lf", "pyargs"))
    sources = pytest.Config.ArgsSource
    in_base = _base(config) == Path(os.path.abspath(config.invocation_params.dir))
    at_base = config.args_source == sources.INVOCATION_DIR and in_base
    return not narrowed and (config.args_source == sources.TESTPATHS or at_base)


def _is_collected(file: Path, config: pytest.Config) -> bool:
    """Whether a file is among what pytest collects by itself."""
    left_out = config.getini("norecursedirs")
    for argument in config.args:
        start = Path(os.path.abspath(config.invocation_params.dir / argument.partition("::")[0]))
        if file == start:
            return True
        if start in file.parents:
            folders = file.relative_to(start).parts[:-1]
            if not any(fnmatch(folder, pattern) for folder in folders for pattern in left_out):
                return True
    return False


def _test_report(bundle: Path, config: pytest.Config) -> dict[str, Any]:
    """Return what the server's command reports about a bundle; raises NotTested."""
    options = [
        f"{option}={path}"
        for option, name in (("--config", CONFIG), ("--models", MODELS))
        if (path := _relative_to_ini(config, config.getini(name))) is not None
    ]
    command = [*_command(config), "log", "test", str(bundle), "--json", *options]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotTested(f"{bundle.name} was not decided within {TIMEOUT_S:g} s: test a shorter one") from None
    except OSError as wrong:
        raise NotTested(
            f"{command[0]} cannot be run: {wrong.strerror}; name the server's command in {COMMAND}"
        ) from wrong
    if done.returncode in (_PASSED, _FAILED):
        try:
            report = json.loads(done.stdout)
        except ValueError:
            report = None
        if isinstance(report, dict) and isinstance(report.get("complaint"), str):
            return report
    output = done.stderr.decode(errors="replace").strip() or done.stdout.decode(errors="replace").strip()
    raise NotTested(output or f"{shlex.join(command)} ended with status {done.returncode} and said nothing")


def _command(config: pytest.Config) -> list[str]:
    command = shlex.split(config.getini(COMMAND) or os.environ.get(VARIABLE, ""))
    if command:
        if "/" in command[0]:
            command[0] = str(_relative_to_ini(config, command[0]))
        return command
    found = shutil.which("neuraxis", path=str(Path(sys.executable).parent)) or shutil.which("neuraxis")
    if found is None:
        raise NotTested(
            "there is no command `neuraxis` beside this Python or on PATH: install the server in an environment of its"
            f" own, and name its command in the ini option {COMMAND} or in {VARIABLE}"
        )
    return [found]


def _relative_to_ini(config: pytest.Config, path: str) -> Path | None:
    return Path(os.path.abspath(_base(config) / path)) if path else None


def _base(config: pytest.Config) -> Path:
    return config.inipath.parent if config.inipath is not None else config.rootpath
