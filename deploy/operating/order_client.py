"""Giving orders: the name of the person who gives them, and a client that is opened for one act."""

import getpass
from collections.abc import Sequence

from actors.gateway import Client, Order, Receipt
from actors.gateway.wait_deadlines import Within
from events.log import Log


def current_user_name() -> str:
    """Return the name of this machine's user, to be recorded."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"


async def give(log: Log, orders: Sequence[Order], within: Within) -> Receipt:
    """Append the events of one act; raises as ``Client.order`` does."""
    async with Client.open(log) as client:
        return await client.order(orders, within)
