"""Reply inboxes: the only subjects to which replies are ever sent."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from nats.aio.msg import Msg

from events.jetstream import Connection

_INBOX = re.compile(r"_INBOX(\.[A-Za-z0-9_-]+)+")


def is_inbox(subject: str) -> bool:
    """Whether a subject is a literal one below ``_INBOX``: a reply to any other one could pass for an event."""
    return _INBOX.fullmatch(subject) is not None


@asynccontextmanager
async def listening_inbox(connection: Connection, on_message: Callable[[bytes], None]) -> AsyncIterator[str]:
    """Call ``on_message`` with each body that comes to a new inbox, within the block; yields the inbox."""

    async def receive(message: Msg) -> None:
        on_message(message.data)

    inbox = connection.new_inbox()
    subscription = await connection.subscribe(inbox, receive)
    try:
        yield inbox
    finally:
        await connection.unsubscribe(subscription)
