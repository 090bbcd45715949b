"""``neuraxis deploy``: each command has a module here, and its line below."""

import click

from deploy.cli.command_types import Commands
from deploy.cli.deploying.nats_conf import nats_conf
from deploy.cli.deploying.processes import compose, helm, systemd
from deploy.cli.options import examples


@click.group(cls=Commands, epilog=examples("neuraxis deploy nats-conf --permissions"))
def deploy() -> None:
    """Write files for running neuraxis on machines of your own.

    Nothing is started, and no broker is asked: the files come from the catalogue and the configuration.
    """


deploy.add_command(nats_conf)
deploy.add_command(compose)
deploy.add_command(systemd)
deploy.add_command(helm)
