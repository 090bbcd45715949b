"""What of each conversation was read before: a client sends the whole of it each time, and only what is new is read.

It is kept by this process alone, and bounded: after a restart, or in another gateway, all is read anew. Nothing is
passed over on a client's word: where one word of what was read has changed, all is read again.
"""

from collections.abc import Sequence

import msgspec

from actors.gateway.http.openai.messages import Read, digest_of

MOST = 10_000
"""Conversations that are kept; the one that was longest without an exchange goes first."""


class Known(msgspec.Struct, frozen=True):
    """What was read of a conversation: so many messages, what they and the definitions beside them were."""

    count: int
    messages: bytes
    definitions: bytes


class Histories:
    """What was read, by conversation."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[str, Known] = {}

    def read_of(self, conversation: str, messages: Sequence[Read]) -> int:
        """Return how many messages at the beginning of a conversation were read before."""
        known = self._known.get(conversation)
        if known is None or known.count > len(messages) or digest_of(messages[: known.count]) != known.messages:
            return 0
        return known.count

    def knows_definitions(self, conversation: str, definitions: Sequence[Read]) -> bool:
        """Whether the definitions of a conversation are those that were read before."""
        known = self._known.get(conversation)
        return known is not None and known.definitions == digest_of(definitions)

    def keep(self, conversation: str, messages: Sequence[Read], definitions: Sequence[Read]) -> None:
        """Take it that a conversation was read up to and with ``messages``."""
        self._known.pop(conversation, None)
        self._known[conversation] = Known(len(messages), digest_of(messages), digest_of(definitions))
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
