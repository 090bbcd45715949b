"""What became of a bundle's decisions, made again as they were recorded or under other settings, in words."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from actors.registry import ACTORS
from deploy.config import all_sections, file_layer, overrides
from deploy.replaying import run as run_replay
from deploy.sources import LedgerSource
from deploy.what_if import changes_of
from deploy.what_if import run as run_what_if
from events.bundles import read_manifest
from events.replay import Difference, Replay
from events.replay import Report as ReplayReport
from events.whatif import Example
from events.whatif import Report as WhatIfReport

_KEPT = 10_000
"""Differences and changed exchanges that are kept, to be looked through for the chosen ones."""

_FIELDS = 8
_LONGEST = 120


class Verdict(msgspec.Struct, frozen=True):
    """``complaint`` says why a bundle's test fails, and is empty where it passes; ``summary`` is one line of counts."""

    complaint: str
    summary: str


def verified(bundle: Path) -> Verdict:
    """Make every decision of a bundle again and compare it to the byte; those outside the chosen exchanges may differ.

    A decision that nobody can make again (words redacted or forgotten, another behaviour, a model that is not here) is
    counted, not failed; a bundle in which none at all can be made again fails, since it tests nothing.

    Raises:
        LedgerDamaged, Misconfigured: the bundle cannot be read.
    """
    chosen = frozenset(read_manifest(bundle).chosen)
    source = LedgerSource(bundle)
    try:
        replay = Replay(tuple(ACTORS.values()), source.partitions, verify=True, keep=_KEPT)
        report = asyncio.run(run_replay(source, replay, progress=lambda _: None))
    finally:
        source.close()
    return Verdict(_changed(report, chosen), _coverage(report))


def decided_anew(bundle: Path, settings: Path) -> Verdict:
    """Decide a bundle's recorded inputs under the settings of a configuration file, as ``neuraxis what-if`` does.

    Raises:
        BadConfiguration: the file is missing or wrong.
        LedgerDamaged, Misconfigured: the bundle cannot be read, or has no such actors.
    """
    layer = file_layer(settings)
    layers = [layer] if layer is not None else []
    changed = {name: values for name, values in overrides(all_sections(), layers).items() if name in ACTORS and values}
    chosen = frozenset(read_manifest(bundle).chosen)
    source = LedgerSource(bundle)
    try:
        changes = changes_of(changed, source.partitions)
        (report,) = asyncio.run(run_what_if(source, [changes], examples=_KEPT))
    finally:
        source.close()
    return Verdict(_ended_otherwise(report, chosen, settings), _tallies(report))


def _changed(report: ReplayReport, chosen: frozenset[str]) -> str:
    counted = [one for one in report.differences if not chosen or one.exchange in chosen]
    if counted:
        return _told(counted[0], len(counted))
    if report.fold_errors:
        return f"{report.fold_errors} recorded events could not be folded by this release"
    if not any(counts.identical for counts in report.coverage.values()):
        return f"no decision could be made again ({_coverage(report)}): this bundle tests nothing"
    return ""


def _told(one: Difference, count: int) -> str:
    of = f" of exchange {one.exchange}" if one.exchange else ""
    return (
        f"{one.actor}/{one.partition} decided otherwise about {one.topic} (sequence {one.seq}{of}): {one.field}\n"
        f"  recorded  {one.recorded}\n  now       {one.redecided}\n"
        f"{count} decisions differ in all; `neuraxis replay --verify --log BUNDLE` counts them, "
        "`neuraxis why EXCHANGE --log BUNDLE` explains one"
    )


def _coverage(report: ReplayReport) -> str:
    counts = report.coverage.values()
    unverified = _reasons([one.unverified for one in counts])
    same, other = sum(one.identical for one in counts), sum(one.different for one in counts)
    return f"{same} decisions identical, {other} different{unverified}"


def _ended_otherwise(report: WhatIfReport, chosen: frozenset[str], settings: Path) -> str:
    counted = [one for one in report.examples if not chosen or one.outcome.exchange in chosen]
    if counted:
        return _explained(counted[0], len(counted), settings)
    if not any(tally.decided for tally in report.tallies.values()):
        return f"no decision could be made anew ({_tallies(report)}): this bundle tests nothing"
    return ""


def _explained(example: Example, count: int, settings: Path) -> str:
    outcome, first = example.outcome, example.outcome.first
    was, now = outcome.recorded, outcome.whatif
    lines = [
        f"exchange {outcome.exchange} (sequence {outcome.seq}) ends otherwise under {settings.name}:",
        f"  recorded  {was.label} {was.reason} {was.mode}".rstrip(),
        f"  now       {now.label} {now.reason} {now.mode}".rstrip(),
    ]
    if first is not None:
        what = "is gone" if first.whatif is None else "is new" if first.recorded is None else "differs"
        lines.append(f"first, {first.topic} of {first.actor} at sequence {first.seq} {what}:")
        shown = list(example.fields.items())[:_FIELDS]
        lines += [f"  {path}: {_text(left)} → {_text(right)}" for path, (left, right) in shown]
        if len(example.fields) > _FIELDS:
            lines.append(f"  and {len(example.fields) - _FIELDS} more fields")
    lines.append(f"{count} exchanges change in all; `neuraxis what-if --config FILE --log BUNDLE` shows them")
    return "\n".join(lines)


def _tallies(report: WhatIfReport) -> str:
    decided = sum(tally.decided for tally in report.tallies.values())
    held = _reasons([tally.held for tally in report.tallies.values()])
    return f"{report.exchanges} exchanges, {report.changed} changed; {decided} messages decided anew{held}"


def _reasons(counts: Sequence[Mapping[str, int]]) -> str:
    reasons: dict[str, int] = {}
    for one in counts:
        for reason, number in one.items():
            reasons[reason] = reasons.get(reason, 0) + number
    return "".join(f", {number} unverified: {reason}" for reason, number in sorted(reasons.items()))


def _text(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
