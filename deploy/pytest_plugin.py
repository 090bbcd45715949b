"""A pytest plugin: every bundle (``*.nxb``) among the collected paths is a test of the decisions in it.

Without configuration, the installed release makes every decision again from what was recorded, and the test fails with
the first that comes out otherwise. With the ini option ``neuraxis_config`` the recorded inputs are decided anew under
the settings of that file, and the test fails with the first exchange that ends otherwise. Nothing of the project is
imported before a bundle runs: a suite without bundles pays nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SUFFIX = ".nxb"
CONFIG = "neuraxis_config"
BUNDLES = "neuraxis_bundles"
MODELS = "neuraxis_models"


class DecisionChanged(Exception):
    """A bundle's decision came out otherwise than recorded, or none could be made; the message explains."""


class BundleFile(pytest.File):
    """A bundle among the collected files."""

    def collect(self) -> Iterator[pytest.Item]:
        """Give the bundle's one test."""
        yield BundleTest.from_parent(self, name="decisions")


class BundleTest(pytest.Item):
    """The test that a bundle's decisions come out as recorded."""

    def runtest(self) -> None:
        """Make the decisions again; raises DecisionChanged, or the error that the bundle cannot be read with."""
        from deploy.replaying.bundle_verdicts import decided_anew, verified

        if (models := _below_ini(self.config, self.config.getini(MODELS))) is not None:
            from actors.contract.text.judge.weights import supply

            supply(models)
        settings = _below_ini(self.config, self.config.getini(CONFIG))
        verdict = verified(self.path) if settings is None else decided_anew(self.path, settings)
        self.add_report_section("call", "neuraxis", verdict.summary)
        if verdict.complaint:
            raise DecisionChanged(verdict.complaint)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """Show what was found; a traceback only where something broke that was not foreseen."""
        if isinstance(excinfo.value, DecisionChanged) or hasattr(excinfo.value, "code"):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Name the bundle in reports."""
        return self.path, None, f"decisions of {self.path.name}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini options; all are relative to the ini file."""
    parser.addini(CONFIG, "neuraxis configuration file under whose settings bundles are decided anew", "string", "")
    parser.addini(MODELS, "folder of older weights that decisions in bundles rest on", "string", "")
    parser.addini(BUNDLES, "folders whose bundles are tests (default: any)", "args", [])


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a configuration that tests nothing: a folder that is to hold bundles, and holds none."""
    if hasattr(config, "workerinput"):
        return  # of pytest-xdist: the first process has looked
    for name in config.getini(BUNDLES):
        folder = _below_ini(config, name)
        if folder is not None and not any(folder.rglob(f"*{_SUFFIX}")):
            raise pytest.UsageError(
                f"{BUNDLES} names {folder}, which holds no bundle, so that no decision would be tested: "
                "keep one there by `neuraxis log record NAME --folder FOLDER`, or take the folder out"
            )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> BundleFile | None:
    """Take bundles."""
    if file_path.suffix != _SUFFIX:
        return None
    folders = [_below_ini(parent.config, folder) for folder in parent.config.getini(BUNDLES)]
    if folders and not any(folder in file_path.parents for folder in folders):
        return None
    return BundleFile.from_parent(parent, path=file_path)


def _below_ini(config: pytest.Config, path: str) -> Path | None:
    base = config.inipath.parent if config.inipath is not None else config.rootpath
    return (base / path).resolve() if path else None
