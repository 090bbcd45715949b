"""The endpoint for external engines: the state of an agent at one tick (step) of its engine, for self-review."""

from typing import Any

from litestar import Request, post
from litestar.datastructures import State
from litestar.openapi import ResponseSpec
from litestar.params import JSONBody

from actors.gateway.http.bodies import Failure
from actors.gateway.http.loops.bodies import Accepted, Tick, read_loop_body, tick_event
from actors.gateway.http.loops.endpoints import IdempotencyKey
from actors.gateway.http.loops.service import LoopService
from actors.gateway.http.scopes import ASK, OF_AGENT
from actors.gateway.http.strict_requests import User, agent_of, key_of, refuse_unless

_BAD = ResponseSpec(Failure, description="The request is not valid: the message names the field.")
_NOT_TAKEN = ResponseSpec(Failure, description="It could not be stored in time: send it again.")


@post(
    "/v1/ticks",
    status_code=202,
    security=ASK,
    before_request=refuse_unless(Tick, read_loop_body),
    responses={400: _BAD, 503: _NOT_TAKEN},
    opt={OF_AGENT: True},
)
async def observe_tick(
    data: JSONBody[Tick],
    request: Request[Any, Any, State],
    idempotency_key: IdempotencyKey = "",
    user: User = "",
) -> Accepted:
    """Record an external engine's state of an agent at one tick; self-review reads it from the log."""
    loops: LoopService = request.app.state.loops
    agent, tick = tick_event(data)
    return await loops.observe(agent_of(request, agent, user), tick, key_of(idempotency_key))
