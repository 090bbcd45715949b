"""What is asked of the store, what it answers, and the arithmetic of similarity that both engines share.

For sets A and B the similarity is o / sqrt(n m), with o = |A & B|, n = |A|, m = |B|, each with the situation's type as
one more element. For one query n is fixed, so that entries are ordered by their *score* o * o / m: a quotient of small
integers, equal in double precision exactly where the similarities are equal.
"""

from math import sqrt
from typing import NamedTuple

from actors.intuition.index.table import Hashes

SLACK = 1.0 - 1e-9
"""Factor on a bound that was computed from a similarity, so that rounding never excludes what meets it."""


class Query(NamedTuple):
    """A question to a store as of a version.

    Attributes:
        hashes: Ascending shingles of the text, without repetition.
        situation: Hash of the situation's type.
        entries: How many there were at the version; later ones are not seen.
        version: Version as of which entries count.
        most: How many similar entries to return at most; 0 when only the nearest motif is sought.
        floor: Least similarity of those.
        motif_floor: Least similarity of the nearest motif; 0 finds any that shares a shingle of the text.
    """

    hashes: Hashes
    situation: int
    entries: int
    version: int
    most: int
    floor: float
    motif_floor: float

    @property
    def size(self) -> int:
        """Elements of the query's set, its situation included."""
        return len(self.hashes) + 1

    @property
    def least(self) -> float:
        """The score of the floor for similar entries; beyond any score when none is sought."""
        return self.floor * self.floor * self.size * SLACK if self.most else float("inf")

    @property
    def motif_least(self) -> float:
        """The score of the floor for the nearest motif."""
        return self.motif_floor * self.motif_floor * self.size * SLACK


class Hit(NamedTuple):
    """An entry and how many elements, its situation included, it shares with the query."""

    place: int
    overlap: int


class Answer(NamedTuple):
    """The most similar entries, best first, and the nearest motif, None where there is none.

    Of equally similar ones the one added first is nearer.
    """

    similar: tuple[Hit, ...]
    motif: Hit | None


def reach_of(rest: int, smallest: int) -> float:
    """Return the highest score of an entry that shares at most ``rest`` shingles.

    Entries have at least ``smallest`` shingles; the situation's type is one more element, and may be shared too.
    """
    return (rest + 1) * (rest + 1) / (max(rest, smallest) + 1)


def similarity(overlap: int, size: int, other: int) -> float:
    """Return the cosine of two sets with ``size`` and ``other`` elements that share ``overlap``."""
    return overlap / sqrt(size * other)
