"""Subjects: the literal public ones, and the stored ones that carry two partition tokens.

A stored subject is ``log.<a>.<s>.<rest>``: ``<a>`` is the partition of the agent, ``<s>`` that of
the session, ``<rest>`` the public subject without its root. The stream republishes
``log.*.*.>`` to ``forged_id.>``. Events of no session use ``_`` as their session token.
"""

from functools import lru_cache

import msgspec

from schemas.event import ROOT

STORED_ROOT = "log"
EVERYTHING = f"{STORED_ROOT}.>"
"""The filter of all stored subjects."""

NO_PARTITION = "_"
"""The partition token of an event that is about no agent, or no session."""


def fnv1a_32(key: str) -> int:
    """Hash the UTF-8 of ``key`` with 32-bit FNV-1a, as nats-server's ``partition`` subject mapping does."""
    value = 0x811C9DC5
    for byte in key.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


class Partitions(msgspec.Struct, frozen=True):
    """How many partitions agents and sessions are spread over; fixed when a stream is made."""

    agents: int = 4
    sessions: int = 16

    def agent_token(self, agent: str) -> str:
        """Return the partition token of an agent, two digits, or ``_`` for none."""
        return _token(agent, self.agents)

    def session_token(self, session: str) -> str:
        """Return the partition token of a session, two digits, or ``_`` for none."""
        return _token(session, self.sessions)


def partition_tokens(count: int) -> tuple[str, ...]:
    """Return the tokens of ``count`` partitions, in order."""
    return tuple(f"{number:02d}" for number in range(count))


@lru_cache(maxsize=65536)
def _token(key: str, count: int) -> str:
    return f"{fnv1a_32(key) % count:02d}" if key else NO_PARTITION


def stored_subject(topic: str, agent_token: str, session_token: str) -> str:
    """Return the stored subject of a public topic under the two partition tokens."""
    return f"{STORED_ROOT}.{agent_token}.{session_token}.{topic[len(ROOT) + 1 :]}"


@lru_cache(maxsize=65536)
def split_stored(subject: str) -> tuple[str, str, str]:
    """Split a stored subject into (public topic, agent token, session token); raises ValueError on any other."""
    root, agent_token, session_token, rest = subject.split(".", 3)
    if root != STORED_ROOT:
        raise ValueError(f"{subject!r} is not a stored subject: it does not start with {STORED_ROOT!r}")
    return f"{ROOT}.{rest}", agent_token, session_token


def topic_filter(topic: str) -> str:
    """Return the filter that matches a public topic's stored subjects in every partition."""
    return stored_subject(topic, "*", "*")
