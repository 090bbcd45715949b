"""Episodes: what an agent remembers of single exchanges. Their number is limited; the oldest are dropped."""

from collections.abc import Iterable, Iterator

import msgspec

from actors.memory.layers.index import NOTHING, Index, Ranking, Row
from schemas.persistent import Map

_LEAST_WEIGHT = 0.85
"""The factor for the similarity of an episode without salience; salience raises it up to 1."""


class Episode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An exchange as it is remembered: ``text`` is its gist, a summary in one line.

    ``embedding`` is that of its question, empty for none; ``model`` is the model that made it. ``concepts`` are the
    terms that it was about. ``salience`` is how exciting and new it was, in [0, 1].
    """

    session: str
    topic: str
    text: str
    salience: float
    at_ns: int
    model: str
    embedding: bytes
    concepts: tuple[str, ...]


class Episodes(msgspec.Struct, frozen=True):
    """Episodes by their exchange's number; no number is lower than ``first``."""

    kept: Map[int, Episode] = Map()
    first: int = 1
    index: Index = msgspec.field(default_factory=Index)

    def adding(self, number: int, episode: Episode) -> "Episodes":
        """Return the episodes with one more, whose number is higher than all before."""
        row = row_of(number, episode)
        index = self.index if row is None else self.index.adding(row)
        return Episodes(self.kept.set(number, episode), self.first, index)

    def without(self, numbers: Iterable[int]) -> "Episodes":
        """Return the episodes without those with these numbers."""
        kept, index = self.kept, self.index
        for number in numbers:
            episode = kept.get(number)
            if episode is not None:
                row = row_of(number, episode)
                kept, index = kept.delete(number), index if row is None else index.without(row)
        return Episodes(kept, self.first, index)

    def oldest(self) -> int:
        """Return the lowest number; there must be one."""
        number = self.first
        while number not in self.kept:
            number += 1
        return number

    def beginning_at(self, first: int) -> "Episodes":
        """Return the same episodes with the knowledge that no number is lower than ``first``."""
        return Episodes(self.kept, first, self.index)

    def ranking(self, model: str, embedding: bytes, without: frozenset[int] = frozenset()) -> Ranking:
        """Return the energies of all episodes but some for an embedding; none if it is empty. See ``Index.ranking``."""
        return self.index.ranking(self._rows, model, embedding, without) if embedding else NOTHING

    def _rows(self) -> Iterator[Row]:
        for number in sorted(self.kept):
            row = row_of(number, self.kept[number])
            if row is not None:
                yield row


def weight_of(episode: Episode) -> float:
    """Return the factor for an episode's similarity: the more salient, the higher."""
    return round(_LEAST_WEIGHT + (1.0 - _LEAST_WEIGHT) * episode.salience, 6)


def row_of(number: int, episode: Episode) -> Row | None:
    """Return the index row of an episode; None for one without an embedding."""
    if not episode.embedding:
        return None
    return Row(number, episode.model, episode.embedding, weight_of(episode))
