"""Reading requests strictly, before the framework reads them."""

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.params import HeaderParameter

from actors.gateway.agents import AgentPer, agent_for, why_user_is_ignored
from actors.gateway.http.bodies import loop_named_in, read
from actors.gateway.http.scopes import agent_of_key, check_agent
from actors.gateway.outside import InvalidField, InvalidInput, check_name
from schemas.intake.strict import did_you_mean, quoted_name

USER = "X-Neuraxis-User"
"""Header that says for whom a request is made: whoever may call the gateway is believed."""

User = Annotated[str, HeaderParameter(name=USER, description="For whom it is, where agents are one a user.")]

QUERY = "query"
"""Where an endpoint's ``opt`` names the parameters that its query may have; None: any."""

HEADERS = "headers"
"""Where an endpoint's ``opt`` names further headers of ours that it takes."""

KEY_HEADER = "Idempotency-Key"
_OTHER_SPELLINGS = {
    **dict.fromkeys(("idempotencykey", "xidempotencykey", "idempotencekey", "idempotentkey"), KEY_HEADER),
    **dict.fromkeys(("neuraxisuser", "xneuraxisuser", "xneuraxisusername", "xneuraxisuserid", "xuser"), USER),
}
_OURS = "xneuraxis"
"""What headers of ours begin with, by their letters: nobody else has a use for one."""

LOOP = "loop_id"
"""Where a request's state keeps the loop that its body names."""


def refuse_unless(kind: type[msgspec.Struct]) -> Callable[[Request[Any, Any, State]], Awaitable[None]]:
    """Return what refuses a body that is not of ``kind``, as Litestar's ``before_request``.

    Litestar takes numbers that are text, and answers text that is no UTF-8, or nested too deeply, with status 500.
    """

    async def check(request: Request[Any, Any, State]) -> None:
        raw = await request.body()
        # A failure names its loop, also where the rest of the body cannot be read.
        request.state[LOOP] = loop_named_in(raw)
        read(raw, kind)

    return check


def agent_of(
    request: Request[Any, Any, State], given: str | None, user: str, session: str = "", speaker: str = ""
) -> str:
    """Return the agent that a request is for: the one it names, its key's, or that of its user.

    A loop or a tick belongs to no session: where agents are one a session, it has to name its agent; what has a
    ``session`` belongs to that one's. A user who would
    change nothing is refused: told nothing, the caller would take an agent that all share for the user's own.
    ``speaker`` is the user that a body names for whatever purpose: it counts where no header names one.

    Raises:
        InvalidField: neither is named.
        Forbidden: the key is for another agent.
    """
    per: AgentPer = request.app.state.agent_per
    if user:
        try:
            check_name(USER, user)
        except InvalidField as wrong:
            raise InvalidField(USER, f"the header {wrong}") from wrong
    if not given and not user:
        given = agent_of_key(request)
    if unheard := why_user_is_ignored(given or "", per=per, user=user):
        raise InvalidField(USER, f"the header {USER}: {unheard}")
    try:
        agent = agent_for(given or "", per=per, user=user or speaker, session=session)
    except InvalidInput as wrong:
        raise InvalidField("agent", str(wrong)) from wrong
    return check_agent(request, agent)


async def strict_address(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Refuse a query parameter that the endpoint has not, or one twice, another spelling of a header, and empty ones.

    A guard of Litestar's: it runs before a body is read; a plain function would run in a thread. Raises InvalidField.
    """
    known: tuple[str, ...] | None = handler.opt.get(QUERY, ())
    given = [name for name, _ in connection.query_params.multi_items()]
    for name, value in connection.query_params.multi_items():
        if known is None:
            break
        if name not in known:
            raise InvalidField(
                name, f"there is no query parameter {quoted_name(name)}: {did_you_mean(name, known)}", "unknown_field"
            )
        if given.count(name) > 1:
            raise InvalidField(name, f"the query parameter {name} stands twice: keep one of them", "key_twice")
        if not value.strip():
            raise InvalidField(name, f"the query parameter {name} is empty: give it a value, or leave it out")
    ours: tuple[str, ...] = handler.opt.get(HEADERS, ())
    for name in (KEY_HEADER, USER, *ours):
        if not connection.headers.get(name, "unset").strip():
            raise InvalidField(name, f"the header {name} is empty: give it a value, or leave it out")
    taken = {name.lower() for name in ours}
    for name in connection.headers:
        if name.lower() in taken:
            continue
        letters = re.sub("[^a-z]", "", name.lower())
        meant = _OTHER_SPELLINGS.get(letters, USER if letters.startswith(_OURS) else "")
        if meant and name.lower() != meant.lower():
            raise InvalidField(
                name, f"there is no header {quoted_name(name)}: did you mean {meant!r}?", "unknown_field"
            )


def key_of(header: str) -> str:
    """Return an ``Idempotency-Key``, empty when there is none; raises InvalidField for one that cannot be taken."""
    if header:
        try:
            check_name("Idempotency-Key", header)
        except InvalidField as wrong:
            raise InvalidField("Idempotency-Key", f"the header {wrong}") from wrong
    return header
