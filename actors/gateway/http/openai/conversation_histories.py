"""Remembers which part of each conversation the guards have read: a client sends all of it each time.

Only new parts are read again. The histories are kept in this process only, and bounded. After a restart, or in another
gateway, everything is read again. A part is skipped only if it is exactly what was read: if one word has changed, all
is read again.

A conversation without a named session gets one, which is found again by the messages of the conversation so far. Many
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

_ASSISTANT = "assistant"
_MOST_AT_POINT = 64
"""Most sessions that wait at one point: those of conversations that are equal so far."""

MOST_CONVERSATIONS = 10_000
"""Most conversations that are kept; the one whose last exchange is oldest is dropped first."""


class ReadConversation(msgspec.Struct, frozen=True):
    """What was read of a conversation: the number of messages, and hashes of the messages and definitions.

    Definitions are what a request shows to the model besides its messages: the tools that it may call, and other
    parameters with text.
    """

    count: int
    messages: bytes
    definitions: bytes


class Histories:
    """What was read, for each conversation."""

    def __init__(self, most: int = MOST_CONVERSATIONS) -> None:
        self._most = most
        self._known: dict[str, ReadConversation] = {}
        self._waiting: dict[bytes, tuple[str, ...]] = {}  # key of a point -> the sessions that wait there

    def read_of(self, conversation: str, messages: Sequence[ReadMessage]) -> int:
        """Return how many messages at the start of a conversation were read before."""
        known = self._known.get(conversation)
        if known is None or known.count > len(messages) or digest_of(messages[: known.count]) != known.messages:
            return 0
        return known.count

    def knows_definitions(self, conversation: str, definitions: Sequence[ReadMessage]) -> bool:
        """Return whether the definitions of a conversation are those read before; see ``ReadConversation``."""
        known = self._known.get(conversation)
        return known is not None and known.definitions == digest_of(definitions)

    def keep(self, conversation: str, messages: Sequence[ReadMessage], definitions: Sequence[ReadMessage]) -> None:
        """Note that a conversation was read up to the end of ``messages``."""
        self._known.pop(conversation, None)
        self._known[conversation] = ReadConversation(len(messages), digest_of(messages), digest_of(definitions))
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def session_of(self, caller: str, messages: Sequence[ReadMessage]) -> str:
        """Return the session of the conversation that these messages continue; a new one if none waits there.

        ``caller`` is who asks (the key), and for which model; others never get the session. A session that was returned
        waits no more, until ``wait_at``: another request that continues from the same point is another conversation.
        """
        point = _point_key(caller, messages[: _answered(messages)])
        *others, session = self._waiting.pop(point, ("",))
        if others:
            self._waiting[point] = tuple(others)
        return session or f"chat:{secrets.token_hex(16)}"

    def wait_at(self, session: str, caller: str, messages: Sequence[ReadMessage]) -> None:
        """Let a session wait for the request that continues after these messages."""
        point = _point_key(caller, messages)
        waiting = self._waiting.pop(point, ())
        self._waiting[point] = (*waiting[1 - _MOST_AT_POINT :], session)
        if len(self._waiting) > self._most:
            del self._waiting[next(iter(self._waiting))]

    def wait_before(self, session: str, caller: str, messages: Sequence[ReadMessage]) -> None:
        """Let a session wait where it waited before: the request that took it was not carried out."""
        if before := messages[: _answered(messages)]:
            self.wait_at(session, caller, before)


def _answered(messages: Sequence[ReadMessage]) -> int:
    """Return the number of messages up to the last answer that is followed by another message."""
    others = [index for index, each in enumerate(messages) if each.role != _ASSISTANT]
    last = others[-1] if others else 0
    return next((index for index in range(last, 0, -1) if messages[index - 1].role == _ASSISTANT), 0)


def _point_key(caller: str, messages: Sequence[ReadMessage]) -> bytes:
    """Return the key of a point in a conversation, without the model's answers: clients may change those."""
    key = sha256(caller.encode())
    for each in messages:
        if each.role != _ASSISTANT:
            key.update(each.digest)
    return key.digest()
