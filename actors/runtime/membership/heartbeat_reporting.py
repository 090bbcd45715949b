"""Sends heartbeats for effectors and the ledger, which are no actors: they report whether they work."""

import asyncio
from collections.abc import Callable, Mapping

from actors.runtime.membership.heartbeat import BEAT, Heartbeat, MetricsAddress, beat, leave
from events.log import Membership
from events.warning_backoff import WarningBackoff
from schemas.input_path import WHOLE

_CHECK_INTERVAL = BEAT / 10
"""Seconds between checks whether a stage has started or stopped working, so that a change is reported quickly."""


async def report(
    membership: Membership,
    member: str,
    works: Mapping[str, Callable[[], bool]],
    started: asyncio.Event,
    metrics: MetricsAddress | None = None,
) -> None:
    """Report once a second and at each change, until cancelled, which of these stages work; then sign off.

    Args:
        membership: Where heartbeats are sent.
        member: The sender's name; a worker of actors in the same process has another.
        works: Stage -> whether it does its work now. Each has one partition (``WHOLE``).
        started: Set once a heartbeat said that all of them work: a process that is ready before that looks stalled.
        metrics: Where the process serves its metrics.
    """
    misses = WarningBackoff()
    try:
        while True:
            working = {stage: does_work() for stage, does_work in works.items()}
            heartbeat = Heartbeat(
                (),
                serves={stage: (WHOLE,) for stage, works_now in working.items() if works_now},
                stalled={stage: (WHOLE,) for stage, works_now in working.items() if not works_now},
                metrics=metrics,
            )
            await beat(membership, member, heartbeat, misses)
            if all(working.values()):
                started.set()
            deadline = asyncio.get_running_loop().time() + BEAT
            while asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(_CHECK_INTERVAL)
                if {stage: does_work() for stage, does_work in works.items()} != working:
                    break
    finally:
        await leave(membership, member)
