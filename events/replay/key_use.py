"""What a name names in a log: a session, an agent or an exchange, and whose."""

from urllib.parse import unquote

import msgspec

from events.replay.sources import Source
from schemas.actor import Scope
from schemas.subjects import EVERYTHING

MOST_NAMED = 3
"""How many sessions of an agent, or agents of a session, a message names."""

_SESSION, _AGENT, _EXCHANGE = "ce-session", "ce-agent", "ce-exchange"


class KeyUse(msgspec.Struct, kw_only=True):
    """What a name names in a log; it may be several things.

    ``agents`` are those of the session or exchange of that name, ``sessions`` those of the agent or exchange, the first
    :data:`MOST_NAMED`; both in order of appearance, as keys.
    """

    is_session: bool = False
    is_agent: bool = False
    is_exchange: bool = False
    agents: dict[str, None] = {}
    sessions: dict[str, None] = {}

    @property
    def is_anything(self) -> bool:
        """Whether any event is of that name."""
        return self.is_session or self.is_agent or self.is_exchange

    def fits(self, scope: Scope) -> bool:
        """Whether states of a scope are kept under the name; for GLOBAL, whether the log has the name at all."""
        if scope is Scope.GLOBAL:
            return self.is_anything
        return self.is_session if scope is Scope.SESSION else self.is_agent

    def complaint(self, key: str, kept: str, scope: Scope) -> str:
        """Return the error for a name that is no key of a scope; ``kept``: such as ``states are kept``."""
        kinds = {"an agent": self.is_agent, "a session": self.is_session, "an exchange": self.is_exchange}
        what = next((kind for kind, is_kind in kinds.items() if is_kind), "a partition of other actors")
        owners = list(self.sessions if scope is Scope.SESSION else self.agents)[:MOST_NAMED]
        name = f"its {scope}, such as {', '.join(map(repr, owners))}" if owners else f"a {scope}"
        return f"{key!r} is {what}, and {kept} by {scope}: name {name}"


async def use_of_key(source: Source, key: str, scope: Scope | None = None) -> KeyUse:
    """Return what a name names; with a scope, reading ends once it is found to be a key of that scope.

    Raises:
        LogError: the log cannot be read.
    """
    found = KeyUse(agents={}, sessions={})
    async for batch in source.as_stored([EVERYTHING], 0, (await source.info()).last_seq):
        for stored in batch:
            names = {header: unquote(stored.headers.get(header, "")) for header in (_SESSION, _AGENT, _EXCHANGE)}
            if key not in names.values():
                continue
            found.is_session = found.is_session or names[_SESSION] == key
            found.is_agent = found.is_agent or names[_AGENT] == key
            found.is_exchange = found.is_exchange or names[_EXCHANGE] == key
            if names[_AGENT] not in ("", key):
                found.agents.setdefault(names[_AGENT])
            if names[_SESSION] not in ("", key) and len(found.sessions) < MOST_NAMED:
                found.sessions.setdefault(names[_SESSION])
        if scope is not None and found.fits(scope):
            break
    return found
