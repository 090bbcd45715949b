"""The endpoint for feedback: how good an exchange was, whether it did harm, and a comment."""

from typing import Annotated, Any

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.params import JSONBody

from actors.gateway.external_events import InvalidField
from actors.gateway.http.bodies import Name
from actors.gateway.http.feedback.service import FeedbackService
from actors.gateway.http.loops.endpoints import IdempotencyKey
from actors.gateway.http.operator_endpoints import NotLearned, Operations
from actors.gateway.http.route_building import post_body
from actors.gateway.http.scopes import ASK, agent_of_key, check_exchange, may_operate, require_operator
from actors.gateway.http.strict_requests import User, agent_of, key_of
from schemas.intake.blank import is_blank
from schemas.vocabulary.feedback import FeedbackGiven, HarmReported, Reward

MOST_COMMENT = 8_000
"""Most characters of a comment."""

_BY, _WHY = "feedback", "reported as harmful by POST /v1/feedback"
"""Who ordered a precedent that is made of reported harm, and why, as they are recorded with it."""


class Feedback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an exchange was: at least one of ``reward``, ``harmful`` and ``comment``.

    ``exchange`` is its whole id. ``reward`` is 1 for the best, -1 for the worst. ``harmful``: it did harm.
    """

    exchange: Name
    reward: Reward | None = None
    harmful: bool | None = None
    comment: Annotated[str, msgspec.Meta(max_length=MOST_COMMENT)] | None = None


class FeedbackTaken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Feedback is in the log: the exchange, and the event's id.

    If an operator reported harm, ``precedent`` names the precedent that was recorded: inputs like that one are
    rejected. If none could be, ``not_learned`` says why.
    """

    exchange: str
    event: str
    precedent: str | None = None
    not_learned: str = ""


_FAILURES = {
    404: "There is no such exchange.",
    503: "It could not be looked up, or stored in time: send it again.",
}


@post_body("/v1/feedback", Feedback, _FAILURES, security=ASK, status_code=202)
async def give_feedback(
    data: JSONBody[Feedback], request: Request[Any, Any, State], idempotency_key: IdempotencyKey = "", user: User = ""
) -> FeedbackTaken:
    """Give feedback on an exchange: the router learns from it, and the guards learn from harm that an operator reports.

    Harm that anybody else reports raises an alert, and does not change what the guards stop.
    """
    service: FeedbackService = request.app.state.feedback
    given, key = _event_of(data), key_of(idempotency_key)
    rated = await service.rated(data.exchange)
    if user:
        check_exchange(data.exchange, rated.agent, agent_of(request, None, user), "the agent of that user")
    check_exchange(data.exchange, rated.agent, agent_of_key(request))
    given = msgspec.structs.replace(given, mode=rated.mode)
    event = await service.give(rated, given, key)
    taken = FeedbackTaken(exchange=data.exchange, event=event)
    if not (isinstance(given, HarmReported) and may_operate(request)):
        return taken
    await require_operator(request)
    operations: Operations = request.app.state.operations
    try:
        return msgspec.structs.replace(taken, precedent=await operations.learn_harm(data.exchange, _BY, _WHY))
    except NotLearned as why:
        return msgspec.structs.replace(taken, not_learned=str(why))


def _event_of(body: Feedback) -> FeedbackGiven | HarmReported:
    """Return the event of feedback; raises InvalidField for feedback without content."""
    comment = body.comment or ""
    if body.comment is not None and is_blank(comment):
        raise InvalidField("comment", "comment is blank: write something, or leave it out")
    if body.reward is None and body.harmful is None and not comment:
        raise InvalidField(
            "reward", "the body says nothing of the exchange: give reward, harmful or comment", "missing_field"
        )
    if body.harmful:
        return HarmReported(reward=body.reward, comment=comment)
    return FeedbackGiven(reward=body.reward, harmful=body.harmful, comment=comment)


ENDPOINTS = (give_feedback,)
