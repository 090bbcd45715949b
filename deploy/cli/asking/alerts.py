"""``neuraxis alerts``."""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.command_types import command
from deploy.cli.connect import target_store
from deploy.cli.following import FollowedTail
from deploy.cli.options import Target, examples, json_option, target_options, whole_number
from deploy.cli.outcomes import CheckFailed
from deploy.cli.output import latest, print_json
from deploy.cli.rendering.layout.counted_nouns import duration_text
from deploy.cli.rendering.layout.terminal import console, print_hanging
from deploy.cli.replaying.source_opening import log_option, open_source, stream_or_ledger, stream_source, until_ctrl_c
from deploy.cli.wrapped_lines import say_note
from events.errors import LogError
from schemas.intake.whole_numbers import read_whole_number

if TYPE_CHECKING:
    from deploy.cli.rendering.alerts import AlertShown, UnreadableAlerts
    from events.replay.sources import Source
    from schemas.vocabulary.alerts import SeverityName

_DEFAULT_COUNT = 10
"""How many of the latest alerts are printed without ``--since``."""

_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_ALERT_FILTERS = ("log.*.*.alert.*.*",)


class Since(click.ParamType[int]):
    """The type of ``--since``: a sequence of the log, positive; or a time as negative seconds, counted from now.

    A time is written as ``15m``, ``2h`` or ``1d`` ago, or in ISO 8601.
    """

    name = "since"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a sequence or a time; fails on anything else."""
        written = str(value).strip()
        if seq := read_whole_number(written):
            return seq
        number, unit = written[:-1], written[-1:]
        count = read_whole_number(number) if unit in _SECONDS_PER_UNIT and len(number) < 10 else None
        return -count * _SECONDS_PER_UNIT[unit] if count else self._seconds_since(written, param, ctx)

    def _seconds_since(self, written: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from events.replay.run_replay import END, BadPoint, TimeOutOfRange, point_of

        try:
            point = point_of(written)
        except TimeOutOfRange as wrong:
            self.fail(str(wrong), param, ctx)
        except BadPoint:
            point = END
        if point.time_ns == END.time_ns:
            self.fail(f"{written!r} is neither a sequence nor a time: write 1200, 2h or 2026-01-31T12:00Z", param, ctx)
        seconds = -(-(time.time_ns() - point.time_ns) // 10**9)
        if seconds < 1:
            self.fail(f"{written!r} lies ahead: name a time before now", param, ctx)
        return -seconds


@command(
    epilog=examples(
        "neuraxis alerts",
        "neuraxis alerts --severity critical --since 2h --no-follow",
        "neuraxis alerts --open || echo somebody should look",
        "neuraxis alerts --log backup/ledger.db --json | jq .summary",
    )
)
@target_options
@log_option
@click.option(
    "--severity",
    "least",
    type=click.Choice(["info", "warning", "critical"]),
    default="info",
    show_default=True,
    help="Only alerts as severe as this, or more.",
)
@click.option(
    "--since",
    type=Since(),
    metavar="SEQ|TIME",
    help=f"From a sequence on, from 15m, 2h, 1d ago, or from a time on.  [default: the last {_DEFAULT_COUNT}]",
)
@click.option(
    "--open",
    "only_open",
    is_flag=True,
    help="Print those that are firing, and end: with status 1 if any is, or if that is not known.",
)
@click.option(
    "--count",
    type=whole_number(1),
    metavar="N",
    help="Print N alerts, and end: the next; from --since on, the first; with --open, or if none can come, the last.",
)
@click.option("--no-follow", is_flag=True, help="End at the end of the log instead of waiting for more.")
@json_option
async def alerts(
    target: Target,
    log_file: Path | None,
    least: "SeverityName",
    since: int | None,
    only_open: bool,
    count: int | None,
    no_follow: bool,
    as_json: bool,
) -> None:
    """Print what calls for a person, as it is announced, until Ctrl-C; a ledger file is read to its end."""
    if only_open:
        await _print_firing(target, log_file, least, since, count, as_json)
        return
    follow = not no_follow and log_file is None
    found = _followed(target, least, since, count) if follow else _latest(target, log_file, least, since, count)
    printed = 0
    with until_ctrl_c():
        async with aclosing(found) as shown:
            async for each in shown:
                _print_alert(each, as_json)
                printed += 1
                if printed == count:
                    return


async def _print_firing(
    target: Target, log_file: Path | None, least: "SeverityName", since: int | None, count: int | None, as_json: bool
) -> None:
    from deploy.cli.rendering.alerts import UnreadableAlerts, is_severe_enough, still_firing
    from events.replay.presence_checks import check_holds_since

    async with open_source(target, log_file) as source:
        await check_holds_since(source, max(since or 1, 1))
        unread = UnreadableAlerts()
        last = (await source.info()).last_seq
        found = [each async for each in _recorded(source, since, last, unread)]
        whole = [each async for each in _recorded(source, None, last, UnreadableAlerts())] if since else found
        unwatched = "; ".join(filter(None, (await _unwatched(source, target), await _unseen(source, target, since))))
    firing = [each for each in still_firing(found) if is_severe_enough(each, least)]
    earlier = sum(is_severe_enough(each, least) for each in still_firing(whole)) - len(firing)
    if not firing and not unwatched and not unread.open:
        _say_there_is_none(source, "is firing", least, since)
    if earlier:
        say_note(f"announced before that, and firing still: {earlier}; without --since they are shown, too")
    for each in firing if count is None else latest(firing, count):
        _print_alert(each, as_json)
    if firing:
        counted = f"{len(firing)} alert{'s are' if len(firing) > 1 else ' is'} firing{unread.open_text}"
        raise CheckFailed(f"{counted}, and there may be more: {unwatched}" if unwatched else counted)
    if unwatched:
        raise CheckFailed(f"whether an alert fires is not known{unread.open_text}: {unwatched}")
    if unread.open:
        raise CheckFailed(f"no alert that can be read is firing{unread.open_text}")


async def _unwatched(source: "Source", target: Target) -> str:
    """Return why nobody makes alerts of what happens now, and what to do, or why that cannot be told.

    Empty if somebody does, or if nothing runs: a stopped set and a file have only the alerts that are recorded.
    """
    from deploy.health.stage_watch import absence_of
    from deploy.processes.broker.storage_watch import storing_fault
    from events.jetstream.storage_check import MAY_NOT_ASK
    from events.replay.sources import LedgerSource, StreamSource
    from schemas.input_path import WITNESSES

    if isinstance(source, LedgerSource) and source.unreached:
        return f"{source.unreached}, and the ledger does not hold what has happened since; `neuraxis doctor` tells more"
    if not isinstance(source, StreamSource):
        return ""
    try:
        absent = await absence_of(WITNESSES, source.log.connection, source.partitions)
    except LogError as wrong:
        return f"whether a living worker makes alerts of what happens cannot be told: {wrong}"
    if absent:
        return f"no living worker makes alerts of what happens: {absent}; `neuraxis doctor` looks at the set's stages"
    fault = await storing_fault(source.log.connection, source.log.stream, target_store(target))
    if not fault or fault == MAY_NOT_ASK:
        return ""
    return f"no new alert can be stored: {fault}; `neuraxis doctor` tells more"


async def _unseen(source: "Source", target: Target, since: int | None) -> str:
    """Return why firing alerts may be among the events removed from the stream; empty if none after ``since`` can."""
    from actors.alerts.settings import AlertsSettings
    from deploy.config.alert_lifetimes import longest_firing_ms
    from events.replay.sources import StreamSource

    if not isinstance(source, StreamSource) or not source.log.unseen:
        return ""
    first = await source.log.at((await source.info()).first_seq)
    after, from_ns = _start_of(since)
    if after >= source.log.trimmed_through or (first is not None and first.time_ns <= from_ns):
        return ""
    settings = target.config(more={"alerts": AlertsSettings}).section("alerts", AlertsSettings)
    if first is not None and time.time_ns() - first.time_ns > longest_firing_ms(settings) * 1_000_000:
        return ""
    return f"{source.log.unseen}, and alerts among them may fire still: ask where the ledger is"


def _print_alert(alert: "AlertShown", as_json: bool) -> None:
    from deploy.cli.rendering.alerts import line_of

    if as_json:
        print_json(alert)
    else:
        print_hanging(console(), line_of(alert), 9)


async def _recorded(
    source: "Source", since: int | None, upto: int, unread: "UnreadableAlerts"
) -> AsyncIterator["AlertShown"]:
    """Yield the recorded alerts from ``since`` (see :class:`Since`) up to a sequence; note the unreadable ones."""
    from deploy.cli.rendering.alerts import alert_of

    after, from_ns = _start_of(since)
    async for batch in source.history(_ALERT_FILTERS, after, upto):
        for stored in batch:
            if stored.time_ns < from_ns:
                continue
            unread.take(stored)
            if (alert := alert_of(stored)) is not None:
                yield alert


async def _latest(
    target: Target, log_file: Path | None, least: "SeverityName", since: int | None, count: int | None
) -> AsyncGenerator["AlertShown"]:
    from deploy.cli.rendering.alerts import UnreadableAlerts, is_severe_enough
    from events.replay.presence_checks import check_holds_since

    async with open_source(target, log_file) as source:
        await check_holds_since(source, max(since or 1, 1))
        unread = UnreadableAlerts()
        recorded = _recorded(source, since, (await source.info()).last_seq, unread)
        found = [each async for each in recorded if is_severe_enough(each, least)]
        say_note(await _unwatched(source, target))
    _say_unread(unread)
    if not found:
        _say_there_is_none(source, "is on record", least, since)
    for each in found if since is not None else latest(found, count or _DEFAULT_COUNT):
        yield each


def _say_unread(unread: "UnreadableAlerts") -> None:
    if unread.count:
        say_note(f"alerts that cannot be read are not shown: {unread.count}, the first {unread.first}")


def _say_there_is_none(source: "Source", what: str, least: "SeverityName", since: int | None) -> None:
    """Say on stderr that there is no alert: without any output it would be unclear whether the command has looked."""
    severity = "" if least == "info" else f" of severity {least}" + ("" if least == "critical" else " or above")
    when = ""
    if since is not None:
        when = f" from sequence {since:,} on" if since > 0 else f" in the last {duration_text(-since)}"
    say_note(f"no alert{severity} {what} in the {source.name}{when}")


async def _followed(
    target: Target, least: "SeverityName", since: int | None, count: int | None
) -> AsyncGenerator["AlertShown"]:
    """Yield the recorded alerts, then new ones. Both are read from the log, so that none between the two is missed.

    If the set is stopped, only its ledger can be read, and no new alerts come: then ``count`` means the latest ones.
    """
    from deploy.cli.rendering.alerts import UnreadableAlerts, alert_of, is_severe_enough
    from events.replay.presence_checks import check_holds_since
    from events.replay.sources import LedgerSource

    after, _ = _start_of(since)
    async with AsyncExitStack() as open_things:
        live = await open_things.enter_async_context(stream_or_ledger(target))
        source = live if isinstance(live, LedgerSource) else stream_source(open_things, live)
        last = (await source.info()).last_seq
        if isinstance(live, LedgerSource) or (since or 0) > last + 1:
            await check_holds_since(source, max(since or 1, 1))
        unread = UnreadableAlerts()
        past = [each async for each in _recorded(source, since, last, unread) if is_severe_enough(each, least)]
        _say_unread(unread)
        is_over = isinstance(live, LedgerSource)
        if is_over and not past:
            _say_there_is_none(source, "is on record", least, since)
        # ``count`` means the next alerts while the set runs, else the latest.
        shown = _DEFAULT_COUNT if count is None else count if is_over else 0
        for each in past if since is not None else latest(past, shown):
            yield each
        if isinstance(live, LedgerSource):
            return
        say_note(await _unwatched(source, target))
        reading = FollowedTail(await live.tail(_ALERT_FILTERS, max(after, last)), live)
        try:
            while True:
                for stored in await reading.next():
                    new = UnreadableAlerts()
                    new.take(stored)
                    _say_unread(new)
                    if (alert := alert_of(stored)) is not None and is_severe_enough(alert, least):
                        yield alert
        finally:
            await reading.close()


def _start_of(since: int | None) -> tuple[int, int]:
    """Return the sequence after which alerts are wanted, and the time (Unix nanoseconds) from which; None means all."""
    if since is None:
        return 0, 0
    return (since - 1, 0) if since > 0 else (0, time.time_ns() + since * 1_000_000_000)
