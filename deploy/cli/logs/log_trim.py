"""``neuraxis log trim``."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.logs.admin_access import admin_access
from deploy.cli.options import Number, Target, examples, json_option, target_options
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.wrapped_lines import say
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from deploy.copying.trimming import Trimmed

_DAY_S = 86_400.0
_MAX_DAYS = 36_500.0


@command(
    epilog=examples(
        "neuraxis log trim --older-than 90",
        "neuraxis log trim --older-than 90 --context admin.json --ledger ledger.db",
        "neuraxis log trim --snapshots",
    )
)
@target_options
@click.option("--older-than", type=Number(0, min_open=True, max=_MAX_DAYS), metavar="DAYS", help="Remove older events.")
@click.option("--snapshots", is_flag=True, help="Remove nothing; write the snapshots of all states anew.")
@click.option(
    "--ledger", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="The ledger that keeps what is removed.  [default: the data folder's]",
)  # fmt: skip
@json_option
def trim(target: Target, older_than: float | None, snapshots: bool, ledger: Path | None, as_json: bool) -> None:
    """Remove the beginning of a stream that its ledger keeps.

    The ledger is proved sound and equal to the stream first, and a snapshot of every state is written from it. Then
    workers start from the snapshots, and `why`, `state --at` and `replay` read the ledger. No set or worker may run.
    The last event is never removed. If this was interrupted, run it again.
    """
    if (older_than is None) != snapshots:
        raise WrongUse("name an age in days, --older-than DAYS, or --snapshots, and not both")
    with progress("folding", None) as advance:
        age_s = None if older_than is None else older_than * _DAY_S
        found = run_command(_trim(target, ledger or target.data.ledger, age_s, advance))
    if as_json:
        print_json(msgspec.structs.asdict(found))
        return
    say(
        f"stream {found.stream}: {counted(found.removed, 'event')} removed, sequence {found.first_seq:,} to "
        f"{found.last_seq:,} left; {counted(found.snapshots, 'snapshot')} written"
    )


async def _trim(target: Target, ledger: Path, age_s: float | None, advance: Callable[[int], None]) -> "Trimmed":
    from deploy.copying.trimming import trim

    config = target.config()
    async with admin_access(target, config) as access:
        return await trim(access, config, ledger, age_s, advance)
