"""``neuraxis up``."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.command_types import command
from deploy.cli.options import DEFAULT_DATA_FOLDER, FILE, Target, check_supplied_weights, examples, target_options
from deploy.cli.outcomes import WrongUse

if TYPE_CHECKING:
    from deploy.processes.broker_access import BrokerChoice


@command(
    epilog=examples(
        "neuraxis up",
        "neuraxis up --data /var/lib/neuraxis --port 4222 --processes 2",
        "neuraxis up --nats nats://broker.example:4222 --creds neuraxis.creds",
        "neuraxis up --sync 1s     # faster; a power cut may lose the last second",
        "neuraxis up --sync never --data /tmp/try     # for a run to throw away; a power cut may lose all of it",
        "neuraxis up --llm http://127.0.0.1:8000/v1",
        "neuraxis up --http 127.0.0.1:9000     # or --http off",
    )
)
@target_options
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the embedded broker; 0: any free one.")
@click.option("--sync", metavar="always|DURATION|never", help="When the embedded broker flushes to disk.")
@click.option(
    "--llm",
    metavar="URL|local|composer",
    help="Language model: an OpenAI-compatible endpoint, a small one in the worker, or none; also NEURAXIS_LLM_URL."
    "  [default: an Ollama on this machine, if there is one]",
)
@click.option(
    "--http",
    metavar="HOST:PORT|off",
    help="Where the gateway listens; an address that others reach needs keys (`neuraxis keys`)."
    "  [default: 127.0.0.1:8642, or any free port if that is taken]",
)
@click.option(
    "--seal/--no-seal",
    "seal",
    default=None,
    help="Whether a new log stores people's words encrypted, a key a session.  [default: it does not]",
)
@click.option("--processes", type=click.IntRange(1, 64), help="Copies of the process that runs the actors.")
@click.option("--ready-file", type=FILE, help="Written when every actor is live.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Lowest level logged.")
@click.option("--log-format", type=click.Choice(["auto", "json", "pretty"]), help="Form of the log on stderr.")
def up(
    target: Target,
    port: int | None,
    sync: str | None,
    llm: str | None,
    http: str | None,
    seal: bool | None,
    processes: int | None,
    ready_file: Path | None,
    log_level: str | None,
    log_format: str | None,
) -> None:
    """Start the embedded broker, all workers and the gateway, and keep them running until Ctrl-C.

    A process that dies is started again. The store, the ledger and run.json, by which every other command finds
    the set, are kept in the data folder. Without a language model the composer answers, from what is remembered.
    """
    check_supplied_weights()
    from deploy import logging_setup
    from deploy.config.ignored_variables import log_ignored_variables
    from deploy.config.loading import flag_layer, model_layer
    from deploy.processes.broker_access import effective_choice
    from deploy.processes.up import Plan, bring_up

    _check_config_file(target.config_file)

    flags = {
        "broker.port": ("--port", port),
        "broker.sync": ("--sync", sync),
        "gateway.http": ("--http", http),
        "log.sealed": ("--seal" if seal else "--no-seal", None if seal is None else str(seal).lower()),
        "runtime.processes": ("--processes", processes),
        "runtime.log_level": ("--log-level", log_level),
        "runtime.log_format": ("--log-format", log_format),
    }
    given = [(flag, key, str(value)) for key, (flag, value) in flags.items() if value is not None]
    model_layers = [model_layer("--llm", llm)] if llm is not None else []
    config = target.config([flag_layer(*one) for one in given] + model_layers, every_section=True)
    broker = effective_choice(target.flags, config.broker, os.environ)
    _check_broker_options(broker, [flag for flag, key, _ in given if key in ("broker.port", "broker.sync")])
    logging_setup.set_up(config.runtime.log_level, config.runtime.log_format, process="up")
    log_ignored_variables(os.environ)
    bring_up(
        Plan(
            data=target.data,
            config=config,
            broker=broker,
            ready_file=ready_file,
            find_flags=() if target.data.path == DEFAULT_DATA_FOLDER else ("--data", str(target.data.path)),
            config_flags=(
                *target.config_flags(),
                *(part for _, key, value in given for part in ("--set", f"{key}={value}")),
            ),
        )
    )


def _check_config_file(file: Path | None) -> None:
    """Refuse a configuration that is a pipe: the processes of the set read it, too, and it can be read once."""
    if file is not None and file.exists() and not file.is_file():
        raise WrongUse(f"--config {file} is no ordinary file, and each process of a set reads it: write it to one")


def _check_broker_options(broker: "BrokerChoice", of_embedded: Sequence[str]) -> None:
    """Refuse options without effect: of the embedded broker if another is named, or of a login if none is named.

    ``of_embedded`` are the given options of the embedded broker.
    """
    if broker.named and of_embedded:
        named = broker.context or "another broker"
        raise WrongUse(f"{' and '.join(of_embedded)}: that is the embedded broker's, and {named} is used: leave it out")
    logins = [option for option, file in (("--creds", broker.creds), ("--tls-ca", broker.tls_ca)) if file]
    if logins and not broker.named:
        raise WrongUse(
            f"{' and '.join(logins)}: that is for a broker of yours, and none is named: add --nats or --context, or "
            "leave it out for the embedded one"
        )
