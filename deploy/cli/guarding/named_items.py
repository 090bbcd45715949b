"""What commands on named items share: giving orders, and ``list`` and ``withdraw`` for precedents and allowances."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from deploy.cli.connect import open_log, run_within
from deploy.cli.options import Target
from deploy.cli.outcomes import CheckFailed
from deploy.cli.output import emit, print_result
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.source_opening import open_source
from deploy.cli.wrapped_lines import say_note
from deploy.operating.deadline import Deadline
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from actors.gateway.operator_orders import Order
    from events.replay.sources import Source


def give_orders(
    target: Target,
    timeout: float,
    orders_in: "Callable[[Source], Awaitable[Sequence[Order]]]",
    what: Callable[[int], str],
    how_to_check: str,
) -> "tuple[Sequence[Order], int | None]":
    """Give the orders that follow from what a log holds; return them, and the sequence of the last (None: no order).

    Args:
        target: The set or broker.
        timeout: Seconds for all of it.
        orders_in: Returns the orders, given the log.
        what: (number of orders) -> the name of what is sent, for the error of a command that gets no confirmation.
        how_to_check: How to find out then whether it is stored.
    """

    async def work(deadline: Deadline) -> "tuple[Sequence[Order], int | None]":
        from deploy.operating.order_client import give
        from events.replay.sources import StreamSource

        async with open_log(target, deadline=deadline) as log:
            orders = await orders_in(StreamSource(log))
            if not orders:
                return orders, None
            deadline.note_sending(what(len(orders)), how_to_check)
            return orders, (await give(log, orders, deadline.left_for_step)).seq

    return run_within(target, timeout, work)


def print_in_force(
    target: Target,
    log_file: Path | None,
    noun: str,
    items_in: "Callable[[Source, str], Awaitable[list[Any]]]",
    agent: str,
    columns: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Print an agent's items in force, and say on stderr if there are none; for a click command with ``--agent``.

    Raises:
        CheckFailed: there are none that this release can read, and some events that it cannot.
        NothingFound: there are none, and the log holds nothing of the agent that ``--agent`` named.
    """
    is_named = click.get_current_context().get_parameter_source("agent") is not ParameterSource.DEFAULT

    async def look_up() -> list[msgspec.Struct]:
        from events.replay.presence_checks import check_holds_key
        from schemas.actor import Scope

        async with open_source(target, log_file) as source:
            found = await items_in(source, agent)
            if not found and is_named:
                await check_holds_key(source, agent, scope=Scope.AGENT, kept=f"{noun}s are kept")
            none = f"agent {agent} has no {noun}s in force in the {source.name}"
            if not found and source.unread.count:
                raise CheckFailed(f"{none} that this release can read")
            if not found:
                say_note(none)
            return found

    emit(run_command(look_up()), as_json=as_json, columns=columns)


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
        by: Who withdraws them.
        why: The reason.
        timeout: Seconds for all of it.
        as_json: Whether to print JSON.
    """
    from actors.gateway import check_name

    check_name("agent", agent)
    orders, last = give_orders(
        target,
        timeout,
        lambda source: orders_for(source, agent, names, by, why),
        lambda count: f"the withdrawal of {counted(count, noun)}",
        f"`neuraxis {noun}s list` tells, once the broker answers",
    )
    done = {"agent": agent, "withdrawn": len(orders), "seq": last}
    print_result(done, f"{len(orders)} withdrawn for agent {agent}", as_json=as_json)
