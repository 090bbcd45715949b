"""What ``withdraw`` does, whatever is withdrawn: named things of an agent count no more."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click

from deploy.cli import saying
from deploy.cli.options import Target
from deploy.cli.rendering.counting import counted

if TYPE_CHECKING:
    from deploy.operating.deadline import Deadline
    from events.replay.sources import Source
    from schemas.event import Event


def withdraw(
    target: Target,
    noun: str,
    names: Sequence[str],
    names_in_force: "Callable[[Source, str], Awaitable[Iterable[str]]]",
    withdrawal: "Callable[[str, str, str], Event]",
    *,
    agent: str,
    by: str,
    why: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Put on record that an agent's things of these names count no more, and print that.

    Args:
        target: Where.
        noun: What is withdrawn; with an s the name of the group of commands that lists them.
        names: Which; one that is given twice is withdrawn once.
        names_in_force: Returns the names that the agent has.
        withdrawal: Makes the event from the name, who withdraws it, and why.
        agent: Whose they are.
        by: Who withdraws them; empty for whoever runs the command.
        why: For what reason.
        timeout: Seconds for all of it.
        as_json: Whether what was done is printed as JSON.
    """
    import msgspec

    from actors.gateway import check_name
    from deploy.cli.connect import run_within
    from deploy.operating.operator_edge import who

    check_name("agent", agent)
    chosen = tuple(dict.fromkeys(names))
    events = [withdrawal(name, by or who(), why) for name in chosen]

    async def work(deadline: "Deadline") -> int:
        from deploy.cli.connect import connected
        from deploy.operating.operator_edge import Order, append
        from events.replay.looking import NothingThere
        from events.replay.sources import StreamSource

        async with connected(target, deadline=deadline) as log:
            known = set(await names_in_force(StreamSource(log), agent))
            if missing := [name for name in chosen if name not in known]:
                raise NothingThere(
                    f"agent {agent} has no {noun} {missing[0]!r}: `neuraxis {noun}s list` shows those it has"
                )
            deadline.sending(
                f"the withdrawal of {counted(len(chosen), noun)}",
                f"`neuraxis {noun}s list` tells, once the broker answers",
            )
            orders = [Order(event=event, agent=agent) for event in events]
            return await append(log, orders, time.time_ns(), deadline.inner_s)

    last = run_within(target, timeout, work)
    if as_json:
        click.echo(msgspec.json.encode({"agent": agent, "withdrawn": len(chosen), "seq": last}).decode())
        return
    saying.say(f"{len(chosen)} withdrawn for agent {agent}")
