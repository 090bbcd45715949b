"""What a partition asks of a log that may have lost messages: is a decision cut in half, is its own event gone."""

from events.errors import LogError
from events.log import Log
from events.view import View
from schemas.envelope import decode_headers
from schemas.errors import VocabularyError


async def has_folded(log: Log, view: View, last: int) -> bool:
    """Whether a view has folded its own events up to ``last``, and its last decision is complete.

    The events of a decision are stored all or none, so while some are missing the rest is still to be read. The
    exception is a log that was cut within the decision: then the next message, if there is one, has another cause.
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
    """Return the sequence the fence must hold where the log's last own event can no longer be read; None where it can.

    ``stated`` is the last sequence under the fence that the log stated when it refused an append.
    """
    if stated is None or stated == view.fenced or await log.at(stated) is not None:
        return None
    return stated


async def is_own_gone(log: Log, filter: str, fenced: int) -> bool | None:
    """Whether the log no longer holds the last event that the fence counts; None where the log cannot be reached."""
    try:
        return await log.last(filter) < fenced
    except LogError:
        return None
