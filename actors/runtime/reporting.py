"""Heartbeats of what is no actor: effectors and the ledger say that they work, or that they do not."""

import asyncio
from collections.abc import Callable, Mapping

from actors.runtime.presence import BEAT, Presence, beat, leave
from events.log import Membership
from schemas.stages import WHOLE


async def report(membership: Membership, member: str, works: Mapping[str, Callable[[], bool]]) -> None:
    """Tell once a second, until cancelled, which of these stages do their work; then say goodbye.

    Args:
        membership: Where to tell.
        member: Under which name; a worker of actors in the same process has another.
        works: Stage -> whether it does its work now.
    """
    try:
        while True:
            well = {stage: is_well() for stage, is_well in works.items()}
            presence = Presence(
                (),
                serves={stage: (WHOLE,) for stage, fine in well.items() if fine},
                stalled={stage: (WHOLE,) for stage, fine in well.items() if not fine},
            )
            await beat(membership, member, presence)
            await asyncio.sleep(BEAT)
    finally:
        await leave(membership, member)
