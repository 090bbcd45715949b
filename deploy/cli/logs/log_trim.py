"""``neuraxis log trim``."""

from pathlib import Path

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.connect import admin_access
from deploy.cli.options import Number, Target, examples, json_option, ledger_option, target_options
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.wrapped_lines import say

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
@ledger_option("The ledger that keeps what is removed.  [default: the data folder's]")
@json_option
async def trim(target: Target, older_than: float | None, snapshots: bool, ledger: Path | None, as_json: bool) -> None:
    """Remove the beginning of a stream that its ledger keeps.

    The ledger is proved sound and equal to the stream first, and a snapshot of every state is written from it. Then
    workers start from the snapshots, and `why`, `state --at` and `replay` read the ledger. No set or worker may run.
    The last event is never removed. If this was interrupted, run it again.
    """
    from deploy.copying.trimming import trim as trim_stream

    if (older_than is None) != snapshots:
        raise WrongUse("name an age in days, --older-than DAYS, or --snapshots, and not both")
    age_s, config = None if older_than is None else older_than * _DAY_S, target.config()
    with progress("folding", None) as advance:
        async with admin_access(target, config) as access:
            found = await trim_stream(access, config, ledger or target.data.ledger, age_s, advance)
    if as_json:
        print_json(msgspec.structs.asdict(found))
        return
    say(
        f"stream {found.stream}: {counted(found.removed, 'event')} removed, sequence {found.first_seq:,} to "
        f"{found.last_seq:,} left; {counted(found.snapshots, 'snapshot')} written"
    )
