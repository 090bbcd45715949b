"""The query to a store, its answer, and the arithmetic of similarity that both engines share.

A store holds entries, which are sets of shingles, and for each shingle the list of the entries that hold it. A *motif*
is the entry of a precedent that did harm.

For sets A and B the similarity is o / sqrt(n m), with o = |A & B|, n = |A|, m = |B|, each with the kind of situation as
one more element. For one query n is fixed, so entries are ordered by their *score* o * o / m: a quotient of small
integers, which is equal in double precision exactly where the similarities are equal.
"""

from math import sqrt
from typing import Any, NamedTuple

from actors.intuition.index.hash_table import Hashes

SLACK = 1.0 - 1e-9
"""Factor on a bound computed from a similarity, so that rounding never excludes an entry that meets the bound."""

UNLIMITED = 2**62
"""A budget that no search uses up."""

COMPARED = 32
"""The cost of comparing an entry with the query shingle by shingle, in postings; most of it is waiting for memory."""


class Query(NamedTuple):
    """A query to a store.

    Attributes:
        hashes: Ascending shingles of the text, without repetition.
        situation: Hash of the kind of situation (a name that the caller of an input chooses).
        most: How many similar entries are returned, at most; 0 if only the nearest motif is wanted.
        floor: Least similarity of these.
        motif_floor: Least similarity of the nearest motif; 0 finds any that shares a shingle of the text.
        budget: Most postings that the search may read; see ``plan_reading``.
    """

    hashes: Hashes
    situation: int
    most: int
    floor: float
    motif_floor: float
    budget: int = UNLIMITED

    @property
    def size(self) -> int:
        """Number of elements of the query's set, including its situation."""
        return len(self.hashes) + 1

    @property
    def least(self) -> float:
        """The score that corresponds to the floor for similar entries; higher than any score when none are wanted."""
        return self.floor * self.floor * self.size * SLACK if self.most else float("inf")

    @property
    def motif_least(self) -> float:
        """The score that corresponds to the floor for the nearest motif."""
        return self.motif_floor * self.motif_floor * self.size * SLACK


class Hit(NamedTuple):
    """An entry, and how many elements, including its situation, it shares with the query."""

    position: int
    overlap: int


class Answer(NamedTuple):
    """The most similar entries, best first, and the nearest motif, None where there is none.

    Among equally similar ones the one added first is nearer. ``work`` and ``cut`` come from ``plan_reading``.
    """

    similar: tuple[Hit, ...]
    motif: Hit | None
    work: int = 0
    cut: bool = False


def plan_reading(lengths: Any, needed: float, budget: int) -> Any:
    """Return how much of a query's lists may be read, the cost of that in postings, and whether the rest is cut off.

    How much is given as a number of lists, and a number of the latest entries of the list after those.

    A search never costs more than reading all its lists. It also never costs more than reading the lists that contain
    every entry with a score of ``needed`` (the prefix), and comparing each entry found. If either is within the
    budget, nothing is cut. Otherwise only the shortest lists, and the latest entries of the next one, are read: as
    many entries as the budget allows to compare.

    The result depends on the lengths alone: the cost of a search must not depend on the engine, or on how early it
    could stop.

    Args:
        lengths: The lengths of the lists, ascending.
        needed: Least score that is wanted.
        budget: Most postings to read.
    """
    prefix = len(lengths)
    # An entry in none of the first ``prefix - 1`` lists shares at most the rest, and its score is at most this number
    # (``reach_of``). While that is too low, every wanted entry is in one of those lists.
    while prefix > 0 and len(lengths) - prefix + 2 < needed:
        prefix -= 1
    total = 0
    before = 0
    for at in range(len(lengths)):
        total += lengths[at]
        if at < prefix:
            before += lengths[at]
    work = min(total, COMPARED * before)
    if work <= budget:
        return len(lengths), 0, work, False
    lists = 0
    left = max(budget, 0) // COMPARED
    work = COMPARED * left
    while lengths[lists] <= left:
        left -= lengths[lists]
        lists += 1
    return lists, left, work, True


def reach_of(rest: int, smallest: int) -> float:
    """Return the highest score of an entry that shares at most ``rest`` shingles.

    Entries have at least ``smallest`` shingles; the kind of situation is one more element, and may be shared too.
    """
    return (rest + 1) * (rest + 1) / (max(rest, smallest) + 1)


def similarity(overlap: int, size: int, other: int) -> float:
    """Return the cosine of two sets with ``size`` and ``other`` elements that share ``overlap``."""
    return overlap / sqrt(size * other)
