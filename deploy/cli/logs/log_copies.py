"""``neuraxis log export`` and ``log record``: copies of the log to read, replay or keep elsewhere."""

import secrets
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import click

from deploy.cli.command_types import command
from deploy.cli.named_files import writing_file
from deploy.cli.options import FILE, FOLDER, Target, examples, target_options, to_option, whole_number
from deploy.cli.outcomes import WrongUse
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.source_opening import filter_of, log_option, open_indexed_source, open_source
from deploy.cli.wrapped_lines import say, say_note
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from deploy.copying.export import Selection
    from events.bundles import Manifest
    from events.replay.run_replay import Point

DEFAULT_FOLDER = Path("tests/decisions")
"""The default folder of ``record``."""


@command(
    epilog=examples(
        "neuraxis log export --session ada-7 -o ada-7.jsonl",
        "neuraxis log export --format bundle -o case.nxb",
        "neuraxis log export --format bundle --redact --log ledger.db -o public.nxb",
    )
)
@target_options
@log_option
@click.option("--from", "first", type=whole_number(1), default=1, metavar="SEQ", help="From there on.")
@to_option
@click.option("--topic", default="", metavar="SUBJECT", help="Only this public subject; * and > are wildcards.")
@click.option("--agent", default="", help="Only this agent.")
@click.option("--session", default="", help="Only this session.")
@click.option("--exchange", default="", help="Only this exchange, by its whole id.")
@click.option("--format", "form", type=click.Choice(["jsonl", "bundle"]), default="jsonl", show_default=True)
@click.option("--redact", is_flag=True, help="Replace people's words by keyed hashes.")
@click.option(
    "--redact-key-file", "key_file", type=FILE, metavar="FILE",
    help="Key of the hashes, 32 bytes or more.  [default: a new one, told to nobody]",
)  # fmt: skip
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to; - is stdout (JSONL only).")
def export(
    target: Target,
    log_file: Path | None,
    first: int,
    upto: str,
    topic: str,
    agent: str,
    session: str,
    exchange: str,
    form: str,
    redact: bool,
    key_file: Path | None,
    output: str,
) -> None:
    """Write events as CloudEvents, one JSON object a line, or the log up to a point as a bundle; for your eyes alone.

    People's words are written as they are stored: readable, unless the log is sealed or --redact is given.
    """
    from deploy.copying.export import Selection
    from events.bundles.archive import SUFFIX
    from events.replay.run_replay import END, point_of

    point = point_of(upto) if upto else END
    if point.seq < first:
        raise WrongUse(f"--from {first} --to {upto}: the end lies before the beginning")
    key = _key(redact, key_file)
    if form == "bundle":
        if first != 1 or topic or agent or session or exchange:
            raise WrongUse("a bundle holds every event up to its end, or nobody could replay it: give only --to")
        if output == "-":
            raise WrongUse("a bundle cannot be written to stdout: name a file with -o")
        _say_written(output, run_command(_export_bundle(target, log_file, Path(output), point, key)))
        return
    if output.endswith(SUFFIX):
        raise WrongUse(
            f"-o {output}: bundles are named so, and this writes JSON lines: add --format bundle, or name it .jsonl"
        )
    selection = Selection(
        filter=filter_of(topic), first=first, upto=point, agent=agent, session=session, exchange=exchange
    )
    with writing_file(output) as file:
        count = run_command(_export_lines(target, log_file, selection, file, key))
    say(f"{output}: {counted(count, 'event')}", err=True)


@command(
    epilog=examples(
        "neuraxis log record polite-override",
        "neuraxis log record case-17 --exchange 01a221c1745568b1acdfcbfc02f868f6",
        "neuraxis log record ada-monday --session ada-7 --last 5 --redact",
    )
)
@target_options
@log_option
@click.argument("name")
@click.option("--exchange", "exchanges", multiple=True, metavar="ID", help="This exchange; may be repeated.")
@click.option("--session", default="", help="The exchanges of this session.")
@click.option("--last", type=whole_number(1), metavar="N", help="The N exchanges that ended last, of those.")
@click.option("--folder", type=FOLDER, default=DEFAULT_FOLDER, show_default=True)
@click.option("--redact", is_flag=True, help="Replace people's words by keyed hashes; those decisions go unverified.")
def record(
    target: Target,
    log_file: Path | None,
    name: str,
    exchanges: tuple[str, ...],
    session: str,
    last: int | None,
    folder: Path,
    redact: bool,
) -> None:
    """Keep a log as a bundle whose decisions the pytest plugin makes again: of all exchanges, or of those chosen.

    Every event up to the end of the chosen exchanges is in it, since any may have shaped their decisions.
    """
    from events.files.private_files import make_private_folder, remove_if_empty

    if not name or Path(name).name != name or name.startswith("."):
        raise WrongUse(f"{name!r} is no name of a bundle: use one without slashes, such as polite-override")
    if exchanges and (session or last):
        raise WrongUse("--exchange names exchanges one by one: leave out --session and --last")
    path = folder / f"{name}.nxb"
    if path.exists():
        raise WrongUse(f"{path} exists: choose another name, or delete it")
    try:
        made = make_private_folder(folder)
    except OSError as wrong:
        raise WrongUse(f"the folder {folder} cannot be made: {wrong.strerror}") from wrong
    choice = Choice(exchanges, session, last or 0)
    try:
        manifest = run_command(_record(target, log_file, path, choice, _key(redact, None)))
    except BaseException:
        remove_if_empty(made)
        raise
    _say_written(str(path), manifest)


class Choice(NamedTuple):
    """The exchanges to record: these ids, or those of a session, or the last ones to end. All empty: the whole log."""

    exchanges: tuple[str, ...]
    session: str
    last: int


def _key(redact: bool, file: Path | None) -> bytes | None:
    from events.bundles.redaction import MIN_KEY_BYTES
    from events.files.bounded_files import MOST_SECRET_BYTES, read_bounded

    if not redact:
        if file is not None:
            raise WrongUse("--redact-key-file is for --redact: give both")
        return None
    if file is None:
        return secrets.token_bytes(MIN_KEY_BYTES)
    try:
        key = read_bounded(file, MOST_SECRET_BYTES)
    except OSError as wrong:
        raise WrongUse(f"{file} cannot be read: {wrong.strerror}") from wrong
    if len(key) < MIN_KEY_BYTES:
        raise WrongUse(f"{file} holds {len(key)} bytes: a key needs {MIN_KEY_BYTES} or more, from a random source")
    return key


async def _export_lines(
    target: Target, log_file: Path | None, selection: "Selection", file: IO[bytes], key: bytes | None
) -> int:
    from deploy.copying.export import export_lines
    from events.replay.presence_checks import check_reaches

    async with open_source(target, log_file) as source:
        say_note(await check_reaches(source, selection.upto))
        return await export_lines(source, selection, file.write, key)


async def _export_bundle(
    target: Target, log_file: Path | None, path: Path, upto: "Point", key: bytes | None
) -> "Manifest":
    from deploy.copying.export import export_bundle
    from events.replay.presence_checks import check_reaches

    async with open_source(target, log_file) as source:
        say_note(await check_reaches(source, upto))
        return await export_bundle(source, path, upto, key)


async def _record(target: Target, log_file: Path | None, path: Path, choice: Choice, key: bytes | None) -> "Manifest":
    from deploy.copying.export import choose_exchanges, export_bundle
    from events.replay.presence_checks import span_of
    from events.replay.run_replay import END, Point

    async with open_indexed_source(target, log_file) as source:
        await span_of(source)
        if not any(choice):
            return await export_bundle(source, path, END, key)
        exchanges, session, last = choice
        chosen = await choose_exchanges(source, exchanges=exchanges, session=session, last=last)
        return await export_bundle(source, path, Point(seq=chosen.last_seq), key, chosen.exchanges)


def _say_written(path: str, manifest: "Manifest") -> None:
    redacted_from = f", redacted from {manifest.original_head[:12]}" if manifest.redacted else ""
    chosen = f", for {counted(len(manifest.chosen), 'exchange')}" if manifest.chosen else ""
    say(f"{path}: {counted(manifest.events, 'event')}{chosen}, head {manifest.head[:12]}{redacted_from}", err=True)
