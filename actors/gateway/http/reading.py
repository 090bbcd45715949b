"""Reading requests strictly, before the framework reads them."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.params import HeaderParameter

from actors.gateway.agent_events import InvalidField, check_name
from actors.gateway.agents import AgentPer, agent_for
from actors.gateway.http.bodies import loop_named_in, read
from actors.gateway.inputs import InvalidInput

USER = "X-Neuraxis-User"
"""Header that says for whom a request is made: whoever may call the gateway is believed."""

User = Annotated[str, HeaderParameter(name=USER, description="For whom it is, where agents are one a user.")]

LOOP = "loop_id"
"""Where a request's state keeps the loop that its body names."""


def strictly(kind: type[msgspec.Struct]) -> Callable[[Request[Any, Any, State]], Awaitable[None]]:
    """Return what refuses a body that is not of ``kind``, as Litestar's ``before_request``.

    Litestar takes numbers that are text, and answers text that is no UTF-8, or nested too deeply, with status 500.
    """

    async def check(request: Request[Any, Any, State]) -> None:
        raw = await request.body()
        # A failure names its loop, also where the rest of the body cannot be read.
        request.state[LOOP] = loop_named_in(raw)
        read(raw, kind)

    return check


def agent_of(request: Request[Any, Any, State], given: str | None, user: str) -> str:
    """Return the agent that a request is for: the one it names, or that of its user; raises InvalidField for neither.

    A loop or a tick belongs to no session: where agents are one a session, it has to name its agent.
    """
    per: AgentPer = request.app.state.agent_per
    if user:
        try:
            check_name(USER, user)
        except InvalidField as wrong:
            raise InvalidField(USER, f"the header {wrong}") from wrong
    try:
        return agent_for(given or "", per=per, user=user)
    except InvalidInput as wrong:
        raise InvalidField("agent", str(wrong)) from wrong


def key_of(header: str) -> str:
    """Return an ``Idempotency-Key``, empty when there is none; raises InvalidField for one that cannot be taken."""
    if header:
        try:
            check_name("Idempotency-Key", header)
        except InvalidField as wrong:
            raise InvalidField("Idempotency-Key", f"the header {wrong}") from wrong
    return header
