"""``neuraxis log``."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deploy.cli.command_types import Commands
from deploy.cli.connect import open_log
from deploy.cli.logs.log_archive import archive
from deploy.cli.logs.log_copies import export, record
from deploy.cli.logs.log_import import import_
from deploy.cli.logs.log_repartition import repartition
from deploy.cli.logs.log_tail import tail
from deploy.cli.logs.log_test import test
from deploy.cli.logs.log_trim import trim
from deploy.cli.options import FILE, Target, examples, json_option, target_options
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.output import emit, print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.replaying.source_opening import (
    close_at_exit,
    log_option,
    stream_or_ledger,
    stream_source,
    warn_of_missing_wal,
)
from deploy.cli.wrapped_lines import say
from deploy.processes.event_loop import run_command
from events.errors import Unavailable, UnknownOutcome

if TYPE_CHECKING:
    from events.ledger import Comparison, Verification
    from events.losses import Loss

PROOF_TEXT = (
    "What this proves: the rows are those that were written, in their order{vouched}. The chain is unkeyed: it finds"
    " accidents and bit rot{tail}, not a clever forger, who could write the file and its hashes anew."
)
"""What a verified hash chain proves. An anchor is an event in the stream that records the chain's last hash so far."""


@click.group(cls=Commands, epilog=examples("neuraxis log tail", "neuraxis log info", "neuraxis log verify"))
def log() -> None:
    """Look at the log and its ledger; copy, move and keep what they hold.

    The ledger is an SQLite file, ledger.db in the data folder: its table `events` holds the log, and its read models
    `exchanges`, `routing_decisions` and `cortex_iterations` a row for each exchange, choice of a mode, and step of an
    ACT loop.
    """


for subcommand in (archive, export, import_, record, repartition, tail, test, trim):
    log.add_command(subcommand)


@log.command(epilog=examples("neuraxis log info", "neuraxis log info --log backup/ledger.db --json"))
@target_options
@log_option
@json_option
def info(target: Target, log_file: Path | None, as_json: bool) -> None:
    """Print the extent of the stream and of the ledger, and how many events each subject has."""
    rows = run_command(_info(target, log_file))
    if as_json:
        emit(rows, as_json=True)
        return
    extents = [{name: value for name, value in row.items() if name != "topics"} for row in rows]
    emit(extents, as_json=False)
    click.echo()
    emit([{"topic": topic, "events": count} for topic, count in rows[0]["topics"].items()], as_json=False)


@log.command(epilog=examples("neuraxis log verify", "neuraxis log verify --log backup/ledger.db --json"))
@target_options
@log_option
@json_option
def verify(target: Target, log_file: Path | None, as_json: bool) -> None:
    """Prove the ledger's hash chain, and compare the ledger with the stream where that can be reached.

    Exit status 1 when anything was found. The chain is unkeyed: it finds accidents and bit rot, not a clever forger.
    """
    from events.ledger import verify as verify_ledger
    from events.replay.readable_file import ledger_file
    from events.replay.sources import LedgerSource

    file = log_file or target.data.ledger
    with progress("verifying", None), ledger_file(file) as readable:
        chain = verify_ledger(readable)
        with closing(LedgerSource(readable)) as ledger:
            lacks_wal = ledger.lacks_wal
            warn_of_missing_wal(ledger)
        compared, unreachable = run_command(_compare(target, readable))
    findings = [*chain.findings, *(compared.findings if compared is not None else ())]
    count = chain.finding_count + (compared.finding_count if compared is not None else 0)
    if as_json:
        row = {"chain": chain, "stream": compared, "not_compared": unreachable, "lacks_journal": lacks_wal}
        print_json(row | {"ok": count == 0 and chain.rows > 0})
    else:
        say(
            f"chain: {counted(chain.rows, 'row')}, sequence {chain.first_seq:,} to {chain.last_seq:,},"
            f" {counted(chain.anchors, 'anchor')}, head {chain.head}"
        )
        say(_comparison_text(compared, unreachable))
        if chain.rows and not chain.models_compared:
            say(_MODELS_NOT_COMPARED["damaged" if chain.finding_count else "of_other_release"])
        for loss in chain.losses:
            say(_loss_text(loss))
        for line in _unroutable_lines(chain):
            say(line)
        emit(findings, as_json=False)
        say(_proof(compared) if chain.rows else "This proves nothing: no row was looked at.", indent=0)
    if count:
        raise CheckFailed(
            f"{file}: {counted(count, 'finding')}, the first at sequence {findings[0].seq}: {findings[0].detail}"
        )
    if not chain.rows:
        raise CheckFailed(f"{file} holds no rows, so that nothing was verified: {_why_empty(file, lacks_wal)}")


_MODELS_NOT_COMPARED = {
    "damaged": "read models: not compared, since the events that they are folded from are damaged",
    "of_other_release": (
        "read models: not compared, since another release folded them; `neuraxis log rebuild` folds them anew, and so "
        "does the next start of the ledger's set"
    ),
}


def _why_empty(file: Path, lacks_wal: bool) -> str:
    if lacks_wal:
        return f"it was copied without {file.name}-wal, which held them; `neuraxis backup` copies all of a ledger"
    return "its set stored nothing yet; name another file with --log, or verify again once something was stored"


@log.command(epilog=examples("neuraxis log rebuild", "neuraxis log rebuild --log copy/ledger.db"))
@target_options
@click.option("--log", "log_file", type=FILE, metavar="FILE", help="The ledger file.")
def rebuild(target: Target, log_file: Path | None) -> None:
    """Drop the ledger's read models and fold them anew from its events: exchanges, routing_decisions and the others."""
    from events.bundles import is_bundle
    from events.ledger import rebuild as rebuild_models
    from events.replay.presence_checks import span_of
    from events.replay.sources import LedgerSource

    target.refuse_broker("this folds the tables of a ledger file")
    file = log_file or target.data.ledger
    if file.is_file() and is_bundle(file):
        raise WrongUse(f"{file} is a bundle, which keeps no read models: name a ledger file")
    with closing(LedgerSource(file)) as ledger:
        run_command(span_of(ledger))
    with progress("rebuilding", None):
        rebuild_models(file)
    say(f"rebuilt the read models of {file}")


async def _info(target: Target, log_file: Path | None) -> list[dict[str, Any]]:
    """Return a row for the stream, if it can be reached, and one for the ledger, if there is one."""
    from events.replay.sources import LedgerSource, Source

    file = log_file or target.data.ledger
    async with AsyncExitStack() as open_things:
        sources: list[Source] = []
        if log_file is None:
            found = await open_things.enter_async_context(stream_or_ledger(target))
            if not isinstance(found, LedgerSource):
                found.archive = None  # the stream's own extent, without what the ledger holds of its beginning
            sources.append(found if isinstance(found, LedgerSource) else stream_source(open_things, found))
        if log_file is not None or (file.exists() and not isinstance(sources[0], LedgerSource)):
            ledger = LedgerSource(file)
            await close_at_exit(open_things, ledger)
            sources.append(ledger)
        return [await _extent_row(source) for source in sources]


async def _extent_row(source: Any) -> dict[str, Any]:
    found = await source.info()
    return {
        "source": source.name,
        "first_seq": found.first_seq,
        "last_seq": found.last_seq,
        "messages": found.messages,
        "bytes": found.bytes,
        "agent_partitions": found.partitions.agents,
        "session_partitions": found.partitions.sessions,
        "topics": await source.counts(),
    }


async def _compare(target: Target, file: Path) -> tuple["Comparison | None", str]:
    """Compare a ledger with its stream; return None and the reason if the stream cannot be reached."""
    from deploy.processes.running_set import NotRunning
    from events.ledger import compare

    try:
        async with open_log(target) as live:
            stream = live.as_stored()
            stream.archive = None  # else events removed from the stream would be read from the ledger itself
            return await compare(file, stream), ""
    except (NotRunning, Unavailable, UnknownOutcome) as why:
        return None, str(why)


def _proof(comparison: "Comparison | None") -> str:
    if comparison is not None and comparison.anchors:
        return PROOF_TEXT.format(vouched=", and the anchors in the stream vouch for them", tail=", and a cut tail")
    return PROOF_TEXT.format(vouched="; no anchor in a stream vouches for them", tail="")


def _loss_text(loss: "Loss") -> str:
    event = loss.event
    kept = f"; {event.kept_as} holds them" if event.kept_as else ""
    again = ", and their sequences given to others" if event.given_again else ""
    return (
        f"lost: {counted(event.through_seq - event.first_seq + 1, 'message')}, sequence {event.first_seq:,} to "
        f"{event.through_seq:,}{again}; recorded at {loss.seq:,}{kept}"
    )


def _unroutable_lines(chain: "Verification") -> Iterator[str]:
    """Yield a line for each subject whose events no actor of this release reads; the events are sound."""
    unread = "read by no actor of this release"
    for found in chain.unroutable:
        yield (
            f"{unread}: {counted(found.events, 'event')} on {ascii(found.subject)[1:-1]}, the first at sequence "
            f"{found.first_seq:,}: {found.why}"
        )
    if more := chain.unroutable_count - sum(found.events for found in chain.unroutable):
        yield f"{unread}: {counted(more, 'event')} more, on other subjects"


def _comparison_text(comparison: "Comparison | None", unreachable: str) -> str:
    if comparison is None:
        return f"stream: not compared: {unreachable}"
    behind = f", which is {counted(comparison.behind, 'event')} ahead" if comparison.behind else ""
    compared, anchors = counted(comparison.compared, "event"), counted(comparison.anchors, "anchor")
    return f"stream: {compared} equal{behind}; {anchors} checked"
