"""Heartbeats of effectors and of the ledger, which are no actors: they report whether they work."""

import asyncio
from collections.abc import Callable, Mapping

from actors.runtime.membership.heartbeat import BEAT, Heartbeat, MetricsAddress, beat, leave
from events.log import Membership
from schemas.stages import WHOLE

_LOOK = BEAT / 10
"""Seconds between checks whether a stage has started or stopped working, so that a change is reported quickly."""


async def report(
    membership: Membership,
    member: str,
    works: Mapping[str, Callable[[], bool]],
    started: asyncio.Event,
    metrics: MetricsAddress | None = None,
) -> None:
    """Tell once a second and at each change, until cancelled, which of these stages work; then say goodbye.

    Args:
        membership: Where to tell.
        member: Under which name; a worker of actors in the same process has another.
        works: Stage -> whether it does its work now.
        started: Set once all of them were told to work: a process that is ready before is taken for one that stalls.
        metrics: Where the process tells its metrics.
    """
    try:
        while True:
            well = {stage: is_well() for stage, is_well in works.items()}
            presence = Heartbeat(
                (),
                serves={stage: (WHOLE,) for stage, fine in well.items() if fine},
                stalled={stage: (WHOLE,) for stage, fine in well.items() if not fine},
                metrics=metrics,
            )
            await beat(membership, member, presence)
            if all(well.values()):
                started.set()
            deadline = asyncio.get_running_loop().time() + BEAT
            while asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(_LOOK)
                if {stage: is_well() for stage, is_well in works.items()} != well:
                    break
    finally:
        await leave(membership, member)
