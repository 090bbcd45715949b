"""``neuraxis worker``."""

import os
from pathlib import Path

import click

from deploy.cli.command_types import command
from deploy.cli.options import FILE, Target, check_supplied_weights, examples, target_options
from deploy.cli.outcomes import WrongUse


@command(
    epilog=examples(
        "neuraxis worker all --nats nats://broker.example:4222",
        "neuraxis worker reflex router responder clock --nats nats://broker.example:4222",
        "neuraxis worker llm delegate --nats nats://broker.example:4222 --set llm.base_url=https://llm.example/v1",
        "neuraxis worker ledger --context production --ledger /var/lib/neuraxis/ledger.db",
        "neuraxis worker all --metrics 0.0.0.0:9464 --nats nats://broker.example:4222",
    )
)
@click.argument("actors", nargs=-1, required=True, metavar="ACTOR...")
@target_options
@click.option("--ledger", "ledger_file", type=FILE, help="The ledger's file.  [default: ledger.db in the data folder]")
@click.option(
    "--metrics", metavar="HOST:PORT", help="Where to tell Prometheus metrics, or off.  [default: 127.0.0.1:0, any port]"
)
@click.option("--name", default="worker", help="What this process is called in its log.")
@click.option("--lifeline", type=int, hidden=True, help="File descriptor of the socket to the supervisor.")
def worker(
    target: Target,
    actors: tuple[str, ...],
    ledger_file: Path | None,
    metrics: str | None,
    name: str,
    lifeline: int | None,
) -> None:
    """Run some actors in this process, against a broker, until SIGTERM or Ctrl-C.

    This is what production runs: several such processes share out the partitions among themselves. ACTOR is the name of
    one, or `all` for every actor that decides; a wrong name is answered with the list of them. `ledger` stands for the
    projector that writes the log into an SQLite file. `llm`, `delegate` and `webhook` speak to the world outside: to
    language models (key in NEURAXIS_LLM_API_KEY), to specialists, and to the receivers of alerts; `effectors` stands
    for those of them that are configured.
    """
    check_supplied_weights()
    from deploy import logging_setup
    from deploy.config.alert_lifetimes import check_alert_lifetimes
    from deploy.config.ignored_variables import log_ignored_variables
    from deploy.config.loading import flag_layer
    from deploy.processes import worker
    from deploy.processes.broker import DECIDERS, EFFECTORS, LEDGER
    from deploy.processes.broker_access import access_of, effective_choice, store_of
    from deploy.processes.effector_registry import EFFECTORS as ALL_EFFECTORS
    from deploy.processes.supervising.lifeline import Lifeline
    from deploy.telemetry.telemetry_settings import check_telemetry

    worker.check_work(actors)
    flags = [flag_layer("--metrics", "telemetry.metrics", metrics)] if metrics is not None else []
    config = target.config(flags, every_section=True)
    check_telemetry(config)
    check_alert_lifetimes(config)
    hosted = worker.work_with_settings(actors, config)
    if ledger_file is not None and worker.LEDGER not in hosted:
        raise WrongUse(f"--ledger says where {worker.LEDGER!r} writes, and that is not among these: leave it out")
    logging_setup.set_up(config.runtime.log_level, config.runtime.log_format, process=name)
    if lifeline is None:  # a set says it once, for all its processes
        log_ignored_variables(os.environ)
    choice = effective_choice(target.flags, config.broker, os.environ)
    own_login = {worker.LEDGER: LEDGER, **dict.fromkeys(ALL_EFFECTORS, EFFECTORS)}
    user, *others = dict.fromkeys(own_login.get(each, DECIDERS) for each in hosted)
    if choice.logins and len(hosted) == 1 and choice.as_user(hosted[0]).exists():
        user, others = hosted[0], []  # each actor has a login of its own
    if others and (choice.logins or not choice.named):
        separate = " ".join(each for each in hosted if own_login.get(each, DECIDERS) != DECIDERS)
        raise WrongUse(f"the broker has logins for each kind of work: run `neuraxis worker {separate}` by itself")
    worker.run(
        worker.Job(
            name=name,
            hosted=hosted,
            access=access_of(choice, target.data, user=user, name=f"neuraxis {name}"),
            config=config,
            ledger_file=ledger_file or target.data.ledger,
            store=store_of(choice, target.data) if lifeline is not None else None,
        ),
        Lifeline(lifeline),
    )
