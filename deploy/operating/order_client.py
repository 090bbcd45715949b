"""Giving an operator's orders: the name of the person who gives them, and appending those of one command."""

import getpass
from collections.abc import Sequence

from actors.gateway import Client, Order, Receipt
from actors.gateway.wait_deadlines import Within
from events.log import Log


def current_user_name() -> str:
    """Return the name of this machine's user, which orders record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"


async def give(log: Log, orders: Sequence[Order], within: Within) -> Receipt:
    """Append the orders of one operation, by a client that is opened for it; raises the same as ``Client.order``."""
    async with Client.open(log) as client:
        return await client.order(orders, within)
