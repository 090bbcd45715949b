"""Chooses the agent of an input that names none: one for all, or one for each user or session. Pure.

An agent remembers across all of its sessions. So people who must not learn of each other need separate agents.
"""

import hashlib
from typing import Literal

from actors.gateway.external_events import InvalidInput
from schemas.names import wrong_with_name

AgentPer = Literal["shared", "user", "session"]
"""Who shares an agent: everybody, the sessions of one user, or nobody (one agent for each session)."""

SHARED_AGENT = "default"
"""The agent that everybody shares."""

_HASHED = 32
"""Hexadecimal digits of the hash that replaces a name which is too long."""


def agent_for(given: str, *, per: AgentPer, user: str = "", session: str = "") -> str:
    """Return the agent that was given; else that of the user or session, whose name is derived from theirs.

    An input without a user gets the agent of its session, so that nobody learns from it what another person said.

    Raises:
        InvalidInput: none was given, and neither the user nor the session is known.
    """
    if given or per == "shared":
        return given or SHARED_AGENT
    if per == "user" and user:
        return _named("user", user)
    if session:
        return _named("session", session)
    raise InvalidInput(
        f"the agent is missing: each {per} has its own agent here (gateway.agent_per), so name the {per}, or an agent"
    )


def why_user_is_ignored(given: str, *, per: AgentPer, user: str) -> str:
    """Return why naming a user has no effect, and what to do; empty if it has one, or if an agent was given.

    A caller that names a user relies on an agent that others do not share.
    """
    if not user or given or per == "user":
        return ""
    whose = "all users share an agent" if per == "shared" else "each session has its own agent"
    return f'the user changes nothing: {whose} here; set gateway.agent_per = "user", or name an agent'


def _named(kind: str, name: str) -> str:
    agent = f"{kind}:{name}"
    if len(name) >= _HASHED and wrong_with_name(agent):  # too long with its prefix
        return f"{kind}:{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:_HASHED]}"
    return agent
