"""``neuraxis log import``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.command_types import command
from deploy.cli.connect import access_to, names_broker
from deploy.cli.options import FILE, Target, examples, ledger_option, target_options
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import step_progress
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from deploy.copying.import_bundle import ImportResult
    from deploy.operating.session_keys import SessionKeys


@command(
    name="import",
    epilog=examples(
        "neuraxis log import case.nxb --data restored",
        "neuraxis log import case.nxb --context admin.json",
        "neuraxis log import case.nxb --ledger case.db",
    ),
)
@target_options
@click.argument("bundle", type=FILE)
@ledger_option("Into a new ledger file instead.")
def import_(target: Target, bundle: Path, ledger: Path | None) -> None:
    """Write a bundle's events into an empty log: the same sequences, times, headers, bodies and chain.

    The log is that of a data folder in which no set runs, or of the named broker, with a login that may make streams
    (the embedded broker's admin). If it was interrupted, run it again: it goes on where it stopped.
    """
    from events.bundles import is_bundle, read_manifest, unpack

    if ledger is not None and target.flags.named:
        raise WrongUse("--ledger names a file to write into, and the other options a broker: give one of the two")
    if not bundle.exists():
        raise WrongUse(f"{bundle}: there is no such file")
    if not is_bundle(bundle):
        raise WrongUse(f"{bundle} is no bundle: `neuraxis log export --format bundle` makes them")
    if not read_manifest(bundle).events:
        raise CheckFailed(f"{bundle} holds no events: nothing was imported; export it anew from a log that holds some")
    if ledger is not None:
        manifest = run_command(unpack(bundle, ledger))
        click.echo(f"{ledger}: {counted(manifest.events, 'event')}, head {manifest.head[:12]}", err=True)
        return
    report(target, run_command(import_copy(target, bundle)))


async def import_copy(target: Target, copy: Path, keys: "SessionKeys | None" = None) -> "ImportResult":
    """Import a bundle or a ledger into the log that the options name, and show how far it has come."""
    from deploy.copying.import_bundle import into_broker, into_folder
    from deploy.operating.session_keys import NO_KEYS

    config = target.config()
    with step_progress("importing") as progress:
        if names_broker(target, config):
            return await into_broker(access_to(target), copy, config, progress, keys or NO_KEYS)
        return await into_folder(target.data, copy, config, progress, keys or NO_KEYS)


def report(target: Target, result: "ImportResult") -> None:
    """Say on stderr what was imported, and what its workers need."""
    settings = target.config().log
    where = f" of {broker}" if (broker := broker_of(target)) else ""
    what = f"stream {settings.stream}{where}: {counted(result.events, 'event')}, head {result.head[:12]}"
    if result.resumed_after == result.events:
        what += "; they were imported already"
    elif result.resumed_after:
        what += f"; went on behind sequence {result.resumed_after:,}"
    click.echo(what, err=True)
    if result.sealed and result.keys:
        click.echo(f"people's words in it are sealed; {counted(result.keys, 'key')} put back", err=True)
    elif result.sealed and result.keys_given:
        click.echo("people's words in it are sealed; no key put back: each was there, or was destroyed since", err=True)
    elif result.sealed:
        click.echo(
            "people's words in it are sealed, and their keys are not in the copy: they count as forgotten", err=True
        )
    agents, sessions = result.partitions.agents, result.partitions.sessions
    if (settings.agents, settings.sessions) != (agents, sessions):
        click.echo(
            f"its workers need log.agents = {agents} and log.sessions = {sessions} in their configuration", err=True
        )


def broker_of(target: Target) -> str:
    """Return the servers of the broker that flags, ``NATS_URL`` or the configuration name; empty for a data folder."""
    return access_to(target).servers if names_broker(target, target.config()) else ""
