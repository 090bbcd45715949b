"""``neuraxis deploy nats-conf``."""

from collections.abc import Sequence
from pathlib import Path

import click

from deploy.cli.command_types import command
from deploy.cli.options import config_options, examples, json_option


@command(
    name="nats-conf",
    epilog=examples("neuraxis deploy nats-conf --permissions", "neuraxis deploy nats-conf --permissions --json"),
)
@click.option("--permissions", is_flag=True, help="Print what each login may do, and write no file.")
@click.option(
    "--login",
    "logins",
    multiple=True,
    metavar="NAME=ACTOR,...",
    help="A login for a worker of these actors.  [default: one for each actor]",
)
@config_options
@json_option
def nats_conf(
    permissions: bool, logins: Sequence[str], config_file: Path | None, sets: Sequence[str], as_json: bool
) -> None:
    """Write the configuration of a nats-server or a cluster of three, with a login for each process."""
    from deploy.cli.failures import WrongUse
    from deploy.cli.options import DATA, Target
    from deploy.cli.output import emit
    from deploy.deploying.logins import BadLogin, deployed_users, grouped_logins, one_login_each
    from deploy.deploying.permissions_document import permissions_rows, permissions_text

    if not permissions:
        raise WrongUse("say what to write: --permissions")
    config = Target(DATA, "", "", "", "", config_file, sets).config()
    try:
        workers = grouped_logins(logins) if logins else one_login_each()
    except BadLogin as wrong:
        raise WrongUse(str(wrong)) from wrong
    users = deployed_users(config.log.stream, config.broker.alert_consumers, workers)
    if as_json:
        emit(permissions_rows(users, config.log.stream), as_json=True)
    else:
        click.echo(permissions_text(users, config.log.stream), nl=False)
