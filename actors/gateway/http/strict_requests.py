"""Checks requests strictly, before the framework reads them: bodies, query parameters and our headers."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.enums import HttpMethod
from litestar.handlers import BaseRouteHandler
from litestar.params import HeaderParameter

from actors.gateway.agents import AgentPer, agent_for, why_user_is_ignored
from actors.gateway.external_events import InvalidField, InvalidInput, check_name
from actors.gateway.http.bodies import loop_named_in, read_body
from actors.gateway.http.openai.failures import is_openai
from actors.gateway.http.scopes import agent_of_key, check_agent
from schemas.intake.blank import is_blank
from schemas.intake.nearest_name import nearest_name
from schemas.intake.strict import did_you_mean, quoted_name

USER = "X-Neuraxis-User"
"""Header that names the user of a request. It is not checked: the gateway trusts its callers."""

User = Annotated[
    str, HeaderParameter(name=USER, description="The user that the request is for, if each user has an agent.")
]

QUERY = "query"
"""In an endpoint's ``opt``: the names of the query parameters it accepts; None: any."""

HEADERS = "headers"
"""In an endpoint's ``opt``: further headers of ours that it accepts."""

KEY_HEADER = "Idempotency-Key"
"""Header that makes repeats of a request one event."""

_KEY_PARAMETER = "idempotency_key"
"""The parameter by which endpoints take :data:`KEY_HEADER`."""

_REPEATS = "idempot"
"""The letters with which a misspelt ``Idempotency-Key`` still begins, perhaps after an x; no other header does."""

_OTHER_SPELLINGS = {"xuser": USER}
"""The letters of likely misspellings -> the header that is meant."""

_TAKEN_ELSEWHERE = {"x-neuraxis-session": "only chats take it; elsewhere a body names its session"}
"""Headers of ours that only some endpoints take -> what to do at the others."""

_OURS = "neuraxis"
"""The letters that our headers begin with, behind an x: nobody else uses them, so a misspelt one is refused."""

LOOP = "loop_id"
"""The key under which a request's state keeps the loop that its body names."""


def refuse_unless(
    kind: type[msgspec.Struct], read: Callable[[bytes, type[msgspec.Struct]], object] = read_body
) -> Callable[[Request[Any, Any, State]], Awaitable[None]]:
    """Return a ``before_request`` of Litestar's that refuses a body that ``read`` cannot read as a ``kind``.

    Litestar itself accepts numbers written as text, and answers status 500 to text that is not UTF-8 or nested too
    deeply.
    """

    async def check(request: Request[Any, Any, State]) -> None:
        raw = await request.body()
        # An error names its loop, even where the rest of the body cannot be read.
        request.state[LOOP] = loop_named_in(raw)
        read(raw, kind)

    return check


def agent_of(
    request: Request[Any, Any, State], given: str | None, user: str, session: str = "", speaker: str = ""
) -> str:
    """Return the agent of a request: the one it names, that of its key, or that of its user.

    A loop or a tick belongs to no session: if each session has its own agent, it must name its agent. A request with a
    ``session`` belongs to the agent of that session. A user that has no effect is refused: otherwise the caller would
    think that the user has an agent of their own. ``speaker`` is a user that the body names for another purpose: it
    counts if no header names one.

    Raises:
        InvalidField: neither agent nor user is named.
        Forbidden: the key is for another agent.
    """
    per: AgentPer = request.app.state.agent_per
    user = _checked_name(USER, text_of_header(USER, user))
    if not given and not user:
        given = agent_of_key(request)
    if why := why_user_is_ignored(given or "", per=per, user=user):
        raise InvalidField(USER, f"the header {USER}: {why}")
    try:
        agent = agent_for(given or "", per=per, user=user or speaker, session=session)
    except InvalidInput as wrong:
        raise InvalidField("agent", str(wrong)) from wrong
    return check_agent(request, agent)


async def check_query_and_headers(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Refuse unknown or repeated query parameters, and misspelt, repeated or empty headers of ours.

    If a header is given twice, only the first would count. So behind a proxy that appends the user to what a client
    sent, the client would choose the user.

    A guard of Litestar's, so it runs before a body is read; it is async because a plain function would run in a thread.
    Raises InvalidField.
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
        if is_blank(value):
            raise InvalidField(name, f"the query parameter {name} is empty: give it a value, or leave it out")
    ours: tuple[str, ...] = handler.opt.get(HEADERS, ())
    for name in (KEY_HEADER, USER, *ours):
        if is_blank(connection.headers.get(name, "unset")):
            raise InvalidField(name, f"the header {name} is empty: give it a value, or leave it out")
        if len(connection.headers.getall(name, [])) > 1:
            raise InvalidField(name, f"the header {name} stands twice: keep one of them", "key_twice")
    _refuse_key_without_effect(connection, handler)
    accepted = {name.lower() for name in ours}
    for name in connection.headers:
        if name.lower() in accepted:
            continue
        if (meant := _header_meant(name, ours)) and name.lower() != meant.lower():
            hint = _TAKEN_ELSEWHERE.get(name.lower(), f"did you mean {meant!r}?")
            raise InvalidField(name, f"there is no header {quoted_name(name)}: {hint}", "unknown_field")


def _refuse_key_without_effect(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Refuse an ``Idempotency-Key`` where a repeat counts as another request: its caller expects that it does not.

    Clients of OpenAI's may send one with whatever they post.
    """
    if connection.scope.get("method") != HttpMethod.POST or KEY_HEADER not in connection.headers:
        return
    if _KEY_PARAMETER not in handler.parsed_fn_signature.parameters and not is_openai(connection.url.path):
        raise InvalidField(
            KEY_HEADER,
            f"the header {KEY_HEADER} is not taken here, since a repeat counts as well: leave it out, and see what is "
            "recorded before you send anything again",
            "unknown_field",
        )


def text_of_header(name: str, value: str) -> str:
    """Return a header's value as the text that was sent, which the framework reads as Latin-1; raises InvalidField.

    Otherwise a name in UTF-8 would be another name here than in a body, or on the command line.
    """
    try:
        return value.encode("latin-1").decode()
    except UnicodeError as wrong:
        raise InvalidField(name, f"the header {name} is not UTF-8: write it so") from wrong


def _header_meant(name: str, ours: Sequence[str]) -> str:
    """Return the header of ours that a header may be a misspelling of; empty if it is somebody else's."""
    letters = _letters(name)
    if letters.removeprefix("x").startswith(_REPEATS):
        return KEY_HEADER
    if letters.removeprefix("x").startswith(_OURS):
        by_letters = {_letters(each): each for each in (USER, *ours)}
        return by_letters.get(nearest_name(letters, by_letters), USER)
    return _OTHER_SPELLINGS.get(letters, "")


def _letters(name: str) -> str:
    return re.sub("[^a-z]", "", name.lower())


def key_of(header: str) -> str:
    """Return an ``Idempotency-Key``; empty when there is none; raises InvalidField for an invalid one."""
    return _checked_name(KEY_HEADER, header)


def _checked_name(header: str, value: str) -> str:
    """Return the name that a header holds, if any; raises InvalidField for an invalid one."""
    if value:
        try:
            check_name(header, value)
        except InvalidField as wrong:
            raise InvalidField(header, f"the header {wrong}") from wrong
    return value
