"""``neuraxis restore``."""

from pathlib import Path

import click

from deploy.cli.command_types import command
from deploy.cli.options import Target, examples, target_options
from deploy.cli.outcomes import WrongUse
from deploy.cli.wrapped_lines import say
from deploy.processes.event_loop import run_command


@command(
    epilog=examples(
        "neuraxis restore backups/monday --data restored",
        "neuraxis restore monday.db --data restored",
        "neuraxis restore backups/monday --context admin.json",
    )
)
@click.argument("backup", type=click.Path(path_type=Path), metavar="FOLDER|FILE")
@target_options
def restore(target: Target, backup: Path) -> None:
    """Put a backup into an empty log: the same sequences, times, headers, bodies and chain.

    FOLDER is one that `neuraxis backup` wrote; FILE a ledger or a bundle. It goes into a data folder in which no set
    runs, or to the named broker, with a login that may make streams. If it was interrupted, run it again: it goes on
    where it stopped. The keys of sealed sessions are put back, too, if the folder has them (`backup --keys`).
    """
    from deploy.cli.logs.log_import import broker_of, import_copy, report
    from deploy.copying.ledger_backup import BUNDLE, KEYS, LEDGER
    from deploy.operating.session_keys import read_keys

    if not backup.exists():
        raise WrongUse(f"{backup}: there is no such file or folder")
    copy, keys = backup, backup.parent / KEYS if backup.name in (LEDGER, BUNDLE) else None
    if backup.is_dir():
        found = [backup / name for name in (LEDGER, BUNDLE) if (backup / name).exists()]
        if not found:
            raise WrongUse(f"{backup} holds neither {LEDGER} nor {BUNDLE}: name a folder that `neuraxis backup` wrote")
        copy, keys = found[0], backup / KEYS
    given = read_keys(keys) if keys is not None and keys.exists() else None
    report(target, run_command(import_copy(target, copy, given)))
    if not broker_of(target):
        say(f"neuraxis up --data {target.data.path} goes on with it", err=True)
