"""Testing a bundle: its decisions are made again, as recorded or under other settings, and the outcome put in words."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from actors.registry import ACTORS
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.replay import effect_text, pending_text
from deploy.config.loading import file_layer
from deploy.replaying.effects import check_effects
from deploy.replaying.what_if import changes_of, settings_of
from deploy.replaying.what_if import run as run_what_if
from deploy.replaying.what_if_verdicts import complaint, why_nothing_compared
from events.bundles import read_manifest
from events.codec import Recorded
from events.replay.replay import Difference, Replay
from events.replay.replay import Report as ReplayReport
from events.replay.run_replay import run_replay
from events.replay.sources import LedgerSource, time_of_end
from events.replay.verifying.effects import EffectReport
from events.replay.verifying.pending import Pending
from events.replay.whatif import Example, Fate
from events.replay.whatif import Report as WhatIfReport
from events.view import Delivery
from schemas.event import topic_of
from schemas.vocabulary.responder import ResponseEmitted

_KEPT = 1
"""Differences and changed exchanges that are kept, to be shown."""

_END = topic_of(ResponseEmitted)
_FIELDS = 8
_LONGEST = 120


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on a bundle: ``complaint`` says why its test fails (empty: it passes); ``summary`` has counts."""

    complaint: str
    summary: str


def verify_bundle(bundle: Path) -> Verdict:
    """Make every decision of a bundle again and compare them; those outside the chosen exchanges may differ.

    A decision that cannot be made again (words redacted or forgotten, a behaviour or model that is not here) is counted
    and is no failure. But a bundle that tests nothing fails: a chosen exchange is not in it, has no end, or has no
    decision with an event that could be made again. If no exchange is chosen, there must be such a decision in any.

    Raises:
        LedgerDamaged, Misconfigured: the bundle cannot be read.
    """
    chosen = frozenset(read_manifest(bundle).chosen)
    source = LedgerSource(bundle)
    try:
        replay = Replay(tuple(ACTORS.values()), source.partitions, verify=True, keep=_KEPT, of=chosen)
        tally = _Tally()
        replay.verification.on_verdict = tally.take
        report, effects, end_ns, endless = asyncio.run(_replayed(source, replay, chosen))
    finally:
        source.close()
    overdue = [one for one in report.waiting if one.is_overdue(end_ns) and _holds_up(replay, one, chosen)]
    missed = f"a decision is missing: {pending_text(overdue[0], end_ns)}" if overdue else ""
    wrong = _changed(report, chosen, tally) or missed or _forged(effects) or _unended(report, endless)
    return Verdict(wrong, _coverage(report))


class _Tally:
    """Counts decisions that led to something, by exchange: those that came out as recorded, and otherwise."""

    def __init__(self) -> None:
        self.identical: Counter[str] = Counter()
        self.different: Counter[str] = Counter()

    def take(self, delivery: Delivery, is_same: bool, count: int) -> None:
        counts = self.identical if is_same else self.different
        counts[delivery.message.exchange if isinstance(delivery, Recorded) else ""] += count


async def _replayed(
    source: LedgerSource, replay: Replay, chosen: frozenset[str]
) -> tuple[ReplayReport, EffectReport, int, list[str]]:
    report = await run_replay(source, replay, progress=lambda _: None)
    endless = [one for one in sorted(chosen) if not await _has_end(source, one)]
    return report, await check_effects(source, of=chosen), await time_of_end(source, report.last_seq), endless


def decide_under_settings(bundle: Path, settings: Path) -> Verdict:
    """Decide a bundle's recorded inputs under the settings of a configuration file, as ``neuraxis what-if`` does.

    Raises:
        BadConfiguration: the file is missing or wrong.
        LedgerDamaged, Misconfigured: the bundle cannot be read, or has no such actors.
    """
    changed = settings_of(file_layer(settings))
    chosen = frozenset(read_manifest(bundle).chosen)
    source = LedgerSource(bundle)
    try:
        changes = changes_of(changed, source.partitions)
        (report,) = asyncio.run(run_what_if(source, [changes], examples=_KEPT, of=chosen))
    finally:
        source.close()
    return Verdict(_ended_otherwise(report, chosen, settings), _tallies(report))


def _changed(report: ReplayReport, chosen: frozenset[str], tally: _Tally) -> str:
    if report.differences:
        different = tally.different
        return _difference_text(report.differences[0], sum(different[one] for one in chosen or different), _of(chosen))
    if report.fold_errors:
        return f"{report.fold_errors} recorded events could not be folded by this release"
    if untested := sorted(one for one in chosen if not tally.identical[one]):
        return (
            f"exchange {untested[0]} is not in this bundle, or none of its decisions could be made again "
            f"({_coverage(report)}): {len(untested)} of {len(chosen)} chosen exchanges are not tested"
        )
    if not tally.identical.total():
        return f"no decision that led to anything could be made again ({_coverage(report)}): this bundle tests nothing"
    return ""


async def _has_end(source: LedgerSource, exchange: str) -> bool:
    return any(each.headers.get("ce-type") == _END for each in await source.exchange(exchange))


def _unended(report: ReplayReport, endless: Sequence[str]) -> str:
    return f"exchange {endless[0]} {_UNTESTED[Fate.OPEN]} ({_coverage(report)}): it is not tested" if endless else ""


def _holds_up(replay: Replay, pending: Pending, chosen: frozenset[str]) -> bool:
    """Whether anything of a chosen exchange waits behind a decision that is missing: all of it is undecided, then."""
    waiting = replay.views[pending.actor, pending.partition].waiting
    return (
        not chosen
        or pending.exchange in chosen
        or any(isinstance(one, Recorded) and one.message.exchange in chosen for one in waiting)
    )


def _forged(effects: EffectReport) -> str:
    return f"a recorded effect is wrong: {effect_text(effects.findings[0])}" if effects.findings else ""


def _of(chosen: frozenset[str]) -> str:
    return " of the chosen exchanges" if chosen else " in all"


def _difference_text(one: Difference, count: int, among: str) -> str:
    of = f" of exchange {one.exchange}" if one.exchange else ""
    differ = "1 decision differs" if count == 1 else f"{count:,} decisions differ"
    return (
        f"{one.actor}/{one.partition} decided otherwise about {one.topic} (sequence {one.seq}{of}): {one.field}\n"
        f"  recorded  {one.recorded}\n  now       {one.redecided}\n"
        f"{differ}{among}; "
        "`neuraxis replay --verify --log BUNDLE` counts all, `neuraxis why EXCHANGE --log BUNDLE` explains one"
    )


def _coverage(report: ReplayReport) -> str:
    counts = report.coverage.values()
    unverified = _reasons([one.unverified for one in counts])
    same, other = sum(one.identical for one in counts), sum(one.different for one in counts)
    new = sum(count for one in counts for count in one.new_fields.values())
    fields = f", {new} new fields not compared" if new else ""
    return f"{same} decisions identical, {other} different{unverified}{fields}"


def _ended_otherwise(report: WhatIfReport, chosen: frozenset[str], settings: Path) -> str:
    if report.examples:
        changed = [one for one in chosen if report.fates.get(one) is Fate.CHANGED]
        return _explained(report.examples[0], len(changed) if chosen else report.changed, settings, _of(chosen))
    for one in sorted(chosen):
        if reason := _UNTESTED.get(report.fates.get(one)):
            return f"exchange {one} {reason} ({_tallies(report)}): it is not tested"
    if reason := why_nothing_compared(report) if chosen else complaint(report, 0):
        return f"{reason}: this bundle does not test {settings.name}"
    return ""


_UNTESTED = {
    None: "is not in this bundle",
    Fate.OPEN: "has no end in this bundle",
    Fate.HELD: "has decisions in question that could not be made anew",
}


def _explained(example: Example, count: int, settings: Path, among: str) -> str:
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
    changes = "1 exchange changes" if count == 1 else f"{count:,} exchanges change"
    lines.append(f"{changes}{among}; `neuraxis what-if --config FILE --log BUNDLE` shows them")
    return "\n".join(lines)


def _tallies(report: WhatIfReport) -> str:
    held = _reasons([report.taken])
    looked = f"{counted(report.exchanges, 'exchange')}, {report.changed} changed"
    return f"{looked}; {counted(report.decided, 'message')} decided anew{held}"


def _reasons(counts: Sequence[Mapping[str, int]]) -> str:
    reasons: dict[str, int] = {}
    for one in counts:
        for reason, number in one.items():
            reasons[reason] = reasons.get(reason, 0) + number
    return "".join(f", {number} unverified: {reason}" for reason, number in sorted(reasons.items()))


def _text(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
