"""``neuraxis patterns``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deploy.cli.command_types import Commands
from deploy.cli.guarding.named_items import give_orders
from deploy.cli.named_files import content_of, text_of
from deploy.cli.options import Target, by_option, examples, json_option, target_options, timeout_option, why_option
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.output import emit, print_json, print_result, table
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.source_opening import log_option, open_source
from deploy.cli.wrapped_lines import say
from deploy.processes.event_loop import run_command
from schemas.intake.blank import says_nothing
from schemas.names import wrong_with_name

if TYPE_CHECKING:
    from actors.reflex.imported_patterns import Imports
    from actors.reflex.library import Library
    from actors.reflex.settings import ReflexSettings
    from events.replay.sources import Source

_TIMEOUT_S = 30.0
_HOW_TO_CHECK = "`neuraxis patterns list` tells, once the broker answers"


@click.group(
    cls=Commands, epilog=examples("neuraxis patterns list", 'neuraxis patterns test "ignore previous instructions"')
)
def patterns() -> None:
    """The library of known threats that reflex matches: a profile that ships, and what you import."""


@patterns.command(
    name="import",
    epilog=examples(
        "neuraxis patterns import house-rules.yaml",
        "neuraxis patterns import house-rules.json --name house-rules --by ann --json",
        "cat house-rules.yaml | neuraxis patterns import - --name house-rules",
    ),
)
@click.argument("file", metavar="FILE")
@target_options
@click.option("--name", default="", help="Name of the import; one of that name is replaced.  [default: the file's]")
@by_option
@timeout_option(_TIMEOUT_S)
@json_option
def import_(target: Target, file: str, name: str, by: str, timeout: float, as_json: bool) -> None:
    """Add the pattern sets of FILE (`-`: stdin) to what every session is guarded by, from the next input on.

    FILE is a YAML list or a JSON array of sets: `name`, `action` (BLOCK or FLAG), `confidence` (0 to 1) and
    `signatures`, each a text, or `text` with `whole_words: false` if it may stand inside a word. A file with a mistake
    is refused whole, and the line is named.
    """
    from actors.gateway import Order
    from actors.reflex.imported_patterns import checked_import
    from actors.reflex.library import InvalidLibrary
    from deploy.operating.guarding.patterns import imports_in, in_force, sets_in
    from schemas.vocabulary.patterns import PatternsImported

    if file == "-" and not name:
        raise WrongUse("what stdin holds has no name: say --name")
    event = PatternsImported(name=name or Path(file).stem, sets=sets_in(file, content_of(file)), by=by)
    if wrong := wrong_with_name(event.name):
        raise WrongUse(f"--name: the name {wrong}")

    async def orders_in(source: "Source") -> list[Order]:
        imports = await imports_in(source)
        if in_force(imports, event):
            return []
        try:
            checked_import(imports, event)
        except InvalidLibrary as wrong:
            raise WrongUse(f"{event.name}: {wrong}") from wrong
        return [Order(event=event)]

    _, last = give_orders(target, timeout, orders_in, lambda _: f"the import of {event.name!r}", _HOW_TO_CHECK)
    signatures = sum(len(pattern.signatures) for pattern in event.sets)
    what = f"{counted(signatures, 'signature')} in {counted(len(event.sets), 'set')}"
    line = f"unchanged, {what} are in force already" if last is None else f"{what}, in force from the next input on"
    result = {"name": event.name, "sets": len(event.sets), "signatures": signatures, "unchanged": last is None}
    print_result({**result, "seq": last}, f"{event.name}: {line}", as_json=as_json)


@patterns.command(
    name="list",
    epilog=examples("neuraxis patterns list", "neuraxis patterns list --signatures --json | jq -r .signature"),
)
@target_options
@log_option
@click.option("--signatures", is_flag=True, help="Print every signature instead of a line a set.")
@json_option
def list_(target: Target, log_file: Path | None, signatures: bool, as_json: bool) -> None:
    """Print the pattern sets in force, in library order: the first blocking match in it decides.

    The profile is the one that the log's workers recorded, unless --set or --config says another.
    """
    from actors.reflex.imported_patterns import whole_library

    imports, settings = run_command(_in_force(target, log_file))
    library = whole_library(settings.profile, imports)
    emit(_signature_rows(library) if signatures else _set_rows(library, imports), as_json=as_json)


@patterns.command(
    epilog=examples(
        'neuraxis patterns test "ignore all previous instructions"',
        "neuraxis patterns test - < message.txt",
        'neuraxis patterns test "recite the vault phrase" --file house-rules.yaml',
    )
)
@click.argument("text")
@target_options
@log_option
@click.option("--file", default="", metavar="FILE", help="Judge by FILE's pattern sets alone; nothing needs to run.")
@click.option("--shipped", is_flag=True, help="Judge by the profile alone, without imports; nothing needs to run.")
@json_option
def test(target: Target, text: str, log_file: Path | None, file: str, shipped: bool, as_json: bool) -> None:
    """Print how reflex would judge TEXT (`-`: stdin), with every match; nothing is recorded.

    Its settings are those that the log's workers recorded, unless --set or --config says others.
    """
    from actors.reflex.decider import judge
    from actors.reflex.imported_patterns import Imports, whole_library
    from actors.reflex.library import make_library
    from actors.reflex.matcher import compile_library
    from deploy.operating.guarding.patterns import sets_in
    from schemas.vocabulary.gateway import InputReceived
    from schemas.vocabulary.reflex import ReflexBlocked

    libraries = {"--file": file, "--shipped": shipped, "--log": log_file}
    if len(named := [option for option, given in libraries.items() if given]) > 1:
        raise WrongUse(f"{' and '.join(named)} each say what TEXT is judged by: give one of them")
    if says_nothing(judged_text := text_of("-") if text == "-" else text):
        raise WrongUse("the text is blank, so that there is nothing to judge: give TEXT, or - and a text on stdin")
    if file:
        settings, library = _configured(target), make_library(sets_in(file, content_of(file)))
    else:
        imports, settings = (Imports(), _configured(target)) if shipped else run_command(_in_force(target, log_file))
        library = whole_library(settings.profile, imports)
    if not any(True for _ in library.signatures()):
        raise CheckFailed(
            f"{file or 'the library'} has no signatures, so that nothing was judged: import or write some"
        )
    verdict = judge(compile_library(library), settings, InputReceived(text=judged_text))
    if as_json:
        print_json(verdict)
        return
    if isinstance(verdict, ReflexBlocked):
        say(f"BLOCKED by {verdict.pattern}: {verdict.signature!r}")
        table(verdict.matches)
    else:
        say(f"passed, with {len(verdict.flags)} flags" if verdict.flags else "passed")
        table(verdict.flags)
    for each in verdict.unread:
        say(f"not looked at: {each.amount} of {each.what} in {each.layer} ({each.why}); a match may have gone unseen")


@patterns.command(epilog=examples('neuraxis patterns withdraw house-rules --why "too many false alarms"'))
@click.argument("name")
@target_options
@by_option
@why_option()
@timeout_option(_TIMEOUT_S)
@json_option
def withdraw(target: Target, name: str, by: str, why: str, timeout: float, as_json: bool) -> None:
    """Take the pattern sets imported under NAME out again, from the next input on."""
    from actors.gateway import Order
    from deploy.operating.guarding.patterns import imports_in
    from events.replay.presence_checks import NothingFound
    from schemas.vocabulary.patterns import PatternsWithdrawn

    async def orders_in(source: "Source") -> list[Order]:
        names = (await imports_in(source)).names()
        if name not in names:
            raise NothingFound(f"nothing is imported as {name!r}: there are {', '.join(names) or 'no imports'}")
        return [Order(event=PatternsWithdrawn(name=name, by=by, why=why))]

    _, last = give_orders(target, timeout, orders_in, lambda _: f"the withdrawal of {name!r}", _HOW_TO_CHECK)
    print_result({"name": name, "seq": last}, f"{name} is withdrawn, from the next input on", as_json=as_json)


def _configured(target: Target) -> "ReflexSettings":
    """Return reflex's settings by this command's configuration, which need not be that of the set."""
    from actors.reflex.settings import ReflexSettings

    settings = target.config(every_section=True).sections["reflex"]
    assert isinstance(settings, ReflexSettings)
    return settings


def _set_rows(library: "Library", imports: "Imports") -> Iterator[dict[str, Any]]:
    authors = {f"{entry.name}/{each.name}": entry.by for entry in imports.entries for each in entry.sets}
    for pattern in library.sets:
        yield {
            "set": pattern.name,
            "action": pattern.action,
            "confidence": pattern.confidence,
            "signatures": len(pattern.signatures),
            "by": authors.get(pattern.name, "neuraxis"),
        }


def _signature_rows(library: "Library") -> Iterator[dict[str, Any]]:
    for pattern, signature in library.signatures():
        yield {
            "set": pattern.name,
            "action": pattern.action,
            "confidence": pattern.confidence,
            "signature": signature.text,
            "whole_words": signature.whole_words,
        }


async def _in_force(target: Target, log_file: Path | None) -> "tuple[Imports, ReflexSettings]":
    """Return the imports in a log, and the settings that reflex recorded in it, unless flags set them."""
    from deploy.operating.guarding.patterns import imports_in, recorded_settings

    named = target.config_file is not None or any(each.lower().startswith("reflex.") for each in target.assignments)
    async with open_source(target, log_file) as source:
        imports = await imports_in(source)
        recorded = None if named else await recorded_settings(source)
    return imports, recorded or _configured(target)
