"""What of each conversation was read before: a client sends the whole of it each time, and only what is new is read.

It is kept by this process alone, and bounded: after a restart, or in another gateway, all is read anew. Nothing is
passed over on a client's word: where one word of what was read has changed, all is read again.

A conversation whose session nobody names has one of its own, which is found again by what was said in it so far. Many
begin alike, and people who share a key may send any words: a session of the first words alone would be one that a
stranger can have withheld for all who begin so. So a session waits where its conversation stands, for whoever goes on
there, once: who begins anew, or goes back to before what was refused, begins another.
"""

import secrets
from collections.abc import Sequence
from hashlib import sha256

import msgspec

from actors.gateway.http.openai.messages import ReadMessage, digest_of

_ANSWERS = "assistant"
_MOST_ALIKE = 64
"""Sessions that wait at one place: of people to whom the same was said so far."""

MOST = 10_000
"""Conversations that are kept; the one that was longest without an exchange goes first."""


class ReadConversation(msgspec.Struct, frozen=True):
    """What was read of a conversation: so many messages, what they and the definitions beside them were."""

    count: int
    messages: bytes
    definitions: bytes


class Histories:
    """What was read, by conversation."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[str, ReadConversation] = {}
        self._waiting: dict[bytes, tuple[str, ...]] = {}

    def read_of(self, conversation: str, messages: Sequence[ReadMessage]) -> int:
        """Return how many messages at the beginning of a conversation were read before."""
        known = self._known.get(conversation)
        if known is None or known.count > len(messages) or digest_of(messages[: known.count]) != known.messages:
            return 0
        return known.count

    def knows_definitions(self, conversation: str, definitions: Sequence[ReadMessage]) -> bool:
        """Whether the definitions of a conversation are those that were read before."""
        known = self._known.get(conversation)
        return known is not None and known.definitions == digest_of(definitions)

    def keep(self, conversation: str, messages: Sequence[ReadMessage], definitions: Sequence[ReadMessage]) -> None:
        """Take it that a conversation was read up to and with ``messages``."""
        self._known.pop(conversation, None)
        self._known[conversation] = ReadConversation(len(messages), digest_of(messages), digest_of(definitions))
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def session_of(self, caller: str, messages: Sequence[ReadMessage]) -> str:
        """Return the session of the conversation that the last messages go on with, a new one where none waits there.

        Another who goes on from the same place has to be another conversation: ``wait_at`` has it wait again.
        """
        place = _place(caller, messages[: _answered(messages)])
        *others, session = self._waiting.pop(place, ("",))
        if others:
            self._waiting[place] = tuple(others)
        return session or f"chat:{secrets.token_hex(16)}"

    def wait_at(self, session: str, caller: str, messages: Sequence[ReadMessage]) -> None:
        """Have a session wait for whoever goes on behind these messages."""
        place = _place(caller, messages)
        waiting = self._waiting.pop(place, ())
        self._waiting[place] = (*waiting[1 - _MOST_ALIKE :], session)
        if len(self._waiting) > self._most:
            del self._waiting[next(iter(self._waiting))]

    def wait_before(self, session: str, caller: str, messages: Sequence[ReadMessage]) -> None:
        """Have a session wait where it did: what was to go on has come to nothing."""
        if before := messages[: _answered(messages)]:
            self.wait_at(session, caller, before)


def _answered(messages: Sequence[ReadMessage]) -> int:
    """Return how many messages there are up to the last answer that something follows."""
    said = [place for place, each in enumerate(messages) if each.role != _ANSWERS]
    return next((place for place in range(said[-1] if said else 0, 0, -1) if messages[place - 1].role == _ANSWERS), 0)


def _place(caller: str, messages: Sequence[ReadMessage]) -> bytes:
    """Return what a conversation is found by: what was said to the model. Clients may change or drop its answers."""
    asked = sha256(caller.encode())
    for each in messages:
        if each.role != _ANSWERS:
            asked.update(each.digest)
    return asked.digest()
