"""A pytest plugin: every bundle (``*.nxb``) among the collected paths is a test.

It passes when the installed release makes every decision in the bundle as it was recorded, and fails with the first
that comes out otherwise. A decision that nobody can make again (words redacted or forgotten, another behaviour version)
is counted in the report, not failed; a bundle in which none at all could be made again fails, since it tests nothing.
Nothing of the project is imported before a bundle runs: a suite without bundles pays nothing.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from events.replay import Report

_SUFFIX = ".nxb"


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
        report = asyncio.run(verified(self.path))
        complaint = complaint_of(report)
        self.add_report_section("call", "neuraxis", summary_of(report))
        if complaint:
            raise DecisionChanged(complaint)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """Show what was found; a traceback only where something broke that was not foreseen."""
        if isinstance(excinfo.value, DecisionChanged) or hasattr(excinfo.value, "code"):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Name the bundle in reports."""
        return self.path, None, f"decisions of {self.path.name}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> BundleFile | None:
    """Take bundles."""
    return BundleFile.from_parent(parent, path=file_path) if file_path.suffix == _SUFFIX else None


async def verified(bundle: Path) -> "Report":
    """Make every decision of a bundle again; raises LogError when it cannot be read."""
    from actors.registry import ACTORS
    from deploy.replaying import run
    from deploy.sources import LedgerSource
    from events.replay import Replay

    source = LedgerSource(bundle)
    try:
        replay = Replay(tuple(ACTORS.values()), source.partitions, verify=True)
        return await run(source, replay, progress=lambda _: None)
    finally:
        source.close()


def complaint_of(report: "Report") -> str:
    """Return why a bundle's test fails: the first changed decision, with both values; nothing when it passes."""
    if report.differences:
        one = report.differences[0]
        of = f" of exchange {one.exchange}" if one.exchange else ""
        return (
            f"{one.actor}/{one.partition} decided otherwise about {one.topic} (sequence {one.seq}{of}): {one.field}\n"
            f"  recorded  {one.recorded}\n  now       {one.redecided}\n"
            f"{sum(counts.different for counts in report.coverage.values())} decisions differ in all; "
            f"`neuraxis replay --verify --log BUNDLE` counts them, `neuraxis why EXCHANGE --log BUNDLE` explains one"
        )
    if report.fold_errors:
        return f"{report.fold_errors} recorded events could not be folded by this release"
    if not any(counts.identical for counts in report.coverage.values()):
        return f"no decision could be made again ({summary_of(report)}): this bundle tests nothing"
    return ""


def summary_of(report: "Report") -> str:
    """Return the coverage in one line."""
    counts = report.coverage.values()
    reasons: dict[str, int] = {}
    for one in counts:
        for reason, number in one.unverified.items():
            reasons[reason] = reasons.get(reason, 0) + number
    unverified = "".join(f", {number} unverified: {reason}" for reason, number in sorted(reasons.items()))
    same, other = sum(one.identical for one in counts), sum(one.different for one in counts)
    return f"{same} decisions identical, {other} different{unverified}"
