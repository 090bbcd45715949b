"""``neuraxis deploy``: each command has a module here, and its line below."""

import click

from deploy.cli.command_types import Commands
from deploy.cli.deploying.nats_conf import nats_conf
from deploy.cli.deploying.processes import compose, helm, systemd
from deploy.cli.deploying.streams import streams
from deploy.cli.options import examples


@click.group(
    cls=Commands,
    epilog=examples(
        "neuraxis deploy nats-conf --out broker", "neuraxis deploy streams --context broker/logins/admin.json"
    ),
)
def deploy() -> None:
    """Run neuraxis on machines of your own: write the files, and make the streams."""


deploy.add_command(nats_conf)
deploy.add_command(streams)
deploy.add_command(compose)
deploy.add_command(systemd)
deploy.add_command(helm)
