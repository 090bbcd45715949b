"""Checks what each endpoint requires: a scope of the caller's key, and whether keys of one agent are accepted.

An endpoint states its scope in ``security``, as OpenAPI does (:data:`ASK`, :data:`READ`, :data:`OPERATE`, or
:data:`ANY_KEY`). An endpoint without a key has :data:`PUBLIC` in its ``opt``. One that states neither serves nobody. A
key with an agent is accepted only where ``opt`` has :data:`OF_AGENT`: such an endpoint acts for, and shows, only that
agent (:func:`agent_of_key`, :func:`check_agent`).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from litestar.connection import ASGIConnection
from litestar.enums import HttpMethod
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.openapi.spec import SecurityRequirement, SecurityScheme

from actors.gateway.http.keys import ApiKeys, Key, Scope
from events.loggers import get_logger
from schemas.vocabulary.access import Operated

SCHEME = "key"
"""The name of the keys in the OpenAPI document."""

SCHEMES = {
    SCHEME: SecurityScheme(
        type="http",
        scheme="bearer",
        description="A key of the gateway (`neuraxis keys add`); the words with it are the scopes that it must have.",
    )
}

ASK: Sequence[SecurityRequirement] = [{SCHEME: ["ask"]}]
"""For ``security``: sends something and gets the result."""

READ: Sequence[SecurityRequirement] = [{SCHEME: ["read"]}]
"""For ``security``: shows what is recorded."""

OPERATE: Sequence[SecurityRequirement] = [{SCHEME: ["operate"]}]
"""For ``security``: changes what the set does. Each request but GET is recorded with the key's id."""

ANY_KEY: Sequence[SecurityRequirement] = [{SCHEME: []}]
"""For ``security``: any scope is enough."""

PUBLIC = "exclude_from_auth"
"""In ``opt``: no key is required, and the limit of requests at once does not apply. Litestar's own name for it."""

OF_AGENT = "of_agent"
"""In ``opt``: the endpoint is limited to the agent of a key that has one."""

Audit = Callable[[Operated], Awaitable[object]]
"""Records what an operator's key is about to do; raises a LogError where that fails: then it is not done."""

_logger = get_logger("neuraxis.gateway")


class Forbidden(Exception):
    """The key does not allow this; the message says what it lacks."""


class NotFound(LookupError):
    """Something that was named does not exist, or not for this caller; the message says what was looked for."""


async def keep_to_scope(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Let in only keys that the endpoint accepts: a guard of Litestar's, run before bodies. Raises Forbidden."""
    method = connection.scope.get("method")
    if handler.opt.get(PUBLIC) or method == HttpMethod.OPTIONS:
        return
    needed = scopes_of(handler)
    if needed is None:
        raise Forbidden("this endpoint names no scope, and serves nobody: report it, it is a bug")
    key: Key = connection.auth
    for scope in needed:
        _check_scope(key, scope)
    if key.agent and not handler.opt.get(OF_AGENT):
        raise Forbidden("this shows or changes all agents, and the key is for one agent: use another key")
    if "operate" in needed and method != HttpMethod.GET:
        await _record_operation(connection, key)


def scopes_of(handler: BaseRouteHandler) -> tuple[str, ...] | None:
    """Return the scopes that an endpoint requires; None where it states none at all."""
    security = handler.resolve_security() if isinstance(handler, HTTPRouteHandler) else []
    named = [each[SCHEME] for each in security if SCHEME in each]
    return tuple(scope for each in named for scope in each) if named else None


async def require_operator(connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Check and record a request whose body asks for what only an operator may do. Raises Forbidden."""
    key: Key = connection.auth
    _check_scope(key, "operate")
    await _record_operation(connection, key)


def may_operate(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether a request has a key that may do what only an operator may."""
    key: Key = connection.auth
    return "operate" in key.scopes


def agent_of_key(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the only agent that a request may be about; empty: any."""
    key: Key = connection.auth
    return key.agent


def check_agent(connection: ASGIConnection[Any, Any, Any, Any], agent: str) -> str:
    """Return the agent that a request is about; raises Forbidden where its key is for another one."""
    own = agent_of_key(connection)
    if own and agent != own:
        raise Forbidden(f"the key is for agent {own} alone: name that one, or none")
    return agent


def check_exchange(exchange: str, agent: str, only: str, whose: str = "") -> None:
    """Raise NotFound unless an exchange is of the only agent that a caller may know of.

    Args:
        exchange: The exchange's id.
        agent: The agent that it belongs to.
        only: The agent that it must be of; empty: any.
        whose: How the message names that agent. By default, its name.
    """
    if only and agent != only:
        raise NotFound(f"{whose or f'agent {only}'} has no exchange {exchange[:64]!r}")


def key_check(connection: ASGIConnection[Any, Any, Any, Any]) -> Callable[[], bool]:
    """Return a function that says whether the key of a request is still valid: for responses without an end."""
    keys: ApiKeys = connection.app.state.api_keys
    key: Key = connection.auth
    authorization = connection.headers.get("authorization", "").encode("latin-1")
    return lambda: keys.find(authorization) == key


def _check_scope(key: Key, scope: Scope | str) -> None:
    if scope not in key.scopes:
        raise Forbidden(f"this takes a key with the scope {scope}: `neuraxis keys add --scope {scope}` makes one")


async def _record_operation(connection: ASGIConnection[Any, Any, Any, Any], key: Key) -> None:
    """Record an operation before it is done, so that none can be missing in the log."""
    audit: Audit = connection.app.state.audit
    action = f"{connection.scope.get('method')} {connection.scope.get('path_template', '')}"
    about = "/".join(str(value) for value in connection.path_params.values())
    _logger.info("operated", key=key.id, action=action)
    await audit(Operated(key_id=key.id, action=action, about=about[:500]))
