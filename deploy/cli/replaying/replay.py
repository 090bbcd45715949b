"""``neuraxis replay``."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.options import Target, examples, json_option, models_option, target_options, to_option
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import console, progress
from deploy.cli.replaying.source_opening import log_option, open_source
from deploy.cli.wrapped_lines import say, say_note
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from events.replay.replay import Report
    from events.replay.run_replay import Point
    from events.replay.sources import Source
    from events.replay.verifying.effect_check import EffectReport
    from schemas.actor import Actor


@command(
    epilog=examples(
        "neuraxis replay --verify",
        "neuraxis replay --log backup/ledger.db --to 12000 --actor router",
        "neuraxis replay --verify --log backup/ledger.db --models weights-of-march",
        "neuraxis replay --to 2026-01-31T12:00:00Z --json | jq .overall",
    )
)
@target_options
@log_option
@click.option("--verify", is_flag=True, help="Make every decision again and compare what it says with the record.")
@click.option(
    "--strict", is_flag=True, help="With --verify: what cannot be verified, or waits for long, is a failure, too."
)
@models_option
@to_option
@click.option("--actor", "names", multiple=True, metavar="NAME", help="Replay this actor only; may be repeated.")
@click.option(
    "--key", default="", metavar="KEY", help="Replay only the partitions of this session, agent or partition."
)
@click.option(
    "--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes that share --log.  [default: as many as help]"
)
@json_option
def replay(
    target: Target,
    log_file: Path | None,
    verify: bool,
    strict: bool,
    models: str,
    upto: str,
    names: Sequence[str],
    key: str,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Fold the recorded events into every actor's state and print the states' hashes; run no effect.

    Nothing needs to run but the broker, and with --log not even that. Equal logs give equal hashes. With --verify,
    exit status 1 tells of a decision that came out otherwise than recorded, and the first is shown. Decisions that need
    words which were forgotten, or whose keys are out of reach, are counted apart: nobody can verify them.
    """
    from actors.registry import ACTORS, actor_named
    from deploy.cli.rendering.replay import pending_text, without_actor_text
    from events.replay.run_replay import END, overall_hash, point_of

    if strict and not verify:
        raise WrongUse("--strict says what --verify is to fail on: give both")
    if models and not verify:
        raise WrongUse("--models says what --verify is to decide with: give both")
    if log_file is None and (jobs or 1) > 1:
        raise WrongUse("a stream is read by one process: --jobs goes with --log, of a ledger file or bundle")
    actors = [actor_named(name).name for name in names] or list(ACTORS)
    point = point_of(upto) if upto else END
    name, report, effects, end_ns, damage, without_actor = run_command(
        _replay(target, log_file, actors, key, verify, models, point, jobs)
    )
    if as_json:
        shown = {
            "source": name,
            "verified": verify,
            "clean": report.clean and not effects.wrong and not damage,
            "overall": overall_hash(report),
            **msgspec.structs.asdict(report),
            "effects": effects,
            "without_actor": without_actor,
        }
        if not verify:
            for name_of_check in ("coverage", "differences", "waiting", "effects", "without_actor"):
                del shown[name_of_check]
        print_json(shown)
    else:
        _show(name, report, effects, verify, end_ns)
        if without_actor:
            say(without_actor_text(without_actor))
    if not report.events:
        raise CheckFailed(f"nothing was replayed: {name} holds no event of {', '.join(actors)} up to there")
    if not report.clean or effects.wrong:
        raise CheckFailed(_complaint(report, effects))
    if verify and damage:
        raise CheckFailed(damage)
    if verify and not report.identical:
        why = (
            _unverified(report) if report.unverified else f"{name} holds no decision of {', '.join(actors)} up to there"
        )
        raise CheckFailed(f"nothing was verified: {why}")
    if verify and strict and report.unverified:
        raise CheckFailed(_unverified(report))
    if strict and without_actor:
        raise CheckFailed(without_actor_text(without_actor))
    overdue = [pending_text(each, end_ns) for each in report.waiting if each.is_overdue(end_ns)]
    if verify and strict and overdue:
        raise CheckFailed(f"decisions are missing, or their actors stood still: {'; '.join(overdue)}")


async def _replay(
    target: Target,
    log_file: Path | None,
    names: Sequence[str],
    key: str,
    verify: bool,
    models: str,
    upto: "Point",
    jobs: int | None,
) -> "tuple[str, Report, EffectReport, int, str, Mapping[str, int]]":
    """Replay the log that the options name.

    Returns its name, the report on decisions and that on effects, the time of its last event (Unix nanoseconds), a
    warning of damaged rows (or empty), and by subject the number of events of actors that this release lacks.
    """
    from actors.registry import ACTORS
    from deploy.replaying.parallel_replay import ReplayWork, jobs_for, replay_in_jobs
    from deploy.replaying.run_effect_check import check_effects
    from events.replay.presence_checks import check_reaches
    from events.replay.replay import Replay
    from events.replay.run_replay import run_replay
    from events.replay.sources import LedgerSource, time_of_end
    from events.replay.states.from_snapshots import snapshot_keeper
    from events.replay.unread_events import newer_behaviours_text
    from events.replay.verifying.effect_check import EffectReport
    from events.replay.verifying.without_actor import events_without_actor

    async with open_source(target, log_file) as source:
        say_note(await check_reaches(source, upto))
        last = min((await source.info()).last_seq, upto.seq)
        actors = [ACTORS[name] for name in names]
        only: dict[str, str] | None = None
        if key:
            only, left_out = await _partitions_with(source, actors, key)
            say_note(left_out)
            actors = [one for one in actors if one.name in only]
            names = [one.name for one in actors]
        if not isinstance(source, LedgerSource):
            jobs = 1
        elif jobs is None:
            jobs = 1 if key else jobs_for(last, verify)
        end_ns = min(await time_of_end(source, last), upto.time_ns)
        whole = not key and {*names} == {*ACTORS}
        effects = await check_effects(source, upto) if verify and whole else EffectReport({}, ())
        without_actor = await events_without_actor(source, ACTORS, upto) if verify and whole else {}
        with progress("verifying" if verify else "replaying", last) as advance:
            if jobs > 1 and isinstance(source, LedgerSource):
                work = ReplayWork(tuple(names), only, verify, upto, models)
                report = await replay_in_jobs(source, partial(open_source, target, source.file), work, jobs, advance)
            else:
                replaying = Replay(actors, source.partitions, verify=verify, only=only)
                reached = await snapshot_keeper(source, replaying, advance)
                report = await run_replay(source, replaying, upto, progress=reached)
        say_note(newer_behaviours_text(report.newer_behaviours))
        return source.name, report, effects, end_ns, source.damage.warning_text(source.name), without_actor


async def _partitions_with(source: "Source", actors: "Sequence[Actor[Any]]", key: str) -> tuple[dict[str, str], str]:
    """Return the partition of each actor that a key names, and a note on actors in which it names none.

    Raises:
        NothingFound: the log holds nothing of the key, or the key names no partition of any of these actors.
        NoSuchPartition: the key is ``all``, and an actor has several partitions.
    """
    from events.replay.key_use import use_of_key
    from events.replay.presence_checks import OtherKind, check_holds_key
    from events.replay.states.partition_state import partition_named, partitions_with

    tokens = {partition_named(actor, key, source.partitions) for actor in actors}
    await check_holds_key(source, key, tokens=[*tokens])
    use = await use_of_key(source, key)
    only, left_out = partitions_with(actors, key, use, source.partitions)
    if not left_out:
        return only, ""
    scope = next(actor.scope for actor in actors if actor.name in left_out)
    why = use.complaint(key, f"the states of {', '.join(left_out)} are kept", scope)
    if not only:
        raise OtherKind(why)
    return only, f"{counted(len(left_out), 'actor')} left out: {why}"


def _show(name: str, report: "Report", effects: "EffectReport", verify: bool, end_ns: int) -> None:
    from deploy.cli.rendering.replay import (
        pending_text,
        render_coverage,
        render_difference,
        render_effects,
        render_states,
    )
    from events.replay.run_replay import overall_hash

    out = console()
    out.print(render_states(report))
    span = f"sequence {report.first_seq:,} to {report.last_seq:,}" if report.events else "nothing"
    out.print(f"\nfolded {counted(report.events, 'event')}, {span}, of {name}")
    for code, count in report.unreadable.items():
        out.print(f"{count:,} of them cannot be read by this release: {code}")
    say(f"overall state hash {overall_hash(report)}")
    if not verify:
        return
    out.print()
    for part in (*render_coverage(report.coverage), *render_effects(effects)):
        out.print(part)
    if report.differences:
        out.print()
        for line in render_difference(report.differences[0]):
            out.print(line)
    elif report.clean and not effects.wrong:
        made = counted(report.identical, "decision")
        out.print(
            f"\n{'verified' if report.identical else 'nothing to verify'}: {made} made again came out as recorded"
        )
        if report.unverified:
            out.print(_unverified(report), soft_wrap=True)
        if report.pending:
            out.print(f"{counted(report.pending, 'message')} waited for a decision when the log ended", soft_wrap=True)
    for each in report.waiting:
        style = "yellow" if each.is_overdue(end_ns) else ""
        out.print(f"oldest without one: {pending_text(each, end_ns)}", style=style, soft_wrap=True)


def _complaint(report: "Report", effects: "EffectReport") -> str:
    different = sum(counts.different for counts in report.coverage.values())
    complaints = [f"{counted(different, 'decision')} came out otherwise than recorded"] if different else []
    complaints += [f"{counted(report.fold_errors, 'recorded event')} could not be folded"] if report.fold_errors else []
    complaints += [f"{counted(effects.wrong, 'recorded effect')} without a request of its own"] if effects.wrong else []
    return "; ".join(complaints)


def _unverified(report: "Report") -> str:
    first = report.first_unverified
    reasons = ", ".join(
        f"{reason} {count:,} (the first at sequence {first[reason]:,})"
        for reason, count in sorted(report.unverified.items())
    )
    return f"{counted(sum(report.unverified.values()), 'decision')} could not be made again: {reasons}"
