"""Waiting on conditions, with a deadline."""

import asyncio
from collections.abc import Awaitable, Callable

DEADLINE_S = 30.0


async def until(condition: Callable[[], Awaitable[bool]] | Callable[[], bool], what: str) -> None:
    """Wait for a condition; raises TimeoutError, naming ``what`` was waited for, after ``DEADLINE_S``."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = condition()
                if found if isinstance(found, bool) else await found:
                    return
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise TimeoutError(f"waited {DEADLINE_S:g} s in vain for {what}") from None
