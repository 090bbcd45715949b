"""Comparing an input's parts with the precedents, within one allowance for the whole input.

However many parts there are and however many motifs share their words, an input makes no more work than
``IntuitionSettings.work`` says. A quarter of it is for the input's text as a whole; a quarter for its other parts as
wholes, in equal shares; the rest, and what those left, for passages, in the order that ``passages`` puts them in. So a
part can use up its own share and no other's: the most promising passage of each part is compared before the second of
any. By default that is some 400 passages in all; of more parts than that, the most promising are heard. The work is
counted, in postings, and not timed: the same input is cut at the same place everywhere.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from actors.contract.text.joined_parts import shares
from actors.intuition.index import Found, Hashes, Nearest
from actors.intuition.library import Library
from actors.intuition.passages import passages
from actors.intuition.settings import COMPARISON, IntuitionSettings
from actors.intuition.signature import signature_of
from actors.intuition.text_words import Reading, read

MOST_READ = 128 * 1024
"""Characters that are read of an input: of each part its share, one half from its beginning and one from its end."""

_SHARES = 64
"""Shares of what is left that a passage gets one of, as long as so many or more are to come."""


class NearMotif(NamedTuple):
    """A motif near a part of the input; ``number`` is its place in the order of recording."""

    motif: str
    similarity: float
    number: int
    part: int


class Comparison(NamedTuple):
    """What an input is like.

    Attributes:
        nearest: The motif nearest to any part, or to a passage of it that reaches the threshold.
        similar: The precedents similar to the input's text, best first.
        cut: Comparisons that were not made, or not to their end, for want of allowance.
        unread: Characters that were not read.
    """

    nearest: NearMotif | None
    similar: tuple[Found, ...]
    cut: int
    unread: int


class _WorkBudget:
    """An input's allowance: what is left of it, and how often it did not suffice."""

    def __init__(self, library: Library, situation: str, left: int) -> None:
        self._library, self._situation = library, situation
        self.left, self.cut = left, 0

    def nearest(
        self, words: Hashes, allowance: int, *, most: int = 0, floor: float = 1.0, motif_floor: float
    ) -> Nearest:
        """Compare words with the precedents, for ``allowance`` postings in all."""
        found = self._library.nearest(
            signature_of(words),
            self._situation,
            most=most,
            floor=floor,
            motif_floor=motif_floor,
            allowance=max(0, allowance - COMPARISON),
        )
        self.left -= COMPARISON + found.work
        self.cut += found.cut
        return found


def compare(library: Library, settings: IntuitionSettings, texts: Sequence[str], situation: str) -> Comparison:
    """Compare an input's parts, which are distinct and the first of which is its text, with the precedents."""
    if not library.precedents:
        return Comparison(None, (), 0, 0)
    lengths = [len(text) for text in texts]
    read_of = shares(lengths, MOST_READ)
    readings = [read(text, most) for text, most in zip(texts, read_of, strict=True)]
    account = _WorkBudget(library, situation, settings.work)
    quarter = settings.work // 4
    text = account.nearest(
        readings[0].words, quarter, most=settings.similar_most, floor=settings.similar_floor, motif_floor=0.0
    )
    nearest = _nearer(library, None, text.motif, 0)
    others = range(1, len(texts))
    affordable = 2 * COMPARISON * len(others) <= quarter
    if affordable:
        until = account.left - quarter
        for part in others:
            share = (account.left - until) // (len(texts) - part)
            motif = account.nearest(readings[part].words, share, motif_floor=0.0).motif
            nearest = _nearer(library, nearest, motif, part)
    nearest = _in_passages(library, settings, readings, () if affordable else others, account, nearest)
    return Comparison(nearest, text.similar, account.cut, sum(lengths) - sum(read_of))


def _in_passages(
    library: Library,
    settings: IntuitionSettings,
    readings: Sequence[Reading],
    wholes: Sequence[int],
    account: _WorkBudget,
    nearest: NearMotif | None,
) -> NearMotif | None:
    """Return the nearer of ``nearest`` and the motif most similar to a passage, if it reaches the threshold.

    Args:
        library: The precedents.
        settings: What to decide with.
        readings: The parts.
        wholes: Parts to be compared as wholes among the passages.
        account: The input's allowance.
        nearest: The motif nearest to a part as a whole.
    """
    runs = passages(library, readings, settings.passage_phrases, settings.passage_words, settings.threshold, wholes)
    rows = zip(runs.starts.tolist(), runs.ends.tolist(), runs.parts.tolist(), runs.bounds.tolist(), strict=True)
    least = max(settings.threshold, nearest.similarity if nearest is not None else 0.0)
    for at, (start, end, part, bound) in enumerate(rows):
        if bound < least:
            continue
        if account.left < COMPARISON:
            account.cut += int(np.count_nonzero(runs.bounds[at:] >= least))
            break
        share = max(account.left // min(len(runs.starts) - at, _SHARES), 2 * COMPARISON)
        motif = account.nearest(runs.words[start:end], share, motif_floor=least).motif
        nearest = _nearer(library, nearest, motif, part)
        least = max(least, motif.similarity if motif is not None else 0.0)
    return nearest


def _nearer(library: Library, nearest: NearMotif | None, found: Found | None, part: int) -> NearMotif | None:
    """Return the nearer of two motifs; of equally near ones the one recorded first, then the part that comes first."""
    if found is None:
        return nearest
    near = NearMotif(found.name, found.similarity, library.precedents[found.name].number, part)
    if nearest is None or (-near.similarity, near.number, part) < (-nearest.similarity, nearest.number, nearest.part):
        return near
    return nearest
