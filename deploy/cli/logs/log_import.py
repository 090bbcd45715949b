"""``neuraxis log import``."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.command_types import command
from deploy.cli.options import Target, examples, target_options
from deploy.cli.rendering.layout.counted_nouns import counted

if TYPE_CHECKING:
    from deploy.operating.importing import Imported, Progress


@command(
    name="import",
    epilog=examples(
        "neuraxis log import case.nxb --data restored",
        "neuraxis log import case.nxb --context admin.json",
        "neuraxis log import case.nxb --ledger case.db",
    ),
)
@target_options
@click.argument("bundle", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--ledger", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Into a new ledger file instead."
)
def import_(target: Target, bundle: Path, ledger: Path | None) -> None:
    """Write a bundle's events into an empty log: the same sequences, times, headers, bodies and chain.

    The log is that of a data folder in which no set runs, or of the named broker, with a login that may make streams
    (the embedded broker's admin). If it was interrupted, run it again: it goes on where it stopped.
    """
    from deploy.cli.failures import CheckFailed, WrongUse
    from events.bundles import is_bundle, read_manifest, unpack

    if not bundle.exists():
        raise WrongUse(f"{bundle}: there is no such file")
    if not is_bundle(bundle):
        raise WrongUse(f"{bundle} is no bundle: `neuraxis log export --format bundle` makes them")
    if not read_manifest(bundle).events:
        raise CheckFailed(f"{bundle} holds no events: nothing was imported; export it anew from a log that holds some")
    if ledger is not None:
        manifest = asyncio.run(unpack(bundle, ledger))
        click.echo(f"{ledger}: {counted(manifest.events, 'event')}, head {manifest.head[:12]}", err=True)
        return
    from deploy.cli.rendering.layout.terminal import progress

    with progress("importing", 3 * read_manifest(bundle).events) as advance:
        done = {"checking": 0, "importing": 0, "reading back": 0}

        def told(what: str, reached: int) -> None:
            done[what] = reached
            advance(sum(done.values()))

        found = asyncio.run(_import(target, bundle, told))
    _report(target, found)


async def _import(target: Target, bundle: Path, progress: "Progress") -> "Imported":
    from deploy.cli.connect import access_to
    from deploy.operating.importing import into_broker, into_folder
    from deploy.processes.broker_access import effective_choice

    config = target.config()
    if effective_choice(target.flags, config.broker, os.environ).named:
        return await into_broker(access_to(target), bundle, config, progress)
    return await into_folder(target.data, bundle, config, progress)


def _report(target: Target, found: "Imported") -> None:
    settings, manifest = target.config().log, found.manifest
    what = f"stream {settings.stream}: {counted(manifest.events, 'event')}, head {manifest.head[:12]}"
    if found.after == manifest.events:
        what += "; they were imported already"
    elif found.after:
        what += f"; went on behind sequence {found.after:,}"
    click.echo(what, err=True)
    if found.sealed:
        click.echo(
            "people's words in it are sealed, and the keys are not in the bundle: they count as forgotten", err=True
        )
    if (settings.agents, settings.sessions) != (manifest.agent_partitions, manifest.session_partitions):
        click.echo(
            f"its workers need log.agents = {manifest.agent_partitions} and log.sessions = "
            f"{manifest.session_partitions} in their configuration",
            err=True,
        )
