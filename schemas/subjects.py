"""Subjects: the literal public ones, and the stored ones that carry two partition tokens.

A stored subject is ``log.<a>.<s>.<rest>``: ``<a>`` is the partition of the agent, ``<s>`` that of
the session, ``<rest>`` the public subject without its root. The stream republishes
``log.*.*.>`` to ``forged_id.>``. Events of no session use ``_`` as their session token.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise

import msgspec

from schemas.event import ROOT

STORED_ROOT = "log"
"""First token of every stored subject."""

EVERYTHING = f"{STORED_ROOT}.>"
"""The filter of all stored subjects."""

NO_PARTITION = "_"
"""The partition token of an event that is about no agent, or no session."""

MOST_PARTITIONS = 99
"""Partitions there can be of each kind: their names have two digits."""


def fnv1a_32(key: str) -> int:
    """Hash the UTF-8 of ``key`` with 32-bit FNV-1a, as nats-server's ``partition`` subject mapping does."""
    value = 0x811C9DC5
    for byte in key.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


class FormerCounts(msgspec.Struct, frozen=True):
    """The partition counts that a log had up to and with the sequence ``through``; it was then repartitioned."""

    through: int
    agents: int
    sessions: int


class Partitions(msgspec.Struct, frozen=True):
    """How many partitions agents and sessions are spread over.

    They are fixed when a stream is made. ``neuraxis log repartition`` can raise them, each to a multiple: every
    partition is then divided into several, and none is joined with another. ``former`` are the counts before, oldest
    first. A token names the generation of its counts, so that a subject alone shows which partition it means:
    ``04`` is a partition of the first counts, ``1-20`` one of the second.
    """

    agents: int = 4
    sessions: int = 16
    former: tuple[FormerCounts, ...] = ()

    def agent_token(self, agent: str) -> str:
        """Return the partition token of an agent, or ``_`` for none."""
        return _token(agent, self.agents, len(self.former))

    def session_token(self, session: str) -> str:
        """Return the partition token of a session, or ``_`` for none."""
        return _token(session, self.sessions, len(self.former))

    def agent_tokens(self, agent: str) -> tuple[str, ...]:
        """Return all tokens that events of an agent may have in this log: of former counts, too, the oldest first."""
        return tuple(counts.agent_token(agent) for _, counts in self.generations)

    def session_tokens(self, session: str) -> tuple[str, ...]:
        """Return all tokens that events of a session may have in this log, the oldest first."""
        return tuple(counts.session_token(session) for _, counts in self.generations)

    def token_pairs(self, agent: str, session: str) -> tuple[tuple[str, str], ...]:
        """Return the pairs of tokens (agent's, session's) that events of both may have in this log."""
        return tuple((first, second) for first in self.agent_tokens(agent) for second in self.session_tokens(session))

    @property
    def generations(self) -> "tuple[tuple[int, Partitions], ...]":
        """The former counts and the present ones, oldest first: (last sequence at which they were in force, counts)."""
        return _generations(self)

    def generation_of(self, subject: str) -> "Partitions":
        """Return the counts that a stored subject's partition tokens belong to; the present ones if it has none."""
        token_generations = []
        for token in subject.split(".", 3)[1:3]:
            with suppress(ValueError):
                token_generations.append(split_token(token)[0])
        generations = self.generations
        return generations[min(max(token_generations, default=len(generations)), len(generations) - 1)][1]

    def counts(self, of_sessions: bool) -> tuple[int, ...]:
        """Return the numbers of partitions of sessions, or of agents, the oldest first."""
        former = tuple(each.sessions if of_sessions else each.agents for each in self.former)
        return (*former, self.sessions if of_sessions else self.agents)

    def tokens(self, of_sessions: bool) -> tuple[str, ...]:
        """Return the tokens in force, of sessions or of agents."""
        return partition_tokens(self.sessions if of_sessions else self.agents, len(self.former))

    def lineage(self, token: str, of_sessions: bool) -> tuple[str, ...]:
        """Return the tokens of the partitions that a partition was divided from, the oldest first, and its own."""
        try:
            generation, number = split_token(token)
        except ValueError:  # a stranger may publish under any token
            return (token,)
        counts = self.counts(of_sessions)[:generation]
        return (*(token_name(earlier, number % count) for earlier, count in enumerate(counts)), token)

    def in_force(self, token: str, of_sessions: bool) -> tuple[str, ...]:
        """Return the partitions in force to which the messages of a partition, of whatever counts, belong.

        For one of former counts these are the partitions that it was divided into, in order; for one of later counts,
        the partition that it was divided from.
        """
        now, counts = len(self.former), self.counts(of_sessions)
        try:
            generation, number = split_token(token)
        except ValueError:  # a stranger may publish under any token
            return (token,)
        if generation == now:
            return (token,)
        if generation > now:
            return (token_name(now, number % counts[now]),)
        return tuple(token_name(now, each) for each in range(number, counts[now], counts[generation]))

    def onward(self, token: str, key: str, of_sessions: bool) -> tuple[str, ...]:
        """Return a token, and those of the later partitions to which its messages with a key belong, oldest first."""
        later = (counts.resolve(token, key, of_sessions) for _, counts in self.generations[1:])
        return tuple(dict.fromkeys((token, *later)))

    @property
    def fault(self) -> str:
        """What is wrong with these counts, which may come from a file; empty if nothing is."""
        generations = [(counts.agents, counts.sessions) for _, counts in self.generations]
        ends = [each.through for each in self.former]
        if any(not 1 <= count <= MOST_PARTITIONS for counts in generations for count in counts):
            return f"a count of partitions is not from 1 to {MOST_PARTITIONS}"
        if ends != sorted(set(ends)) or any(seq < 0 for seq in ends):
            return "its former partition counts are not in order"
        if any(after[side] % before[side] for before, after in pairwise(generations) for side in (0, 1)):
            return "its partition counts are no multiples of the former ones"
        return ""

    def resolve(self, token: str, key: str, of_sessions: bool) -> str:
        """Return the partition in force to which a message belongs, by its token and its key.

        A message without a key, or stored in another partition than its key's, belongs to the first of the partitions
        that its own was divided into.
        """
        if not self.former or token == NO_PARTITION:
            return token
        among = self.in_force(token, of_sessions) or (token,)
        own = self.session_token(key) if of_sessions else self.agent_token(key)
        return own if own in among else among[0]


@lru_cache(maxsize=256)
def _generations(partitions: Partitions) -> tuple[tuple[int, Partitions], ...]:
    former = partitions.former
    before = [
        (each.through, Partitions(each.agents, each.sessions, former[:index])) for index, each in enumerate(former)
    ]
    return (*before, (2**63 - 1, partitions))


def partition_tokens(count: int, generation: int = 0) -> tuple[str, ...]:
    """Return the tokens of ``count`` partitions, in order."""
    return tuple(token_name(generation, number) for number in range(count))


def token_name(generation: int, number: int) -> str:
    """Return the token of a partition: two digits, after the generation of its counts unless that is the first."""
    return f"{generation}-{number:02d}" if generation else f"{number:02d}"


@lru_cache(maxsize=4096)
def split_token(token: str) -> tuple[int, int]:
    """Return a token's generation and number; raises ValueError for what is no partition's token."""
    generation, dash, number = token.rpartition("-")
    return (int(generation) if dash else 0), int(number)


@lru_cache(maxsize=65536)
def _token(key: str, count: int, generation: int) -> str:
    return token_name(generation, fnv1a_32(key) % count) if key else NO_PARTITION


def former_text(former: Sequence[FormerCounts]) -> str:
    """Return former counts as text for a stream's or a ledger's metadata, such as ``1234:4:16``."""
    return ",".join(f"{each.through}:{each.agents}:{each.sessions}" for each in former)


def read_former(text: str) -> tuple[FormerCounts, ...]:
    """Read what :func:`former_text` wrote; raises ValueError for anything else."""
    return tuple(FormerCounts(*map(int, each.split(":", 2))) for each in text.split(",")) if text else ()


def is_repartitioned(before: Partitions, after: Partitions) -> bool:
    """Whether ``after`` are the counts of a log that had those of ``before``, and was repartitioned since."""
    generations = tuple((counts.agents, counts.sessions, counts.former) for _, counts in after.generations[:-1])
    return (before.agents, before.sessions, before.former) in generations


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
