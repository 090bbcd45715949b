"""``neuraxis deploy nats-conf``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.command_types import command
from deploy.cli.named_files import content_of
from deploy.cli.options import DEFAULT_DATA_FOLDER, FILE, FOLDER, Target, config_options, examples, json_option
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import emit
from deploy.config.assignments import key_of

if TYPE_CHECKING:
    from deploy.config.loading import Config


@command(
    name="nats-conf",
    epilog=examples(
        "neuraxis deploy nats-conf --out broker",
        "neuraxis deploy nats-conf --out broker --nodes 3 --hosts a.example,b.example,c.example --tls",
        "neuraxis deploy nats-conf --out broker --login deciders=all --login effectors=effectors",
        "neuraxis deploy nats-conf --permissions --json",
    ),
)
@click.option("--out", type=FOLDER, help="Folder to write to; secrets in it are kept.")
@click.option("--nodes", type=click.Choice(["1", "3"]), default="1", show_default=True, help="Servers.")
@click.option("--hosts", default="", metavar="HOST[:PORT],...", help="Where clients reach them.  [default: 127.0.0.1]")
@click.option(
    "--login",
    "logins",
    multiple=True,
    metavar="NAME=ACTOR,...",
    help="A login for a worker of these actors.  [default: one for each actor]",
)
@click.option("--passwords", is_flag=True, help="Passwords instead of nkeys.")
@click.option("--tls", is_flag=True, help="TLS, with certificates of yours in tls/ of each server's folder.")
@click.option("--tls-ca", type=FILE, help="CA certificates to trust, with --tls.")
@click.option("--dev-ca", is_flag=True, help="TLS, with certificates made here, for a trial.")
@click.option(
    "--at", default="/etc/neuraxis/broker", show_default=True, metavar="DIR", help="Where a server's files will lie."
)
@click.option(
    "--store", default="/var/lib/neuraxis/broker", show_default=True, metavar="DIR", help="Where a server stores."
)
@click.option("--max-store", default="50GB", show_default=True, metavar="SIZE", help="What a store may grow to.")
@click.option("--permissions", is_flag=True, help="Print what each login may do, and write no file.")
@config_options
@json_option
def nats_conf(
    out: Path | None,
    nodes: str,
    hosts: str,
    logins: Sequence[str],
    passwords: bool,
    tls: bool,
    tls_ca: Path | None,
    dev_ca: bool,
    at: str,
    store: str,
    max_store: str,
    permissions: bool,
    config_file: Path | None,
    assignments: Sequence[str],
    as_json: bool,
) -> None:
    """Write the configuration of a nats-server, or of a cluster of three, with a login for each process.

    What a login may publish and subscribe to comes from the catalogue. The servers get public keys alone: the seeds,
    in logins/, are for the processes. Written again, the files keep their secrets, and a neuraxis.toml to which the
    settings of the processes were added is kept.
    """
    from deploy.deploying.broker_plan import BadPlan, BrokerPlan, check_certificates, check_folder, check_size, nodes_of
    from deploy.deploying.logins import BadLogin, grouped_logins, one_login_each
    from deploy.deploying.nkey_files import BadSecret
    from deploy.deploying.permissions_document import permissions_rows, permissions_text
    from deploy.deploying.shared_settings import SettingsDiffer, fixed_settings
    from deploy.deploying.writing_broker import LOGINS, write_broker
    from deploy.processes.broker.users import SYSTEM, broker_users

    config = Target(DEFAULT_DATA_FOLDER, config_file=config_file, assignments=assignments).config()
    _check_assignments(assignments)
    stream, alert_consumers = config.log.stream, config.broker.alert_consumers
    try:
        workers = grouped_logins(logins) if logins else one_login_each()
        users = broker_users(stream, alert_consumers, workers)
        if permissions:
            if as_json:
                emit(permissions_rows(users, stream), as_json=True)
            else:
                click.echo(permissions_text(users, stream), nl=False)
            return
        if out is None:
            raise WrongUse("say where to write: --out DIR, or --permissions to print what logins may do")
        _check_copies(config, int(nodes))
        if dev_ca and tls_ca is not None:
            raise WrongUse("--dev-ca makes the certificates, and --tls-ca names those of another authority: use one")
        plan = BrokerPlan(
            nodes=nodes_of(int(nodes), hosts),
            users=users,
            stream=stream,
            alert_consumers=alert_consumers,
            sync=config.broker.sync,
            store=check_folder("--store", store),
            max_store=check_size(max_store),
            folder=check_folder("--at", at),
            tls=tls or dev_ca or tls_ca is not None,
            tls_ca=dev_ca or tls_ca is not None,
            log=fixed_settings(config),
        )
        ca = check_certificates(tls_ca, content_of(str(tls_ca))) if tls_ca is not None else b""
        emit(write_broker(plan, out, passwords=passwords, ca=ca, development=dev_ca), as_json=as_json)
        known = {SYSTEM, *(user.name for user in users)}
        if former := sorted({file.stem for file in (out / LOGINS).glob("*.json")} - known):
            click.echo(f"{out / LOGINS} has files of logins that are none any more: {', '.join(former)}", err=True)
    except (BadLogin, BadPlan, BadSecret, SettingsDiffer) as wrong:
        raise WrongUse(str(wrong)) from wrong
    except OSError as wrong:
        raise WrongUse(f"{wrong.filename or out} cannot be written: {wrong.strerror or wrong}") from wrong


_TAKEN = (
    *("log.stream", "log.replicas", "log.agents", "log.sessions", "log.sealed"),
    *("broker.sync", "broker.alert_consumers"),
)
"""The settings that go into the files."""


def _check_assignments(assignments: Sequence[str]) -> None:
    """Refuse settings that the files would not have: whoever gives one believes that it has an effect."""
    for key in map(key_of, assignments):
        if not any(f"{key}.".startswith(f"{taken}.") for taken in _TAKEN):
            raise WrongUse(f"--set {key} changes nothing in these files: they have {', '.join(_TAKEN)} alone")


def _check_copies(config: "Config", nodes: int) -> None:
    """Refuse a configured log.replicas that is not the number of servers: each server keeps one copy."""
    origin = config.origins.get("log.replicas")
    if origin is not None and config.log.replicas != nodes:
        raise WrongUse(
            f"log.replicas is {config.log.replicas} ({origin}), and --nodes {nodes} keeps {nodes}: correct one of them"
        )
