"""The precedents of one agent (earlier situations with their outcome): a persistent map, and the index derived from it.

The map is the state: snapshots hold it and hashes cover it. A precedent is kept as its signature, not as its
description: hashes suffice for comparing, take less memory than an index entry, and contain no text of people.
"""

from typing import Literal

import msgspec

from actors.intuition.index import UNLIMITED, Entry, Hashes, Index, Nearest, Query, Sizes
from actors.intuition.signature import situation_hash
from schemas.event import Unit
from schemas.persistent import Map
from schemas.vocabulary.precedents import ProposedAction


class Precedent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is kept of a precedent.

    ``signature`` holds the shingles of its description, 8 bytes each. ``situation`` is its kind, a name that its author
    chose; ``outcome`` is what came of the ``action``, ``harm_level`` how much harm, from 0 to 1; ``answer`` is what was
    answered then. ``number`` is its position in the order of recording; a precedent that is recorded again gets a new
    one.
    """

    signature: bytes
    situation: str
    action: ProposedAction
    outcome: Literal["benign", "harmful"]
    harm_level: Unit
    answer: str = ""
    number: int = 0

    @property
    def is_motif(self) -> bool:
        """Whether it is a motif: the precedent of a harmful outcome."""
        return self.outcome == "harmful"

    @property
    def size(self) -> int:
        """Number of elements of its set: its shingles, and its kind of situation."""
        return len(self.signature) // 8 + 1

    def has_same_content(self, other: "Precedent") -> bool:
        """Whether the two differ at most in their numbers."""
        return msgspec.structs.replace(self, number=other.number) == other


class Library(msgspec.Struct, frozen=True):
    """The precedents by name, how many were ever recorded, and their index."""

    precedents: Map[str, Precedent] = Map()
    recorded: int = 0
    index: Index = msgspec.field(default_factory=Index)

    def with_precedent(self, name: str, precedent: Precedent) -> "Library":
        """Return the library with a precedent recorded; it replaces one of the same name."""
        found = self.precedents.get(name)
        if found is not None and found.has_same_content(precedent):
            return self
        library = self.without_precedent(name)
        numbered = msgspec.structs.replace(precedent, number=self.recorded + 1)
        return Library(
            library.precedents.set(name, numbered), numbered.number, library.index.with_entry(_entry(name, numbered))
        )

    def without_precedent(self, name: str) -> "Library":
        """Return the library without the precedent of that name."""
        found = self.precedents.get(name)
        if found is None:
            return self
        return Library(self.precedents.delete(name), self.recorded, self.index.without_entry(found.number))

    def nearest(
        self, hashes: Hashes, situation: str, *, most: int, floor: float, motif_floor: float, budget: int = UNLIMITED
    ) -> Nearest:
        """Return the precedents near a text given by its signature; see ``Query``."""
        query = Query(hashes, situation_hash(situation), most, floor, motif_floor, budget)
        return self.index.nearest(self._entries, query)

    def smallest_holders(self, shingles: Hashes) -> Sizes:
        """Return the size of the smallest precedent that holds each shingle; see ``Index.smallest``."""
        return self.index.smallest(self._entries, shingles)

    def build_index(self) -> None:
        """Build the index, if it is not built, so that the first query need not."""
        self.index.build(self._entries)

    def _entries(self) -> list[Entry]:
        # The order of a map differs between processes.
        ordered = sorted(self.precedents.items(), key=lambda item: item[1].number)
        return [_entry(name, precedent) for name, precedent in ordered]


def _entry(name: str, precedent: Precedent) -> Entry:
    return Entry(precedent.number, name, precedent.signature, situation_hash(precedent.situation), precedent.is_motif)
