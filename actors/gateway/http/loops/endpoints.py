"""The endpoints for loops, which reflection guardrails judge, and for ticks, which external engines report."""

from typing import Annotated, Any

from litestar import Request, get
from litestar.datastructures import State
from litestar.params import FromPath, HeaderParameter, JSONBody, QueryParameter

from actors.gateway.external_events import check_name
from actors.gateway.http.loops.bodies import (
    Accepted,
    GuardrailsOverridden,
    GuardrailsOverride,
    GuardrailsShown,
    LoopCompletion,
    LoopDecision,
    Tick,
    check_loop,
    completion_event,
    override_event,
    read_loop_body,
    tick_event,
)
from actors.gateway.http.loops.responses import decision_of, status_of
from actors.gateway.http.loops.service import LoopService
from actors.gateway.http.route_building import BAD_FIELD, failures_of, post_body
from actors.gateway.http.scopes import ASK, OF_AGENT, OPERATE, require_operator
from actors.gateway.http.strict_requests import QUERY, User, agent_of, key_of

IdempotencyKey = Annotated[str, HeaderParameter(name="Idempotency-Key", description="Makes repeats one event.")]
Agent = Annotated[str, QueryParameter(name="agent", description="The agent whose loop it is.")]

_NOT_TAKEN = {503: "It could not be stored in time: send it again."}
_UNANSWERED = {**_NOT_TAKEN, 504: "It is in the log, and was not answered in time."}
_UNKNOWN = {404: "No such loop is known."}


@post_body("/orchestrator/loop-complete", LoopCompletion, _UNANSWERED, security=ASK, read=read_loop_body)
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
    responses=failures_of({400: BAD_FIELD, **_UNKNOWN}),
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


@post_body(
    "/orchestrator/override-guardrails/{loop_id:str}",
    GuardrailsOverride,
    {**_UNANSWERED, **_UNKNOWN},
    security=OPERATE,
    read=read_loop_body,
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


@post_body("/v1/ticks", Tick, _NOT_TAKEN, security=ASK, status_code=202, read=read_loop_body)
async def observe_tick(
    data: JSONBody[Tick], request: Request[Any, Any, State], idempotency_key: IdempotencyKey = "", user: User = ""
) -> Accepted:
    """Record an external engine's state of an agent at one tick; self-review reads it from the log."""
    loops: LoopService = request.app.state.loops
    agent, tick = tick_event(data)
    return await loops.observe(agent_of(request, agent, user), tick, key_of(idempotency_key))


ENDPOINTS = (complete_loop, show_guardrails, override_guardrails, observe_tick)
