"""``neuraxis doctor``."""

import asyncio
import os
from typing import TYPE_CHECKING

import click

from deploy.cli.options import Target, examples, json_option, target_options

if TYPE_CHECKING:
    from deploy.doctor import Patient


@click.command(
    epilog=examples(
        "neuraxis doctor", "neuraxis doctor --nats nats://broker.example:4222 --json | jq 'select(.remedy)'"
    )
)
@target_options
@json_option
def doctor(target: Target, as_json: bool) -> None:
    """Check broker, stream, durability, clocks, lag and processes; exit status 1 when a check fails.

    Each line is ok, warn, fail or n/a, with what to do about it.
    """
    from deploy.cli.failures import CheckFailed
    from deploy.cli.output import emit
    from deploy.doctor import Verdict, examine

    findings = asyncio.run(examine(_patient(target)))
    emit(findings, as_json=as_json)
    if failed := [finding.check for finding in findings if finding.verdict is Verdict.FAIL]:
        raise CheckFailed(f"{len(failed)} of {len(findings)} checks failed: {', '.join(failed)}")


def _patient(target: Target) -> "Patient":
    from actors.registry import ACTORS
    from deploy.access import access_of, stated
    from deploy.broker import ADMIN, SYSTEM
    from deploy.cli.connect import stream_of
    from deploy.doctor import Patient
    from schemas.subjects import Partitions

    config = target.config()
    reach = stated(target.flags, config.broker, os.environ)
    run = None if reach.named else target.data.read()  # a broker that was named may be another set's
    embedded = run is not None and run.contexts
    return Patient(
        access=access_of(reach, target.data, user=ADMIN, name="neuraxis doctor"),
        system=access_of(reach, target.data, user=SYSTEM, name="neuraxis doctor") if embedded else None,
        stream=stream_of(target),
        expected=Partitions(config.log.agents, config.log.sessions),
        actors=tuple(ACTORS),
        data=target.data.path,
        ledger=target.data.ledger,
        run=run,
    )
