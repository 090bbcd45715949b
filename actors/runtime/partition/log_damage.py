"""Checks of a log that may have lost messages: whether a partition's decision is incomplete or its last event gone."""

from events.errors import LogError
from events.log import Log
from events.partition_fold import View
from schemas.envelope import decode_headers
from schemas.errors import VocabularyError


async def has_folded(log: Log, view: View, last: int) -> bool:
    """Return whether a view has folded its own events up to ``last``, and its last decision is complete.

    The events of a decision are stored all or none, so if some are missing they are still to be read. The exception is
    a log that was cut within the decision: then the next message, if there is one, has another cause.
    """
    latest = view.open_decision  # the last event that was read of an incomplete decision
    if not latest:
        return view.own_last >= last
    if latest < last:
        return False
    following = await log.at(latest + 1)
    if following is None:
        return True
    try:
        return decode_headers(following.headers).cause != view.open_cause
    except VocabularyError:
        return True


async def lost_fence(log: Log, view: View, stated: int | None) -> int | None:
    """Return the sequence of the partition's last event if the log can no longer read it; None if it can.

    The next append must nevertheless name that sequence, since the broker checks it (the partition's *fence*).
    ``stated`` is the one that the broker stated when it refused an append.
    """
    if stated is None or stated == view.fenced or await log.at(stated) is not None:
        return None
    return stated


async def is_own_gone(log: Log, fence_filter: str, fenced: int) -> bool | None:
    """Return whether the log no longer holds the partition's last event; None if the log cannot be reached.

    ``fenced`` is the sequence that the partition's fence states for that event.
    """
    try:
        if await log.last(fence_filter) >= fenced:
            return False
        # A server that has just come back may lag behind the others, and not know yet: ``at`` makes certain of it.
        return await log.at(fenced) is None or await log.last(fence_filter) < fenced
    except LogError:
        return None
