"""The endpoints for loops, which reflection guardrails judge: complete one, show its status, override a guardrail."""

from typing import Annotated, Any

from litestar import Request, get, post
from litestar.datastructures import State
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, HeaderParameter, JSONBody, QueryParameter

from actors.gateway.external_events import check_name
from actors.gateway.http.bodies import Failure
from actors.gateway.http.loops.bodies import (
    GuardrailsOverridden,
    GuardrailsOverride,
    GuardrailsShown,
    LoopCompletion,
    LoopDecision,
    check_loop,
    completion_event,
    override_event,
    read_loop_body,
)
from actors.gateway.http.loops.responses import decision_of, status_of
from actors.gateway.http.loops.service import LoopService
from actors.gateway.http.scopes import ASK, OF_AGENT, OPERATE, require_operator
from actors.gateway.http.strict_requests import QUERY, User, agent_of, key_of, refuse_unless

IdempotencyKey = Annotated[str, HeaderParameter(name="Idempotency-Key", description="Makes repeats one event.")]
Agent = Annotated[str, QueryParameter(name="agent", description="The agent whose loop it is.")]

_BAD = ResponseSpec(Failure, description="The request is not valid: the message names the field.")
_UNKNOWN = ResponseSpec(Failure, description="No such loop is known.")
_LATE = ResponseSpec(Failure, description="It is in the log, and was not answered in time.")
_NOT_TAKEN = ResponseSpec(Failure, description="It could not be stored in time: send it again.")
_WRITE_RESPONSES = {400: _BAD, 503: _NOT_TAKEN, 504: _LATE}


@post(
    "/orchestrator/loop-complete",
    status_code=200,
    security=ASK,
    before_request=refuse_unless(LoopCompletion, read_loop_body),
    responses=_WRITE_RESPONSES,
    opt={OF_AGENT: True},
)
async def complete_loop(
    data: JSONBody[LoopCompletion],
    request: Request[Any, Any, State],
    idempotency_key: IdempotencyKey = "",
    user: User = "",
) -> LoopDecision:
    """Have guardrails decide whether a completed loop runs again, and why. An override needs the scope `operate`."""
    loops: LoopService = request.app.state.loops
    agent, event, key = agent_of(request, data.agent, user), completion_event(data), key_of(idempotency_key)
    if event.override_fatigue or event.override_max_reruns:
        await require_operator(request)
    return decision_of(await loops.complete(agent, event, key))


@get(
    "/orchestrator/guardrails-status/{loop_id:str}",
    security=ASK,
    responses={400: _BAD, 404: _UNKNOWN},
    opt={QUERY: ("agent",), OF_AGENT: True},
)
async def show_guardrails(
    loop_id: FromPath[str], request: Request[Any, Any, State], agent: Agent = "", user: User = ""
) -> GuardrailsShown:
    """Show the state of every guardrail for a loop's family now, and how the loop was judged."""
    check_loop(loop_id)
    owner = agent_of(request, agent, user)
    check_name("agent", owner)
    loops: LoopService = request.app.state.loops
    return status_of(*await loops.status(owner, loop_id))


@post(
    "/orchestrator/override-guardrails/{loop_id:str}",
    status_code=200,
    security=OPERATE,
    before_request=refuse_unless(GuardrailsOverride, read_loop_body),
    responses={**_WRITE_RESPONSES, 404: _UNKNOWN},
    opt={OF_AGENT: True},
)
async def override_guardrails(
    loop_id: FromPath[str],
    data: JSONBody[GuardrailsOverride],
    request: Request[Any, Any, State],
    idempotency_key: IdempotencyKey = "",
    user: User = "",
) -> GuardrailsOverridden:
    """Let a loop's family go on past its rerun limit, or although its reruns improve nothing, for a time.

    Who did it and why is recorded.
    """
    loops: LoopService = request.app.state.loops
    event = override_event(loop_id, data)
    done = await loops.override(agent_of(request, data.agent, user), event, key_of(idempotency_key))
    return GuardrailsOverridden(
        loop_id=done.loop_id,
        override_fatigue=done.override_fatigue,
        override_max_reruns=done.override_max_reruns,
        overridden_by=done.overridden_by,
        override_reason=done.override_reason,
    )
