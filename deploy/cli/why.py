"""``neuraxis why``."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.options import Target, examples, json_option, target_options
from deploy.cli.source import log_option, opened_with_index

if TYPE_CHECKING:
    from actors.router.settings import RouterSettings
    from deploy.sources import Source
    from events.explain import Explanation

LAST = "last"
_LISTED = 5


@click.command(
    epilog=examples(
        "neuraxis why last",
        "neuraxis why 01936f2c8a41",
        "neuraxis why last --log backup/ledger.db --json | jq .complete",
    )
)
@click.argument("exchange")
@target_options
@log_option
@json_option
def why(target: Target, exchange: str, log_file: Path | None, as_json: bool) -> None:
    """Explain how an exchange ended: its events as a tree of causes, with the numbers behind each decision.

    EXCHANGE is an exchange's id, the beginning of one if no other begins so, or `last`.
    """
    import msgspec

    from deploy.rendering.terminal import console
    from deploy.rendering.why import render

    explanation, router = asyncio.run(_look_up(target, log_file, exchange))
    if as_json:
        click.echo(msgspec.json.encode(explanation).decode())
    else:
        console().print(render(explanation, router))


async def _look_up(target: Target, log_file: Path | None, wanted: str) -> tuple["Explanation", "RouterSettings | None"]:
    from deploy.cli.failures import WrongUse
    from events.explain import explain

    async with opened_with_index(target, log_file) as source:
        exchange = await _resolve(source, wanted)
        explanation = explain(await source.exchange(exchange))
        if explanation is None:
            raise WrongUse(f"no event of exchange {exchange} in the {source.name} can be read by this release")
        return explanation, await _settings_in_force(source, explanation)


async def _resolve(source: "Source", wanted: str) -> str:
    from deploy.cli.failures import WrongUse

    if wanted == LAST:
        last = await source.last_exchange()
        if last is None:
            raise WrongUse(f"the {source.name} holds no exchange yet: send one with `neuraxis ask`")
        return last
    found = await source.exchange_ids(wanted, _LISTED + 1)
    if wanted in found or len(found) == 1:
        return wanted if wanted in found else found[0]
    if not found:
        raise WrongUse(f"no exchange in the {source.name} begins with {wanted!r}: `neuraxis why last` takes the latest")
    more = ", ..." if len(found) > _LISTED else ""
    raise WrongUse(
        f"more than one exchange begins with {wanted!r}: {', '.join(found[:_LISTED])}{more}; give more of it"
    )


async def _settings_in_force(source: "Source", explanation: "Explanation") -> "RouterSettings | None":
    """Return the router's settings at a decision that the default ones do not explain; None otherwise."""
    import msgspec

    from actors.router.settings import RouterSettings
    from deploy.rendering.routing import adds_up, score_table
    from deploy.rendering.why import routing_decision
    from events.codec import Recorded, decode
    from schemas.actor import settings_of
    from schemas.vocabulary.router import RouterConfigured

    decision = routing_decision(explanation)
    if decision is None or adds_up(score_table(decision[1])):
        return None
    settings = None
    filters = [f"log.*.{source.partitions.session_token(explanation.session)}.router.configured"]
    async for batch in source.history(filters, 0, decision[0].seq):
        for recorded in map(decode, batch):
            if isinstance(recorded, Recorded) and isinstance(recorded.message.event, RouterConfigured):
                try:
                    settings = settings_of(recorded.message.event, RouterSettings)
                except msgspec.ValidationError:
                    settings = None  # another release's: the scores are then shown without an explanation
    return settings
