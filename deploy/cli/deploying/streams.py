"""``neuraxis deploy streams``."""

from deploy.cli.command_types import command
from deploy.cli.connect import access_to
from deploy.cli.options import Target, examples, target_options
from deploy.processes.event_loop import run_command


@command(
    epilog=examples(
        "neuraxis deploy streams --config broker/neuraxis.toml --context broker/logins/admin.json",
        "neuraxis deploy streams --nats nats://broker.example:4222 --creds admin.creds --set log.replicas=3",
    )
)
@target_options
def streams(target: Target) -> None:
    """Make the stream and the buckets that workers need at a broker, or check those that are there.

    It takes a login that may: `admin` of `nats-conf`. Workers may not. Run it before they start, and after an upgrade.
    Streams that have another number of copies than log.replicas says get that many, where it is set.
    """
    import click

    from deploy.deploying.stream_copies import prepare_with_copies
    from deploy.processes.broker import ADMIN

    access = access_to(target, ADMIN)
    for line in run_command(prepare_with_copies(access, target.config())):
        click.echo(line)
