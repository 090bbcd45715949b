"""Outside specialists. Owner: ``delegate``, an effector that asks NATS micro services."""

from schemas.actor import Scope
from schemas.entry import Entry, Severity
from schemas.event import Event, Failed, Personal
from schemas.vocabulary.memory import Count


class DelegateAnswered(Event, frozen=True, kw_only=True, tag="forged_id.delegate.answered"):
    """A specialist's answer. ``request`` is the id of ``act.delegation_requested``; ``index`` its action's."""

    request: str
    index: Count
    specialist: str
    answer: Personal


class DelegateFailed(Failed, frozen=True, kw_only=True, tag="forged_id.delegate.failed"):
    """No specialist answered.

    Reasons besides an effector's own: ``no_specialist``, ``specialist_refused`` (it answered with an error),
    ``answer_invalid`` (too large, or not of the form that specialists answer in).
    """

    request: str = ""
    index: Count = 0


ENTRIES = (
    Entry(
        owner="delegate",
        scope=Scope.SESSION,
        meaning="An outside specialist answered what an ACT iteration asked.",
        sample=DelegateAnswered(request="0" * 32, index=0, specialist="calculator", answer="42"),
    ),
    Entry(
        owner="delegate",
        scope=Scope.SESSION,
        meaning="No outside specialist answered; that action failed, the loop goes on.",
        sample=DelegateFailed(
            reason="no_specialist",
            error="",
            failed_seq=9,
            failed_topic="forged_id.act.delegation_requested",
            request="0" * 32,
        ),
        severity=Severity.INFO,
    ),
)
