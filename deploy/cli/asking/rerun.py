"""``neuraxis rerun``."""

from pathlib import Path

import click

from deploy.cli.asking.ask import ANSWER_S
from deploy.cli.command_types import command
from deploy.cli.connect import run_within
from deploy.cli.options import Target, examples, json_option, target_options, timeout_option
from deploy.cli.replaying.named_exchange import resolve
from deploy.cli.replaying.source_opening import log_option
from deploy.operating.deadline import Deadline


@command(
    epilog=examples(
        "neuraxis rerun last",
        "neuraxis rerun 01936f2c8a41 --session travel --json",
        "neuraxis rerun 01936f2c8a41 --log backup/ledger.db",
    )
)
@click.argument("exchange")
@target_options
@log_option
@click.option("--session", default="", help="Session that it belongs to now.  [default: a new one]")
@timeout_option(ANSWER_S)
@json_option
def rerun(target: Target, exchange: str, log_file: Path | None, session: str, timeout: float, as_json: bool) -> None:
    """Send the input of an exchange again, live, as a new exchange that names the old one; print the answer.

    It is decided by today's settings and states, a model is asked anew, and agents learn from it. `what-if` decides
    recorded inputs anew without any of that, and `replay --verify` proves the recorded decisions.

    The same agent gets the same text, layers and options; an input that was forwarded is only checked.
    EXCHANGE is an exchange's id, the beginning of one if no other begins so, or `last`; --log takes it from a file.

    Exit status 0 for every decision, a refusal included; 1 when the exchange FAILED.
    """
    from deploy.cli.asking.ask import new_session, streamed_answer_for
    from deploy.cli.asking.run_exchange import check_it_ended_well, run_exchange, show
    from deploy.cli.rendering.decision import Exchange
    from deploy.cli.replaying.source_opening import open_indexed_source
    from deploy.operating.recorded_inputs import recorded_input, rerun_options

    streamed = streamed_answer_for(as_json)

    async def run(within: Deadline) -> Exchange:
        async with open_indexed_source(target, log_file, within) as source:
            recorded = await recorded_input(source, await resolve(source, exchange))
        options = rerun_options(recorded, session or new_session("rerun"))
        return await run_exchange(target, recorded.received.text, within, streamed=streamed, **options)

    ended = run_within(target, timeout, run)
    show(ended, as_json=as_json, streamed=streamed)
    check_it_ended_well(ended)
