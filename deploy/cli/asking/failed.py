"""``neuraxis failed``."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli.asking.ask import ANSWER_S
from deploy.cli.command_types import Commands
from deploy.cli.options import Target, examples, json_option, target_options, timeout_option, whole_number
from deploy.cli.outcomes import CheckFailed
from deploy.cli.output import emit
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.source_opening import has_sealed_words, log_option, open_indexed_source
from deploy.cli.wrapped_lines import say, say_note
from deploy.operating.deadline import Deadline
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from deploy.cli.rendering.decision import Exchange
    from deploy.operating.failed_decisions import FailedDecision
    from events.replay.sources import Source

_COLUMNS = ("seq", "time", "actor", "reason", "error", "failed_topic", "exchange", "ended", "rerun")


@click.group(cls=Commands, epilog=examples("neuraxis failed list", "neuraxis failed redrive"))
def failed() -> None:
    """Decisions and effects that failed, and their inputs sent again."""


@failed.command(
    name="list",
    epilog=examples("neuraxis failed list", "neuraxis failed list --actor router --log backup/ledger.db --json"),
)
@target_options
@log_option
@click.option("--actor", default="", help="Only of this actor or effector.")
@json_option
def list_(target: Target, log_file: Path | None, actor: str, as_json: bool) -> None:
    """Print what failed, oldest first: who failed on which message and why, and what became of the exchange.

    An exchange that ended FAILED without a failure on record, as at its deadline, is there with its stage and input.
    """
    from deploy.operating.failed_decisions import check_actor

    if actor:
        check_actor(actor)
    failures, source = run_command(_failures(target, log_file))
    found = [each for each in failures if not actor or each.actor == actor]
    _check_read(found, source, f"of {actor} " if actor else "")
    if not found and not as_json:
        say(f"nothing {f'of {actor} ' if actor else ''}has failed", err=True)
    emit(map(msgspec.structs.asdict, found), as_json=as_json, columns=_COLUMNS)


@failed.command(
    epilog=examples(
        "neuraxis failed redrive                # shows what would be sent",
        "neuraxis failed redrive --yes          # sends it",
        "neuraxis failed redrive 4711 --yes --json",
    )
)
@click.argument("sequences", type=whole_number(1), nargs=-1, metavar="[SEQ]...")
@target_options
@click.option("--yes", "confirmed", is_flag=True, help="Send them; without, only show what would be sent.")
@timeout_option(ANSWER_S, "How long each may take, and connecting before the first.")
@json_option
def redrive(target: Target, sequences: tuple[int, ...], confirmed: bool, timeout: float, as_json: bool) -> None:
    """Send the inputs of exchanges that FAILED again, once what failed them is mended; each in its session.

    SEQ is where `failed list` has a failure; without one, all are meant. An input is sent as a new exchange that names
    the old one, and only once: not if it was sent again before, by whomever, and not if its exchange ended otherwise
    than FAILED or was of none. Interrupted, it goes on where it stopped when it is run again.

    One that cannot be sent, such as a forgotten one, is named and passed over.

    Exit status 1 when one of them FAILED again or cannot be sent, or when failures are on record and this release can
    read none.
    """

    if not confirmed:
        run_command(_plan(target, sequences, as_json))
        return
    again, refused = run_command(_redrive(target, sequences, timeout, as_json))
    failed_again = sum(each.action == "FAILED" for each in again)
    if not as_json:
        say(f"{counted(len(again), 'input')} sent again, {failed_again:,} failed again", err=True)
    if failed_again:
        raise CheckFailed(f"{counted(failed_again, 'exchange')} FAILED again: `neuraxis failed list` tells on what")
    if refused:
        raise CheckFailed(f"{counted(refused, 'input')} cannot be sent again, as said above")


def _check_read(failures: "Sequence[FailedDecision]", source: "Source", whose: str = "") -> None:
    """Warn of failures that may be missing here; raise CheckFailed if none is here, and some may be missing."""
    from events.replay.sources import LedgerSource

    if not failures and (unread := source.unread.count):
        raise CheckFailed(f"no failure {whose}that can be read is on record; {unread} cannot be")
    if not isinstance(source, LedgerSource) or not source.unreached:
        return
    newer = f"{source.unreached}, and the ledger does not hold what has failed since"
    if not failures:
        raise CheckFailed(f"no failure {whose}is in the {source.name}, and there may be some: {newer}")
    say_note(f"there may be more: {newer}")


async def _failures(target: Target, log_file: Path | None) -> "tuple[list[FailedDecision], Source]":
    """Return what failed, and the source that it was read from, which is closed."""
    from deploy.operating.failed_decisions import failed_decisions

    async with open_indexed_source(target, log_file) as source:
        return await failed_decisions(source), source


async def _plan(target: Target, sequences: Sequence[int], as_json: bool) -> None:
    """Show what would be sent again, and why the rest would not."""
    from deploy.operating.failed_decisions import (
        exchanges_to_redrive,
        failed_decisions,
        inputs_to_redrive,
        named_failures,
    )
    from events.replay.sources import LedgerSource
    from events.sealing.keys import NoKeys

    refused: dict[str, str] = {}
    async with open_indexed_source(target, None) as source:
        failures = await failed_decisions(source)
        _check_read(failures, source)
        decisions = named_failures(failures, sequences)
        no_keys = isinstance(source.sealing.keyring.store, NoKeys)
        if no_keys and isinstance(source, LedgerSource) and await has_sealed_words(source):
            say_note("whether sealed inputs can be sent again, or were forgotten, is not known without their keys")
        else:
            async for exchange, options, text in inputs_to_redrive(source, decisions):
                if options is None:
                    refused[exchange] = text
    rows = []
    for each in decisions:
        why_not = each.why_not or refused.get(each.exchange, "")
        rows.append({**msgspec.structs.asdict(each), "redrive": not why_not, "why_not": why_not})
    emit(rows, as_json=as_json, columns=("seq", "actor", "reason", "exchange", "redrive", "why_not"))
    if not as_json:
        exchanges = len(exchanges_to_redrive(decisions)) - len(refused)
        then = ": --yes sends them" if exchanges else ""
        say(f"{counted(exchanges, 'input')} would be sent again{then}", err=True)


async def _redrive(
    target: Target, sequences: Sequence[int], timeout: float, as_json: bool
) -> "tuple[list[Exchange], int]":
    """Send the inputs again, one after another, and show how each ends.

    Returns the new exchanges, and how many inputs cannot be sent.

    Raises:
        Unavailable, NotRunning: the broker cannot be reached within ``timeout`` seconds.
    """
    from deploy.cli.asking.run_exchange import run_exchange, show
    from deploy.operating.failed_decisions import failed_decisions, inputs_to_redrive, named_failures

    again, refused = [], 0
    async with AsyncExitStack() as open_things:
        async with Deadline(timeout, target.begun).enforced() as opening:
            source = await open_things.enter_async_context(open_indexed_source(target, None, opening))
        failures = await failed_decisions(source)
        _check_read(failures, source)
        async for exchange, options, text in inputs_to_redrive(source, named_failures(failures, sequences)):
            if options is None:
                refused += 1
                say_note(f"not sent again: {exchange}: {text}")
                continue
            async with Deadline(timeout).enforced() as within:
                again.append(await run_exchange(target, text, within, **options))
            show(again[-1], as_json=as_json)
    return again, refused
