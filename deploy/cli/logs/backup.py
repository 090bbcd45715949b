"""``neuraxis backup``."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.connect import open_log
from deploy.cli.options import Target, examples, json_option, ledger_option, target_options
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.replaying.source_opening import CATCH_UP_S
from deploy.cli.wrapped_lines import say, say_note
from deploy.processes.event_loop import run_command
from events.errors import LogError

if TYPE_CHECKING:
    from deploy.copying.ledger_backup import BackupResult
    from events.jetstream import JetStreamLog
    from events.replay.sources import LedgerSource

_COMPLETE_WAIT_S = 30.0
"""Seconds to wait until the ledger has reached the stream's end, for a copy that is to be complete."""


@command(
    epilog=examples(
        "neuraxis backup backups/monday",
        "neuraxis backup backups/monday --bundle --json",
        "neuraxis backup backups/monday --complete --keys",
        "neuraxis backup monday.db --data /srv/neuraxis",
        "neuraxis replay --verify --log backups/monday/ledger.db",
    )
)
@click.argument("to", type=click.Path(path_type=Path), metavar="FOLDER|FILE.db")
@target_options
@ledger_option("Copy this ledger instead of the data folder's.")
@click.option("--bundle", is_flag=True, help="Write the same events as a bundle, too, which `log import` takes.")
@click.option("--complete", is_flag=True, help="Fail (status 1) unless the copy is known to hold all of the stream.")
@click.option("--keys", is_flag=True, help="Write the keys of sealed sessions beside it, too; the set must run.")
@json_option
def backup(
    target: Target, to: Path, ledger: Path | None, bundle: bool, complete: bool, keys: bool, as_json: bool
) -> None:
    """Copy the ledger as it is at this moment, prove the copy sound, and keep it for your eyes alone.

    The set may run. In FOLDER it is ledger.db (and log.nxb); nothing that is there is replaced. Whatever takes --log
    reads the copy, and `restore` makes a log of it again. It holds what people said as the log does: sealed words stay
    sealed. Without their keys (--keys: session-keys.json) they count as forgotten once they are restored.
    """
    from deploy.copying.ledger_backup import KEYS, back_up_set, check_is_free

    if keys and to.suffix == ".db" and not to.is_dir():
        raise WrongUse(f"--keys writes a file beside the copy: name a folder instead of {to}")
    if keys:
        check_is_free(to / KEYS)
        run_command(_check_reachable(target))  # before anything is copied
    with progress("backing up", None):
        file, wait_s = ledger or target.data.ledger, _COMPLETE_WAIT_S if complete else CATCH_UP_S
        is_compared = ledger is None or complete
        end, unknown = run_command(_stream_end(target, file, wait_s)) if is_compared else (None, "")
        found = back_up_set(file, to, bundle=bundle)
        written = run_command(_write_keys(target, Path(found.ledger), to / KEYS)) if keys else None
    key_count, missing = written if written is not None else (None, 0)
    if unknown and not complete:  # with --complete it is the command's error
        say_note(f"whether the stream holds more than the ledger is not known: {unknown}")
    say_note(_missing_text(missing))
    say_note(_lost_text(found.last_seq - found.rows))
    behind = None if end is None else max(0, end - found.last_seq)
    if as_json:
        row = {**msgspec.structs.asdict(found), "behind": behind, "keys": key_count, "keys_missing": missing}
        row["restorable"] = found.rows == found.last_seq
        print_json(row)
    else:
        _print_result(found, to / KEYS, key_count, behind)
    if complete and behind is None:
        why = unknown or "no broker tells the stream's end"
        raise CheckFailed(f"whether the copy holds all of the stream is not known: {why}")
    if complete and behind:
        raise CheckFailed(f"the copy lacks {counted(behind, 'event')} of the stream: back up anew, into another folder")


def _print_result(found: "BackupResult", keys: Path, key_count: int | None, behind: int | None) -> None:
    say(
        f"{found.ledger}: {counted(found.rows, 'row')}, sequence {found.first_seq:,} to {found.last_seq:,},"
        f" head {found.head[:12]}"
    )
    if found.bundle:
        say(f"{found.bundle}: the same events as a bundle")
    if key_count:
        say(f"{keys}: {counted(key_count, 'key')} of sealed sessions; who has both can read their words")
    elif key_count == 0:
        say("no words in it are sealed by a key that is left, so that no keys were written")
    if behind:
        say(f"the stream is {counted(behind, 'event')} ahead of the ledger: not in the copy", err=True)


def _missing_text(missing: int) -> str:
    """Return the note on sessions that lack a key although it was never destroyed; empty if there are none."""
    if not missing:
        return ""
    return (
        f"{counted(missing, 'session')} of the copy {'lacks' if missing == 1 else 'lack'} a key at the broker, and "
        "not because of `neuraxis forget`: what was said under it stays closed; `neuraxis doctor` tells more (keys), "
        "unless the session has spoken again since"
    )


def _lost_text(lost: int) -> str:
    """Return the note on lost events, which are gaps in the middle of the log; empty if there are none."""
    if not lost:
        return ""
    return (
        f"{counted(lost, 'event')} that the log has lost {'is' if lost == 1 else 'are'} not in the copy: every command "
        "reads it with --log, but `restore` makes no log of it, since a stream has no gaps in its sequences"
    )


async def _check_reachable(target: Target) -> None:
    async with open_log(target):
        pass


async def _write_keys(target: Target, ledger: Path, file: Path) -> tuple[int, int]:
    """Write the keys that open a copy's sealed words; return how many, and how many sessions lack theirs."""
    from deploy.operating.session_keys import collect_keys, write_keys

    async with open_log(target) as log:
        found = await collect_keys(log, ledger)
    if found.keys.keys:
        write_keys(file, found.keys)
    return len(found.keys.keys), found.missing


async def _stream_end(target: Target, file: Path, wait_s: float) -> tuple[int | None, str]:
    """Return the stream's last sequence, after waiting ``wait_s`` at most for the ledger to reach it.

    Returns:
        The sequence, or None if no stream is reachable, or it is not that of the ledger; and why the sequence is not
        known (empty for a set that is stopped).

    Raises:
        LogError: the ledger is not there, or cannot be read.
    """
    from deploy.processes.running_set import NotReachableYet, NotRunning
    from events.replay.sources import LedgerSource

    with closing(LedgerSource(file)) as ledger:
        try:
            async with open_log(target) as live:
                return await _end_of(live, ledger, wait_s)
        except NotRunning as why:
            # The ledger of a killed set may not have reached the stream's end; of a stopped one, only it can be read.
            is_stopped = not (isinstance(why, NotReachableYet) or target.data.run_file.exists())
            return None, "" if is_stopped else str(why)
        except LogError as why:
            return None, str(why)


async def _end_of(live: "JetStreamLog", ledger: "LedgerSource", wait_s: float) -> tuple[int | None, str]:
    from events.log import is_same_message

    end = (await live.info()).last_seq
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while (head := (await ledger.info()).last_seq) < end and loop.time() < deadline:  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.02)
    row = ledger.at(min(head, end))
    # A trimmed event is no longer in the stream, so it cannot be compared.
    if row is not None and row.seq > live.trimmed_through and not is_same_message(await live.at(row.seq), row):
        return None, f"stream {live.stream} at {live.connection.access.servers} is another log"
    return end, ""
