"""``neuraxis what-if``."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.named_files import content_of, write_file
from deploy.cli.options import (
    Number,
    Target,
    examples,
    json_option,
    judging_by,
    models_option,
    target_options,
    to_option,
    weights_option,
)
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import console, print_hanging, progress
from deploy.cli.replaying.plot_option import check_plot, plot_option
from deploy.cli.replaying.source_opening import log_option, open_source
from deploy.cli.wrapped_lines import say_note
from deploy.config.assignments import key_of
from deploy.processes.event_loop import run_command

_DEFAULT_AGENT = "default"

if TYPE_CHECKING:
    from deploy.config.loading import Layer
    from deploy.replaying.what_if import Sweep
    from events.replay.run_replay import Point
    from events.replay.whatif import Report
    from schemas.vocabulary.patterns import PatternSet
    from schemas.vocabulary.precedents import PrecedentRecorded


@command(
    name="what-if",
    epilog=examples(
        "neuraxis what-if --set router.base_scores.RESPOND=0.55",
        "neuraxis what-if --config stricter.toml --log backup/ledger.db --fail-over 2",
        "neuraxis what-if --patterns house-rules.yaml --json | jq .changed",
        "neuraxis what-if --behaviour latest --log backup/ledger.db",
        "neuraxis what-if --weights models --log backup/ledger.db",
        "neuraxis what-if --sweep router.base_scores.RESPOND=0.30:0.60:0.05 --plot sweep.svg",
    ),
)
@target_options
@log_option
@click.option("--patterns", default="", metavar="FILE", help="These imported patterns instead of the recorded ones.")
@click.option("--precedents", default="", metavar="FILE", help="These precedents instead of the recorded ones.")
@click.option("--agent", default=_DEFAULT_AGENT, show_default=True, help="The agent whose precedents FILE holds.")
@click.option("--sweep", default="", metavar="KEY=FROM:TO:STEP", help="Try each of these values.")
@plot_option("the sweep")
@click.option(
    "--behaviour",
    type=click.Choice(("recorded", "latest")),
    default="recorded",
    show_default=True,
    help="Decide each stretch under the behaviour that was in force there, or all under today's.",
)
@models_option
@weights_option
@to_option
@click.option(
    "--examples", "shown", type=click.IntRange(0, 1000), default=5, show_default=True, help="Changes to show."
)
@click.option(
    "--fail-over",
    type=Number(0, 100),
    metavar="PERCENT",
    help="Exit status 1 if more than this share of exchanges ends otherwise, or may, as far as can be told.",
)
@click.option("--text/--no-text", "texts", default=True, show_default=True, help="Show people's words, or hide them.")
@json_option
def what_if(
    target: Target,
    log_file: Path | None,
    patterns: str,
    precedents: str,
    agent: str,
    sweep: str,
    plot: Path | None,
    behaviour: str,
    models: str,
    weights: str | None,
    upto: str,
    shown: int,
    fail_over: float | None,
    texts: bool,
    as_json: bool,
) -> None:
    """Decide the recorded inputs anew under other settings, and tell which decisions change.

    --set and --config say what is otherwise; all other settings are as recorded. Inputs, times and a model's answers
    are taken from the log: nothing runs, and nothing is recorded. A decision that asks a model something it was never
    asked ends its exchange there, and is counted. With unchanged settings nothing changes. --weights tries weights that
    `neuraxis train detection` wrote before workers adopt them.

    Changed exchanges are named by the beginning of their text; --no-text hides people's words.
    """
    from deploy.config.loading import file_layer
    from deploy.operating.current_user import current_user_name
    from deploy.operating.guarding.patterns import sets_in
    from deploy.operating.guarding.precedents import precedents_in
    from deploy.replaying.what_if import settings_of, sweep_of
    from events.replay.run_replay import END, point_of

    if fail_over is not None and isnan(fail_over):
        raise WrongUse("--fail-over: a share from 0 to 100, in percent")
    if agent != _DEFAULT_AGENT and not precedents:
        raise WrongUse("--agent says whose precedents --precedents FILE holds: give both")
    flags = target.changes()
    file_values = file_layer(target.config_file) if target.config_file is not None else None
    sets = sets_in(patterns, content_of(patterns)) if patterns else ()
    tried_precedents = precedents_in(precedents, content_of(precedents), current_user_name()) if precedents else []
    values = sweep_of(sweep) if sweep else None
    if values is not None:
        _check_sweep(values, target.assignments)
    if plot is not None:
        _check_plot(plot, values)
    point = point_of(upto) if upto else END
    if not (settings_of(file_values, flags) or sets or tried_precedents or values or weights or behaviour == "latest"):
        say_note(
            "no actor's setting is changed, so that the log is compared with itself: name one with --set or --config"
        )
    with judging_by(weights):
        reports = run_command(
            _run(target, log_file, file_values, flags, values, sets, tried_precedents, agent, behaviour, point, shown)
        )
    if not texts:
        from deploy.cli.rendering.what_if import without_texts

        reports = list(map(without_texts, reports))
    if values is None:
        _show(reports[0], shown, as_json)
    else:
        _show_sweep(values, reports, as_json)
        if plot is not None:
            _draw(plot, values, reports)
    _check_share(reports, fail_over)


def _check_sweep(sweep: "Sweep", assignments: "Sequence[str]") -> None:
    """Refuse ``--set`` of the setting that is swept: one of the two would be ignored."""
    swept = key_of(sweep.key)
    for key in map(key_of, assignments):
        if f"{swept}.".startswith(f"{key}.") or key.startswith(f"{swept}."):
            raise WrongUse(f"--set {key} and --sweep {sweep.key} change the same setting: give one of them")


def _check_plot(plot: Path, sweep: "Sweep | None") -> None:
    """Refuse an impossible drawing, before anything is decided."""
    if sweep is None:
        raise WrongUse("--plot draws a sweep: give --sweep KEY=FROM:TO:STEP, too")
    check_plot(plot)


def _draw(plot: Path, sweep: "Sweep", reports: "Sequence[Report]") -> None:
    from deploy.cli.rendering.sweeps import draw_sweep

    points = list(zip(sweep.values, reports, strict=True))
    write_file(plot, draw_sweep(sweep.key, points, plot.suffix.lower()))


async def _run(
    target: Target,
    log_file: Path | None,
    file_values: "Layer | None",
    flags: "Sequence[Layer]",
    sweep: "Sweep | None",
    patterns: "Sequence[PatternSet]",
    precedents: "Sequence[PrecedentRecorded]",
    agent: str,
    behaviour: str,
    upto: "Point",
    shown: int,
) -> "list[Report]":
    from deploy.replaying.what_if import changes_of, layer_at, run, settings_of
    from events.replay.presence_checks import NothingFound, check_holds_key, check_reaches, span_of
    from schemas.actor import Scope

    variants = [[*flags, layer_at(sweep, value)] for value in sweep.values] if sweep is not None else [flags]
    settings = [settings_of(file_values, variant) for variant in variants]
    async with open_source(target, log_file) as source:
        changes = [
            changes_of(
                each,
                source.partitions,
                patterns=patterns,
                precedents=precedents,
                agent=agent,
                latest=behaviour == "latest",
            )
            for each in settings
        ]
        say_note(await check_reaches(source, upto))
        if precedents:
            # Otherwise no decision would use them, and nothing would change.
            await check_holds_key(source, agent, scope=Scope.AGENT, kept="precedents are kept")
        last = min((await source.info()).last_seq, upto.seq)
        with progress("deciding anew", last) as advance:
            reports = await run(source, changes, upto=upto, examples=shown, progress=advance)
        if not any(report.exchanges > report.unread_inputs for report in reports):
            end = (await span_of(source)).end

            unread = sum(max(reports, key=lambda report: sum(report.unreadable.values())).unreadable.values())
            raise NothingFound(
                f"no exchange in the {source.name} up to there, which ends at {end}: nothing was decided anew; "
                + (
                    f"{counted(unread, 'event')} cannot be read by this release, so use the one that wrote them"
                    if unread
                    else "send an input with `neuraxis ask`, or name another log"
                )
            )
        return reports


def _show(report: "Report", shown: int, as_json: bool) -> None:
    if as_json:
        _print({"share": report.share, "compared": report.compared}, report)
        return
    from rich.text import Text

    from deploy.cli.rendering.what_if import render_report

    out = console()
    for part in render_report(report, shown):
        if isinstance(part, Text):
            print_hanging(out, part, 4)
        else:
            out.print(part)


def _show_sweep(sweep: "Sweep", reports: "Sequence[Report]", as_json: bool) -> None:
    if as_json:
        for value, report in zip(sweep.values, reports, strict=True):
            _print({"key": sweep.key, "value": value, "share": report.share, "compared": report.compared}, report)
        return
    from rich.text import Text

    from deploy.cli.rendering.what_if import render_sweep
    from deploy.replaying.what_if_verdicts import measured_setting_warnings, uncompared_texts

    out = console()
    out.print(render_sweep(sweep.key, list(zip(sweep.values, reports, strict=True))))
    # Warnings on settings that change what running processes measure: the log has no other measurements.
    for line in dict.fromkeys(
        text for report in reports for text in (*measured_setting_warnings(report), *uncompared_texts(report))
    ):
        print_hanging(out, Text(line, "yellow"), 4)


def _print(more: dict[str, Any], report: "Report") -> None:
    print_json({**more, **msgspec.structs.asdict(report)})


def _check_share(reports: "Sequence[Report]", fail_over: float | None) -> None:
    """Raise CheckFailed if more than ``fail_over`` percent of the exchanges end, or may end, differently."""
    from deploy.replaying.what_if_verdicts import complaint

    if fail_over is None:
        return
    for report in sorted(reports, key=lambda report: report.share, reverse=True):
        if reason := complaint(report, fail_over):
            raise CheckFailed(reason)
