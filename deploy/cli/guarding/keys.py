"""``neuraxis keys``."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click

from deploy.cli.command_types import Commands
from deploy.cli.options import Target, config_options, data_option, examples, json_option, warn_of_unused_settings
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import emit, print_json, print_result
from deploy.cli.wrapped_lines import say, say_note
from schemas.names import wrong_with_name

_SCOPES: tuple[Literal["ask", "read", "operate"], ...] = (
    "ask",
    "read",
    "operate",
)  # repeated here: importing them from the gateway takes long
_MAX_PER_MINUTE = 10**9


@click.group(cls=Commands, epilog=examples("neuraxis keys list"))
def keys() -> None:
    """The gateway's API keys: what each may do, for which agent, and how often.

    A gateway reads the file again within a second; it needs no restart. Once there was a key, every request needs one.
    """


def _file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that locate the file of keys; the command gets its path as its first argument."""

    @wraps(command)
    def with_file(data: Path, config_file: Path | None, assignments: Sequence[str], **others: Any) -> Any:
        from deploy.operating.api_key_file import keys_file

        target = Target(data, config_file=config_file, assignments=assignments)
        in_force = target.settings_in_force()
        named = None if in_force is None else in_force.keys_file
        file = keys_file(target.config().gateway, target.data) if named is None else Path(named or target.data.keys)
        done = command(file, **others)
        warn_of_unused_settings(target)
        return done

    wrapped: Callable[..., Any] = config_options(data_option(with_file))
    return wrapped


@keys.command(
    epilog=examples(
        'neuraxis keys add --scope ask --note "the support desk"',
        "neuraxis keys add --scope ask --scope read --agent support --per-minute 600",
        'neuraxis keys add --scope read --note "Prometheus"',
    )
)
@_file_options
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(_SCOPES),
    multiple=True,
    required=True,
    help="ask: send inputs, loops and ticks. read: see what is recorded. operate: change what the set does.",
)
@click.option("--agent", default="", metavar="AGENT", help="The one agent that it acts for and reads of.")
@click.option(
    "--per-minute",
    type=click.IntRange(1, _MAX_PER_MINUTE),
    help="Requests a minute, at each gateway.  [default: as many as there are]",
)
@click.option("--note", default="", help="Whose it is.")
@json_option
def add(file: Path, scopes: tuple[Any, ...], agent: str, per_minute: int | None, note: str, as_json: bool) -> None:
    """Make a key, and print it once: only its hash is kept, so it cannot be shown again."""
    from actors.gateway import check_name
    from deploy.operating.api_key_file import add_key

    if agent:
        check_name("agent", agent)
    if wrong := wrong_with_name(note):
        raise WrongUse(f"--note: the note {wrong}")
    chosen = tuple(scope for scope in _SCOPES if scope in scopes)
    key, secret = add_key(file, chosen, agent=agent, per_minute=per_minute or 0, note=note)
    if as_json:
        print_json({"id": key.id, "key": secret, "scopes": key.scopes, "agent": agent})
        return
    click.echo(secret)
    say(f"key {key.id} may {', '.join(chosen)}: keep it now, it is not shown again", err=True)


@keys.command(name="list", epilog=examples("neuraxis keys list --json"))
@_file_options
@json_option
def list_(file: Path, as_json: bool) -> None:
    """Print the keys by their ids, oldest first, with those that were revoked."""
    from deploy.operating.api_key_file import held_keys

    held = held_keys(file)
    if not held:
        say_note(f"{file} holds no key: `neuraxis keys add` makes one")
    emit(
        [
            {
                "id": key.id,
                "scopes": key.scopes,
                "agent": key.agent,
                "per_minute": key.per_minute,
                "note": key.note,
                "created": key.created,
                "revoked": key.revoked,
            }
            for key in held
        ],
        as_json=as_json,
    )


@keys.command(epilog=examples("neuraxis keys revoke 3f9a1c07"))
@click.argument("id", metavar="ID")
@_file_options
@json_option
def revoke(file: Path, id: str, as_json: bool) -> None:
    """Revoke a key: gateways refuse it within a second. Its id stays listed."""
    from deploy.operating.api_key_file import revoke_key

    key = revoke_key(file, id)
    print_result({"id": key.id, "revoked": key.revoked}, f"key {key.id} opens nothing more", as_json=as_json)
