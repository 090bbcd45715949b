"""Inboxes: the only subjects to which replies are ever sent."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from nats.aio.msg import Msg

from events.jetstream import Connection

_INBOX = re.compile(r"_INBOX(\.[A-Za-z0-9_-]+)+")


def is_inbox(subject: str) -> bool:
    """Whether a reply subject is a literal one below ``_INBOX``: anything else could be made to look like an event."""
    return _INBOX.fullmatch(subject) is not None


@asynccontextmanager
async def listening_inbox(connection: Connection, on_message: Callable[[bytes], None]) -> AsyncIterator[str]:
    """Give ``on_message`` the bodies that come to a fresh inbox, for the length of the block; yields the inbox."""

    async def taken(message: Msg) -> None:
        on_message(message.data)

    inbox = connection.new_inbox()
    subscription = await connection.nc.subscribe(inbox, cb=taken)
    try:
        yield inbox
    finally:
        if not connection.closed:
            await subscription.unsubscribe()
