"""``neuraxis why``."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.named_files import write_file
from deploy.cli.options import FILE, Target, examples, json_option, target_options
from deploy.cli.rendering.layout.terminal import console
from deploy.cli.replaying.named_exchange import resolve
from deploy.cli.replaying.source_opening import log_option, open_indexed_source

if TYPE_CHECKING:
    from actors.coherence.settings import CoherenceSettings
    from actors.router.settings import RouterSettings
    from events.replay.explain import Explanation
    from events.replay.sources import Source
    from schemas.event import Configured

S = TypeVar("S")


@command(
    epilog=examples(
        "neuraxis why last",
        "neuraxis why 01936f2c8a41",
        "neuraxis why last --svg why.svg",
        "neuraxis why last --log backup/ledger.db --json | jq .complete",
    )
)
@click.argument("exchange")
@target_options
@log_option
@click.option(
    "--svg", "svg", type=FILE, metavar="FILE", help="Also draw the tree there, with each event's verdict and time."
)
@json_option
async def why(target: Target, exchange: str, log_file: Path | None, svg: Path | None, as_json: bool) -> None:
    """Explain how an exchange ended: its events as a tree of causes, with the numbers behind each decision.

    The first line says it in plain words; docs/decisions-explained.md says what each word and number means.
    EXCHANGE is an exchange's id, the beginning of one if no other begins so, or `last`. The tree and the picture hold
    people's words.
    """
    from deploy.cli.rendering.why.tree import render, to_json
    from events.replay.explain import explain
    from events.replay.presence_checks import NothingFound

    async with open_indexed_source(target, log_file) as source:
        named = await resolve(source, exchange)
        explanation = explain(await source.exchange(named))
        if explanation is None:
            raise NothingFound(f"no event of exchange {named} in the {source.name} can be read by this release")
        missing = source.gaps.missing(await source.losses())
        router, coherence = await _router(source, explanation), await _coherence(source, explanation)
    if svg is not None:
        from deploy.cli.rendering.why.picture import picture_of

        write_file(svg, picture_of(explanation))
    if as_json:
        click.echo(to_json(explanation, missing).decode())
    else:
        console().print(render(explanation, router, coherence))


async def _router(source: "Source", explanation: "Explanation") -> "RouterSettings | None":
    """Return the router's settings at a decision that the default ones do not explain; None otherwise."""
    from actors.router.settings import RouterSettings
    from deploy.cli.rendering.why.recalculated import adds_up, score_table
    from deploy.cli.rendering.why.tree import last_of
    from schemas.vocabulary.router import ModeSelected, RouterConfigured

    found = last_of(explanation, ModeSelected)
    if found is None:
        return None
    node, selected = found
    if adds_up(score_table(selected)):
        return None
    return await _settings_in_force(source, explanation, node.seq, RouterConfigured, RouterSettings)


async def _coherence(source: "Source", explanation: "Explanation") -> "CoherenceSettings | None":
    """Return the coherence gate's settings at a verdict that the default ones do not explain; None otherwise."""
    from actors.coherence.settings import CoherenceSettings
    from deploy.cli.rendering.why.recalculated import explains
    from deploy.cli.rendering.why.tree import last_of
    from schemas.vocabulary.coherence import CoherenceConfigured, CoherencePassed, CoherenceRejected

    passed, rejected = last_of(explanation, CoherencePassed), last_of(explanation, CoherenceRejected)
    found = passed or rejected
    if found is None:
        return None
    node, verdict = found
    if explains(verdict, CoherenceSettings()):
        return None
    return await _settings_in_force(source, explanation, node.seq, CoherenceConfigured, CoherenceSettings)


async def _settings_in_force(
    source: "Source", explanation: "Explanation", upto: int, configured: "type[Configured]", settings: type[S]
) -> S | None:
    """Return the settings of an actor's partition of the exchange, as recorded last before a sequence."""
    from events.decoding import Recorded, decode
    from schemas.actor import settings_of
    from schemas.event import topic_of

    found, after = None, 0
    name = topic_of(configured).partition(".")[2]
    filters = [f"log.*.{token}.{name}" for token in source.partitions.session_tokens(explanation.session)]
    while (stored := await source.first(filters, after, upto)) is not None:
        recorded, after = decode(stored), stored.seq
        found = None  # also where another release wrote them: the numbers are shown without an explanation
        if isinstance(recorded, Recorded) and isinstance(recorded.message.event, configured):
            with suppress(msgspec.ValidationError):
                found = settings_of(recorded.message.event, settings)
    return found
