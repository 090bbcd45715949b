"""``neuraxis log archive``."""

import time
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.options import Number, Target, examples, json_option, ledger_option, target_options
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.wrapped_lines import say

_DAY_S = 86_400.0
_MAX_DAYS = 36_500.0
_NS = 1_000_000_000


@command(
    epilog=examples(
        "neuraxis log archive --before 2026-07-01",
        "neuraxis log archive --older-than 90 --ledger /var/lib/neuraxis/set/ledger.db",
        "neuraxis log archive --before 2026-01-01 --join",
    )
)
@target_options
@click.option("--before", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="Archive rows of before this day.")
@click.option("--older-than", type=Number(0, max=_MAX_DAYS), metavar="DAYS", help="Archive older rows.")
@click.option("--join", is_flag=True, help="Put the archives that there are into the new one.")
@ledger_option("The ledger.  [default: the data folder's]")
@json_option
def archive(
    target: Target, before: datetime | None, older_than: float | None, join: bool, ledger: Path | None, as_json: bool
) -> None:
    """Move the oldest rows of a ledger into a file of their own beside it.

    The file is named by the days (UTC) of its first and last row. Every command reads a ledger and its archives as one;
    the hash chain goes on over them. They must stay beside the ledger; a link will do. Nothing may use the ledger
    meanwhile, so stop the set. If this was interrupted, run it again.
    """
    from events.ledger import archive as archive_rows

    target.refuse_broker("this moves rows of a ledger file")
    if (before is None) == (older_than is None):
        raise WrongUse("name a day, --before DATE, or an age in days, --older-than DAYS, and not both")
    if before is not None:
        before_s = before.replace(tzinfo=UTC).timestamp()
        if before_s > time.time() + _DAY_S:
            raise WrongUse(f"--before {before:%Y-%m-%d} lies ahead, so that all rows would go: name a past day")
    else:
        assert older_than is not None
        before_s = time.time() - older_than * _DAY_S
    with progress("archiving", None):
        # No row is older than 1970, and SQLite holds no number of nanoseconds of before 1677.
        found = archive_rows(ledger or target.data.ledger, max(0, int(before_s * _NS)), join=join)
    if as_json:
        print_json(msgspec.structs.asdict(found))
        return
    if not found.rows:
        say(
            f"nothing was archived{' or joined' if join else ''}: no row of before then is in the ledger but those "
            f"that stay there (the last, and the last anchor); {counted(found.left, 'row')} left in the ledger"
            f"{', and no room of rows that were archived before' if found.path else ''}"
        )
        return
    joined = f", {counted(len(found.joined), 'former archive')} in it" if found.joined else ""
    say(
        f"{found.path}: {counted(found.rows, 'row')}, sequence {found.first_seq:,} to {found.last_seq:,}{joined}; "
        f"{counted(found.left, 'row')} left in the ledger"
    )
