"""``neuraxis gateway``."""

import os
import socket

import click

from deploy.cli.command_types import command
from deploy.cli.options import Target, examples, target_options
from deploy.cli.outcomes import WrongUse


@command(
    epilog=examples(
        "neuraxis gateway --nats nats://broker.example:4222",
        "neuraxis gateway --http 127.0.0.1:9000",
        "NEURAXIS_API_KEYS=... neuraxis gateway --http 0.0.0.0:8642 --context production",
    )
)
@target_options
@click.option("--http", metavar="HOST:PORT", help="Where to listen.  [default: 127.0.0.1:8642]")
@click.option("--listener", type=int, hidden=True, help="Descriptor of a socket that listens already.")
@click.option(
    "--operator-context",
    default="",
    metavar="NAME|FILE",
    help="As whom operators' requests are recorded: feedback, allowances, resets.",
)
@click.option("--name", default="gateway", help="What this process is called in its log.")
@click.option(
    "--lifeline",
    type=int,
    hidden=True,
    help="Descriptor of a socket that closes when the supervisor ends; so does this process.",
)
def gateway(
    target: Target, http: str | None, listener: int | None, operator_context: str, name: str, lifeline: int | None
) -> None:
    """Serve the set over HTTP in this process, against a broker, until SIGTERM or Ctrl-C.

    `neuraxis up` runs one already. An address that other machines reach takes API keys: those of `neuraxis keys`, in
    the data folder or the file gateway.keys_file, and those in NEURAXIS_API_KEYS, which may ask, and in
    NEURAXIS_OPERATOR_KEYS, which may do all. TLS is a reverse proxy's. Any number of gateways may serve one log.
    Models other than neuraxis are those of gateway.upstream.url, whose key is in NEURAXIS_UPSTREAM_API_KEY or the file
    gateway.upstream.key_file.
    """
    from actors.gateway.http.keys import api_keys_for
    from actors.reflex.settings import ReflexSettings
    from actors.responder.settings import ResponderSettings
    from actors.swarm.settings import SwarmSettings
    from deploy import logging_setup
    from deploy.config.ignored_variables import log_ignored_variables
    from deploy.config.loading import flag_layer
    from deploy.config.upstream_settings import upstream_of
    from deploy.operating.api_key_file import keys_file
    from deploy.processes.broker import GATEWAY, OPERATOR
    from deploy.processes.broker_access import BrokerChoice, access_of, effective_choice, store_of
    from deploy.processes.gateway import process
    from deploy.processes.listen_address import address_of, listen
    from deploy.processes.supervising.lifeline import Lifeline

    flags = [flag_layer("--http", "gateway.http", http)] if http is not None else []
    config = target.config(
        flags, more={"reflex": ReflexSettings, "responder": ResponderSettings, "swarm": SwarmSettings}
    )
    logging_setup.set_up(config.runtime.log_level, config.runtime.log_format, process=name)
    if lifeline is None:  # a set says it once, for all its processes
        log_ignored_variables(os.environ)
    address = address_of(config.gateway.http)
    if address is None:
        raise WrongUse("gateway.http is off: say where to listen with --http HOST:PORT")
    choice = effective_choice(target.flags, config.broker, os.environ)
    operating = BrokerChoice(context=operator_context) if operator_context else choice
    process.run(
        process.Job(
            access=access_of(choice, target.data, user=GATEWAY, name="gateway"),
            operating=access_of(operating, target.data, user=OPERATOR, name="gateway for an operator"),
            config=config,
            upstream=upstream_of(config.gateway.upstream, os.environ),
            keys=api_keys_for(
                address.host,
                keys_file(config.gateway, target.data),
                os.environ,
                is_named=bool(config.gateway.keys_file),
            ),
            ledger=target.data.ledger,
            store=store_of(choice, target.data) if lifeline is not None else None,
            listener=listen(address, or_else_any=False) if listener is None else socket.socket(fileno=listener),
        ),
        Lifeline(lifeline),
    )
