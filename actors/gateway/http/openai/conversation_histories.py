"""Which part of each conversation was read before: a client sends all of it each time, but only new parts are read.

The histories are kept in this process only, and bounded. After a restart, or in another gateway, everything is read
again. A part is skipped only if it is exactly what was read: if one word has changed, all is read again.

A conversation without a named session gets one, which is found again by what was said in the conversation so far. Many
conversations begin alike, and people who share a key may send any text. If a session belonged to the first words alone,
a stranger could get it blocked for all who begin with these words. So a session waits at the point that its
conversation has reached, and the next request that continues from there takes it, once. A request that starts anew, or
goes back to a point before a refusal, gets another session.
"""

import secrets
from collections.abc import Sequence
from hashlib import sha256

import msgspec

from actors.gateway.http.openai.messages import ReadMessage, digest_of

_ANSWERS = "assistant"
_MOST_ALIKE = 64
"""Most sessions that wait at one point: those of people to whom the same was said so far."""

MOST = 10_000
"""Most conversations that are kept; the one whose last exchange is oldest is dropped first."""


class ReadConversation(msgspec.Struct, frozen=True):
    """What was read of a conversation: the number of messages, and hashes of them and of the definitions."""

    count: int
    messages: bytes
    definitions: bytes


class Histories:
    """What was read, for each conversation."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[str, ReadConversation] = {}
        self._waiting: dict[bytes, tuple[str, ...]] = {}

    def read_of(self, conversation: str, messages: Sequence[ReadMessage]) -> int:
        """Return how many messages at the start of a conversation were read before."""
        known = self._known.get(conversation)
        if known is None or known.count > len(messages) or digest_of(messages[: known.count]) != known.messages:
            return 0
        return known.count

    def knows_definitions(self, conversation: str, definitions: Sequence[ReadMessage]) -> bool:
        """Whether the definitions of a conversation are the ones that were read before."""
        known = self._known.get(conversation)
        return known is not None and known.definitions == digest_of(definitions)

    def keep(self, conversation: str, messages: Sequence[ReadMessage], definitions: Sequence[ReadMessage]) -> None:
        """Note that a conversation was read up to the end of ``messages``."""
        self._known.pop(conversation, None)
        self._known[conversation] = ReadConversation(len(messages), digest_of(messages), digest_of(definitions))
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def session_of(self, caller: str, messages: Sequence[ReadMessage]) -> str:
        """Return the session of the conversation that these messages continue; a new one where none waits there.

        It no longer waits there: another request that continues from the same point is another conversation.
        ``wait_at`` makes it wait again.
        """
        place = _place(caller, messages[: _answered(messages)])
        *others, session = self._waiting.pop(place, ("",))
        if others:
            self._waiting[place] = tuple(others)
        return session or f"chat:{secrets.token_hex(16)}"

    def wait_at(self, session: str, caller: str, messages: Sequence[ReadMessage]) -> None:
        """Let a session wait for the request that continues after these messages."""
        place = _place(caller, messages)
        waiting = self._waiting.pop(place, ())
        self._waiting[place] = (*waiting[1 - _MOST_ALIKE :], session)
        if len(self._waiting) > self._most:
            del self._waiting[next(iter(self._waiting))]

    def wait_before(self, session: str, caller: str, messages: Sequence[ReadMessage]) -> None:
        """Let a session wait where it waited before: the request that took it was not carried out."""
        if before := messages[: _answered(messages)]:
            self.wait_at(session, caller, before)


def _answered(messages: Sequence[ReadMessage]) -> int:
    """Return the number of messages up to the last answer that is followed by another message."""
    said = [place for place, each in enumerate(messages) if each.role != _ANSWERS]
    return next((place for place in range(said[-1] if said else 0, 0, -1) if messages[place - 1].role == _ANSWERS), 0)


def _place(caller: str, messages: Sequence[ReadMessage]) -> bytes:
    """Return the key of a point in a conversation: what was said to the model. Clients may change its answers."""
    asked = sha256(caller.encode())
    for each in messages:
        if each.role != _ANSWERS:
            asked.update(each.digest)
    return asked.digest()
