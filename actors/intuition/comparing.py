"""Compares an input's parts with the precedents, within one work budget for the whole input.

However many parts there are, and however many motifs share their words, an input causes no more work than
``IntuitionSettings.work``. A quarter of it is for the input's text as a whole. A quarter is for its other parts as
wholes, in equal shares. The rest, and what is left over of these quarters, is for passages, in the order of
``passages``. So a part can use up only its own share: the most promising passage of each part is compared before the
second of any. By default that allows about 400 passages in all; if there are more parts than that, the most promising
ones are compared. The work is counted in postings (the entries of inverted lists that are read), not timed: the same
input is cut at the same point everywhere. A *precedent* is an earlier situation with its outcome, a *motif* one that
did harm.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from actors.contract.text.joined_parts import shares
from actors.intuition.index import Hashes, Nearest, SimilarEntry
from actors.intuition.library import Library
from actors.intuition.passages import passages
from actors.intuition.settings import COMPARISON, IntuitionSettings
from actors.intuition.signature import signature_of
from actors.intuition.text_words import HashedText, read

MOST_READ = 128 * 1024
"""Most characters of an input that are read. Each part gets a share, half at its beginning and half at its end."""

_SHARES = 64
"""A passage gets one of this many shares of the remaining work, or a larger one if fewer passages are left."""


class NearMotif(NamedTuple):
    """A motif near a part of the input; ``number`` is its index in the order of recording."""

    motif: str
    similarity: float
    number: int
    part: int


class Comparison(NamedTuple):
    """The result of comparing an input.

    Attributes:
        nearest: The motif nearest to any part, or to a passage of it that reaches the threshold.
        similar: The precedents similar to the input's text, best first.
        cut: Comparisons that were not made, or not completed, because the work budget was used up.
        unread: Characters that were not read.
    """

    nearest: NearMotif | None
    similar: tuple[SimilarEntry, ...]
    cut: int
    unread: int


class _WorkBudget:
    """The work budget of an input: how many postings are ``left``, and how many comparisons were ``cut`` short."""

    def __init__(self, library: Library, situation: str, left: int) -> None:
        self._library, self._situation = library, situation
        self.left, self.cut = left, 0

    def nearest(self, words: Hashes, work: int, *, most: int = 0, floor: float = 1.0, motif_floor: float) -> Nearest:
        """Compare words with the precedents, for at most ``work`` postings.

        Returns up to ``most`` precedents with a similarity of ``floor`` or more, and the nearest motif with
        ``motif_floor`` or more.
        """
        found = self._library.nearest(
            signature_of(words),
            self._situation,
            most=most,
            floor=floor,
            motif_floor=motif_floor,
            budget=max(0, work - COMPARISON),
        )
        self.left -= COMPARISON + found.work
        self.cut += found.cut
        return found


def compare(library: Library, settings: IntuitionSettings, texts: Sequence[str], situation: str) -> Comparison:
    """Compare an input's parts with the precedents; the parts are distinct, and the first is the input's text.

    ``situation`` is the input's kind, a name that its caller chooses.
    """
    if not library.precedents:
        return Comparison(None, (), 0, 0)
    lengths = [len(text) for text in texts]
    lengths_read = shares(lengths, MOST_READ)
    readings = [read(text, most) for text, most in zip(texts, lengths_read, strict=True)]
    budget = _WorkBudget(library, situation, settings.work)
    quarter = settings.work // 4
    near_text = budget.nearest(
        readings[0].words, quarter, most=settings.similar_most, floor=settings.similar_floor, motif_floor=0.0
    )
    nearest = _nearer(library, None, near_text.motif, 0)
    others = range(1, len(texts))
    wholes_affordable = 2 * COMPARISON * len(others) <= quarter
    if wholes_affordable:
        until = budget.left - quarter
        for part in others:
            share = (budget.left - until) // (len(texts) - part)
            motif = budget.nearest(readings[part].words, share, motif_floor=0.0).motif
            nearest = _nearer(library, nearest, motif, part)
    nearest = _in_passages(library, settings, readings, () if wholes_affordable else others, budget, nearest)
    return Comparison(nearest, near_text.similar, budget.cut, sum(lengths) - sum(lengths_read))


def _in_passages(
    library: Library,
    settings: IntuitionSettings,
    readings: Sequence[HashedText],
    wholes: Sequence[int],
    budget: _WorkBudget,
    nearest: NearMotif | None,
) -> NearMotif | None:
    """Return the nearer of ``nearest`` and the motif most similar to a passage, if that reaches the threshold.

    Args:
        library: The precedents.
        settings: The settings of intuition.
        readings: The parts.
        wholes: Parts to be compared as wholes, among the passages.
        budget: The input's work budget.
        nearest: The motif nearest to a part as a whole.
    """
    runs = passages(library, readings, settings.passage_phrases, settings.passage_words, settings.threshold, wholes)
    rows = zip(runs.starts.tolist(), runs.ends.tolist(), runs.parts.tolist(), runs.bounds.tolist(), strict=True)
    least = max(settings.threshold, nearest.similarity if nearest is not None else 0.0)
    for index, (start, end, part, bound) in enumerate(rows):
        if bound < least:
            continue
        if budget.left < COMPARISON:
            budget.cut += int(np.count_nonzero(runs.bounds[index:] >= least))
            break
        share = max(budget.left // min(len(runs.starts) - index, _SHARES), 2 * COMPARISON)
        motif = budget.nearest(runs.words[start:end], share, motif_floor=least).motif
        nearest = _nearer(library, nearest, motif, part)
        least = max(least, motif.similarity if motif is not None else 0.0)
    return nearest


def _nearer(library: Library, nearest: NearMotif | None, found: SimilarEntry | None, part: int) -> NearMotif | None:
    """Return the nearer of two motifs; between equals the one recorded first, then the one in the first part."""
    if found is None:
        return nearest
    near = NearMotif(found.name, found.similarity, library.precedents[found.name].number, part)
    if nearest is None or (-near.similarity, near.number, part) < (-nearest.similarity, nearest.number, nearest.part):
        return near
    return nearest
