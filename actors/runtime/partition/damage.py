"""What a partition asks a log that may have lost messages: half a decision at its end, an own event gone."""

from events.errors import LogError
from events.log import Log
from events.view import View
from schemas.envelope import decode_headers
from schemas.errors import VocabularyError


async def has_folded(log: Log, view: View, last: int) -> bool:
    """Whether a view has its own events up to ``last``, and nothing is to come of the decision that it ends with.

    Appends are stored all or none, so the rest of a decision is on its way: unless the log was cut within it. Then what
    follows, if anything does, is no part of it.
    """
    begun = view.open_decision
    if not begun:
        return view.own_last >= last
    if begun < last:
        return False
    following = await log.at(begun + 1)
    if following is None:
        return True
    try:
        return decode_headers(following.headers).cause != view.open_cause
    except VocabularyError:
        return True


async def lost_fence(log: Log, view: View, stated: int | None) -> int | None:
    """Return what the fence must hold where the log's last own event cannot be read any more; None where it can.

    ``stated`` is what the log said is the fence's last when it refused an append.
    """
    if stated is None or stated == view.fenced or await log.at(stated) is not None:
        return None
    return stated


async def is_own_gone(log: Log, filter: str, fenced: int) -> bool | None:
    """Whether the log no longer holds the last event that a fence counts; None where it cannot be asked."""
    try:
        return await log.last(filter) < fenced
    except LogError:
        return None
