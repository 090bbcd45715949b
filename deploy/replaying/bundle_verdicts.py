"""Testing a bundle, a part of a log in one file: its decisions are made again, as recorded or under other settings.

The result is a verdict in words, for ``neuraxis log test`` and its pytest plugin.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from actors.registry import ACTORS
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.replay import effect_text, pending_text, without_actor_text
from deploy.config.loading import file_layer
from deploy.replaying.run_effect_check import check_effects
from deploy.replaying.what_if import changes_of, settings_of
from deploy.replaying.what_if import run as run_what_if
from deploy.replaying.what_if_verdicts import complaint, why_nothing_compared
from events.bundles import read_manifest
from events.decoding import exchange_of
from events.partition_fold import Delivery
from events.replay.replay import Difference, Replay
from events.replay.replay import Report as ReplayReport
from events.replay.run_replay import run_replay
from events.replay.sources import LedgerSource, time_of_end
from events.replay.verifying.effect_check import EffectReport
from events.replay.verifying.pending import Pending
from events.replay.verifying.without_actor import events_without_actor
from events.replay.whatif import Example, Fate
from events.replay.whatif import Report as WhatIfReport
from schemas.event import topic_of
from schemas.vocabulary.responder import ResponseEmitted

_EXAMPLES = 1
"""How many differences or changed exchanges are kept, to be shown."""

_END_TOPIC = topic_of(ResponseEmitted)
_MOST_FIELDS_SHOWN = 8
_MOST_CHARACTERS_SHOWN = 120


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on a bundle: ``complaint`` says why its test fails, empty if it passes; ``summary`` has counts."""

    complaint: str
    summary: str


def verify_bundle(bundle: Path) -> Verdict:
    """Make every decision of a bundle again and compare it with the recorded one.

    Only the exchanges that the bundle names as chosen must be the same; if it names none, all must be. A decision that
    cannot be made again (words redacted or forgotten, a behaviour or model that this release lacks) is counted and is
    no failure. But a bundle that tests nothing fails: each chosen exchange must be in it, with its end and with a
    decision that emitted events and could be made again. If none is chosen, one such decision anywhere is enough.

    Raises:
        LedgerDamaged, Misconfigured: the bundle cannot be read.
    """
    chosen = frozenset(read_manifest(bundle).chosen)
    with closing(LedgerSource(bundle)) as source:
        replay = Replay(tuple(ACTORS.values()), source.partitions, verify=True, keep=_EXAMPLES, chosen=chosen)
        tally = _Tally()
        replay.verification.on_verdict = tally.count
        report, effects, end_ns, without_end, without_actor = asyncio.run(_replayed(source, replay, chosen))
    overdue = [each for each in report.waiting if each.is_overdue(end_ns) and _delays_chosen(replay, each, chosen)]
    missing = f"a decision is missing: {pending_text(overdue[0], end_ns)}" if overdue else ""
    complaint = (
        _decisions_complaint(report, chosen, tally)
        or missing
        or _effects_complaint(effects)
        or _ends_complaint(report, without_end)
    )
    missing_actors = f"; {without_actor_text(without_actor)}" if without_actor else ""
    return Verdict(complaint, f"{_coverage(report)}{missing_actors}")


class _Tally:
    """Counts, by exchange, the decisions with events that came out identical, and those that came out different."""

    def __init__(self) -> None:
        self.identical: Counter[str] = Counter()
        self.different: Counter[str] = Counter()

    def count(self, delivery: Delivery, is_same: bool, decisions: int) -> None:
        counts = self.identical if is_same else self.different
        counts[exchange_of(delivery)] += decisions


async def _replayed(
    source: LedgerSource, replay: Replay, chosen: frozenset[str]
) -> tuple[ReplayReport, EffectReport, int, list[str], Mapping[str, int]]:
    report = await run_replay(source, replay, progress=lambda _: None)
    without_end = [exchange for exchange in sorted(chosen) if not await _has_end(source, exchange)]
    effects = await check_effects(source, exchanges=chosen)
    without_actor = await events_without_actor(source, ACTORS)
    return report, effects, await time_of_end(source, report.last_seq), without_end, without_actor


def decide_under_settings(bundle: Path, settings: Path) -> Verdict:
    """Decide a bundle's recorded inputs under the settings of a configuration file, as ``neuraxis what-if`` does.

    Raises:
        BadConfiguration: the file is missing or wrong.
        LedgerDamaged, Misconfigured: the bundle cannot be read, or does not hold the actors whose settings change.
    """
    changed = settings_of(file_layer(settings))
    chosen = frozenset(read_manifest(bundle).chosen)
    with closing(LedgerSource(bundle)) as source:
        changes = changes_of(changed, source.partitions)
        (report,) = asyncio.run(run_what_if(source, [changes], examples=_EXAMPLES, exchanges=chosen))
    unchanged = "" if changed else f"; {settings.name} has no setting of an actor, so that nothing was changed"
    return Verdict(_what_if_complaint(report, chosen, settings), f"{_what_if_summary(report)}{unchanged}")


def _decisions_complaint(report: ReplayReport, chosen: frozenset[str], tally: _Tally) -> str:
    if report.differences:
        different = tally.different
        count = sum(different[exchange] for exchange in chosen or different)
        return _difference_text(report.differences[0], count, _scope_text(chosen))
    if report.fold_errors:
        return f"{report.fold_errors} recorded events could not be folded by this release"
    if untested := sorted(exchange for exchange in chosen if not tally.identical[exchange]):
        return (
            f"exchange {untested[0]} is not in this bundle, or none of its decisions could be made again "
            f"({_coverage(report)}): {len(untested)} of {len(chosen)} chosen exchanges are not tested"
        )
    if not tally.identical.total():
        return f"no decision that led to anything could be made again ({_coverage(report)}): this bundle tests nothing"
    return ""


async def _has_end(source: LedgerSource, exchange: str) -> bool:
    return any(each.headers.get("ce-type") == _END_TOPIC for each in await source.exchange(exchange))


def _ends_complaint(report: ReplayReport, without_end: Sequence[str]) -> str:
    if not without_end:
        return ""
    return f"exchange {without_end[0]} {_UNTESTED[Fate.OPEN]} ({_coverage(report)}): it is not tested"


def _delays_chosen(replay: Replay, pending: Pending, chosen: frozenset[str]) -> bool:
    """Whether a message of a chosen exchange waits behind a missing decision, and so was not decided again either."""
    waiting = replay.views[pending.actor, pending.partition].waiting
    return not chosen or pending.exchange in chosen or any(exchange_of(each) in chosen for each in waiting)


def _effects_complaint(effects: EffectReport) -> str:
    return f"a recorded effect is wrong: {effect_text(effects.findings[0])}" if effects.findings else ""


def _scope_text(chosen: frozenset[str]) -> str:
    return " of the chosen exchanges" if chosen else " in all"


def _difference_text(found: Difference, count: int, among: str) -> str:
    position = f"sequence {found.seq} of exchange {found.exchange}" if found.exchange else f"sequence {found.seq}"
    differ = "1 decision differs" if count == 1 else f"{count:,} decisions differ"
    return (
        f"{found.actor}/{found.partition} decided otherwise about {found.topic} ({position}): {found.field}\n"
        f"  recorded  {found.recorded}\n  now       {found.redecided}\n"
        f"{differ}{among}; "
        "`neuraxis replay --verify --log BUNDLE` counts all, `neuraxis why EXCHANGE --log BUNDLE` explains one"
    )


def _coverage(report: ReplayReport) -> str:
    counts = report.coverage.values()
    unverified = _reasons([each.unverified for each in counts])
    identical, different = sum(each.identical for each in counts), sum(each.different for each in counts)
    new = sum(count for each in counts for count in each.new_fields.values())
    fields = f", {new} new fields not compared" if new else ""
    return f"{identical} decisions identical, {different} different{unverified}{fields}"


def _what_if_complaint(report: WhatIfReport, chosen: frozenset[str], settings: Path) -> str:
    if report.examples:
        changed = [exchange for exchange in chosen if report.fates.get(exchange) is Fate.CHANGED]
        return _example_text(
            report.examples[0], len(changed) if chosen else report.changed, settings, _scope_text(chosen)
        )
    for exchange in sorted(chosen):
        if reason := _UNTESTED.get(report.fates.get(exchange)):
            return f"exchange {exchange} {reason} ({_what_if_summary(report)}): it is not tested"
    if reason := why_nothing_compared(report) if chosen else complaint(report, 0):
        return f"{reason}: this bundle does not test {settings.name}"
    return ""


_UNTESTED = {
    None: "is not in this bundle",
    Fate.OPEN: "has no end in this bundle",
    Fate.HELD: "has decisions in question that could not be made anew",
}


def _example_text(example: Example, count: int, settings: Path, among: str) -> str:
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
        shown = list(example.fields.items())[:_MOST_FIELDS_SHOWN]
        lines += [f"  {path}: {_text(left)} → {_text(right)}" for path, (left, right) in shown]
        if len(example.fields) > _MOST_FIELDS_SHOWN:
            lines.append(f"  and {len(example.fields) - _MOST_FIELDS_SHOWN} more fields")
    changes = "1 exchange changes" if count == 1 else f"{count:,} exchanges change"
    lines.append(f"{changes}{among}; `neuraxis what-if --config FILE --log BUNDLE` shows them")
    return "\n".join(lines)


def _what_if_summary(report: WhatIfReport) -> str:
    unverified = _reasons([report.held_by_reason])
    exchanges = f"{counted(report.exchanges, 'exchange')}, {report.changed} changed"
    return f"{exchanges}; {counted(report.decided, 'message')} decided anew{unverified}"


def _reasons(counts: Sequence[Mapping[str, int]]) -> str:
    reasons: dict[str, int] = {}
    for each in counts:
        for reason, number in each.items():
            reasons[reason] = reasons.get(reason, 0) + number
    return "".join(f", {number} unverified: {reason}" for reason, number in sorted(reasons.items()))


def _text(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MOST_CHARACTERS_SHOWN else f"{text[: _MOST_CHARACTERS_SHOWN - 1]}…"
