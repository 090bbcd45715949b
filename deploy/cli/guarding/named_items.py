"""The commands ``list`` and ``withdraw`` for an agent's named items: its precedents and allowances."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource

from deploy.cli import wrapped_lines
from deploy.cli.options import Target
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.source_opening import open_source, say_note

if TYPE_CHECKING:
    from pathlib import Path

    from actors.gateway.operator_orders import Order
    from deploy.operating.deadline import Deadline
    from events.replay.sources import Source


L = TypeVar("L")


async def list_in_force(
    target: Target,
    log_file: "Path | None",
    noun: str,
    items_in: "Callable[[Source, str], Awaitable[list[L]]]",
    agent: str,
) -> "list[L]":
    """Return an agent's items in force, and say on stderr if there are none; for a click command with ``--agent``.

    Raises:
        CheckFailed: there are none that this release can read, and some events that it cannot.
        NothingFound: there are none, and the log holds nothing of the agent that ``--agent`` named.
    """
    from deploy.cli.failures import CheckFailed
    from events.replay.presence_checks import check_holds_key
    from schemas.actor import Scope

    async with open_source(target, log_file) as source:
        found = await items_in(source, agent)
        is_named = click.get_current_context().get_parameter_source("agent") is not ParameterSource.DEFAULT
        if not found and is_named:
            await check_holds_key(source, agent, scope=Scope.AGENT, kept=f"{noun}s are kept")
        if not found and source.unread.count:
            raise CheckFailed(f"agent {agent} has no {noun}s in force in the {source.name} that this release can read")
        if not found:
            say_note(f"agent {agent} has no {noun}s in force in the {source.name}")
        return found


def withdraw(
    target: Target,
    noun: str,
    names: Sequence[str],
    orders_for: "Callable[[Source, str, Sequence[str], str, str], Awaitable[list[Order]]]",
    *,
    agent: str,
    by: str,
    why: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Withdraw an agent's items of these names, and print what was done.

    Args:
        target: The set or broker.
        noun: The kind of item, such as ``precedent``. With an added s, it names the command group that lists them.
        names: The names; one that is given twice is withdrawn once.
        orders_for: (source, agent, names, by, why) -> the orders that withdraw them.
        agent: Whose they are.
        by: Who withdraws them; empty for this machine's user.
        why: The reason.
        timeout: Seconds for all of it.
        as_json: Whether to print JSON.
    """
    import msgspec

    from actors.gateway import check_name
    from deploy.cli.connect import run_within
    from deploy.operating.order_client import current_user_name

    check_name("agent", agent)

    async def work(deadline: "Deadline") -> tuple[int, int]:
        from deploy.cli.connect import open_log
        from deploy.operating.order_client import give
        from events.replay.sources import StreamSource

        async with open_log(target, deadline=deadline) as log:
            orders = await orders_for(StreamSource(log), agent, names, by or current_user_name(), why)
            deadline.note_sending(
                f"the withdrawal of {counted(len(orders), noun)}",
                f"`neuraxis {noun}s list` tells, once the broker answers",
            )
            return len(orders), (await give(log, orders, deadline.left_for_step)).seq

    withdrawn, last = run_within(target, timeout, work)
    if as_json:
        click.echo(msgspec.json.encode({"agent": agent, "withdrawn": withdrawn, "seq": last}).decode())
        return
    wrapped_lines.say(f"{withdrawn} withdrawn for agent {agent}")
