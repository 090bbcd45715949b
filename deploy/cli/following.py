"""Waiting for new events in a command that follows the log: it says when it cannot read, and when it can again."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deploy.cli.wrapped_lines import say_note
from events.warning_backoff import WarningBackoff

if TYPE_CHECKING:
    from events.jetstream import JetStreamLog
    from events.log import Stored, Tail

_LOOK_INTERVAL_S = 0.25

_LASTS_S = 1.0
"""Seconds after which it is said that nothing can be read: right after a restart, a broker may not serve reads yet."""


class FollowedTail:
    """A tail of the log that says on stderr that nothing can be read: after a second, then at growing intervals.

    The log lines of the connection say that the broker goes and comes (``deploy.command_warnings``).
    """

    def __init__(self, tail: "Tail", log: "JetStreamLog") -> None:
        self._tail, self._log = tail, log
        self._waits = WarningBackoff()
        self._told_cut_off = False

    async def next(self) -> "Sequence[Stored]":
        """Wait for the next messages; raises as the tail does."""
        coming = asyncio.ensure_future(self._tail.next())
        try:
            while not coming.done():
                await asyncio.wait((coming,), timeout=_LOOK_INTERVAL_S)
                self._look()
            return coming.result()
        finally:
            coming.cancel()

    async def close(self) -> None:
        """Stop reading."""
        await self._tail.close()

    def _look(self) -> None:
        connected = self._log.connection.connected
        cut_off_s = self._tail.cut_off_s if connected else 0.0
        if connected and not cut_off_s:
            if self._told_cut_off:
                say_note("the log can be read again")
            self._waits.ended()
            self._told_cut_off = False
        elif connected and cut_off_s >= _LASTS_S and self._waits.is_due():
            self._told_cut_off = True
            say_note(
                f"for {cut_off_s:.0f} s nothing could be read, although the broker is there: the stream gives no "
                "answer, the login lacks a right, or no ledger or gateway serves its reads; this command tries on"
            )
        elif not connected and self._waits.is_due() and self._waits.lasted_s:
            say_note(f"the broker has been away for {self._waits.lasted_s:.0f} s: this command waits on")
