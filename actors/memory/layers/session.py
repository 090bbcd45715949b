"""The memory of a single session: its last turns, and its gists (summaries of exchanges in one line).

Other sessions of the agent cannot see them.
"""

import msgspec

from actors.memory.layers.gist import TURN_CHARACTERS, shorten
from actors.memory.settings import MemorySettings
from schemas.actor import session_key
from schemas.persistent import ExpiringMap

_NS_PER_MS = 1_000_000


class Turn(msgspec.Struct, frozen=True, gc=False):
    """What was said and answered, shortened; ``number`` is the number of its exchange."""

    number: int
    said: str
    answered: str

    @property
    def text(self) -> str:
        """Both sides in one line."""
        return f"{self.said} \u2192 {self.answered}" if self.answered else self.said


class Gist(msgspec.Struct, frozen=True, gc=False):
    """The gist of an exchange with its topic and time; ``number`` is the number of its exchange."""

    number: int
    topic: str
    text: str
    at_ns: int


class Session(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Turns and gists in order. ``exchanges`` counts the inputs; ``seen_ns`` is the time of the last event."""

    exchanges: int = 0
    turns: tuple[Turn, ...] = ()
    gists: tuple[Gist, ...] = ()
    seen_ns: int = 0

    def remembering(self, turn: Turn, gist: Gist, settings: MemorySettings) -> "Session":
        """Return the session after an exchange; what exceeds the capacity or has expired is dropped."""
        return msgspec.structs.replace(
            self,
            turns=(*self.turns, turn)[-settings.turns :],
            gists=(*self.fresh_gists(gist.at_ns, settings), gist)[-settings.gists :],
        )

    def fresh_gists(self, now_ns: int, settings: MemorySettings) -> tuple[Gist, ...]:
        """Return the gists that have not expired."""
        lifetime_ns = settings.gist_lifetime_ms * _NS_PER_MS
        return tuple(gist for gist in self.gists if now_ns - gist.at_ns <= lifetime_ns)

    def without(self, numbers: frozenset[int]) -> "Session":
        """Return the session without the turns and gists of these exchanges."""
        return msgspec.structs.replace(
            self,
            turns=tuple(turn for turn in self.turns if turn.number not in numbers),
            gists=tuple(gist for gist in self.gists if gist.number not in numbers),
        )


def turn_of(number: int, said: str, answered: str) -> Turn:
    """Return a turn, both sides shortened."""
    return Turn(number, shorten(said, TURN_CHARACTERS), shorten(answered, TURN_CHARACTERS))


def sessions_of(sessions: ExpiringMap[Session], agent: str) -> dict[str, Session]:
    """Return the memories of an agent's sessions, by session, including sessions that are no longer recalled."""
    prefix = f"{agent}\n"
    younger_last = (*sessions.old.items(), *sessions.young.items())
    return {key.removeprefix(prefix): session for key, session in younger_last if key.startswith(prefix)}


def replaced(sessions: ExpiringMap[Session], agent: str, name: str, session: Session) -> ExpiringMap[Session]:
    """Return the sessions with one replaced, or dropped if it is blank.

    An expiring map keeps a younger and an older generation. The session stays in its generation; an older copy of it in
    the older one is dropped, because it contains text, too.
    """
    key = session_key(agent, name)
    is_young = key in sessions.young
    young, old = (each.delete(key) if key in each else each for each in (sessions.young, sessions.old))
    if session != Session():
        young, old = (young.set(key, session), old) if is_young else (young, old.set(key, session))
    return ExpiringMap(young, old, sessions.since_ns)
