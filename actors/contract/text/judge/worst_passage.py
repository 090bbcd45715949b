"""What a text and its decoded views say: n-grams by place, and how heavily the worst passage of them weighs."""

import re
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from actors.contract.text.decoding import texts_for_judges
from actors.contract.text.escapes import unescape_strings
from actors.contract.text.excerpt import DECODED, excerpt_of
from actors.contract.text.judge.features import Keys, Reading, read
from actors.contract.text.judge.passages import Occurrences, Passage, worst_passage
from actors.contract.text.views import View, read_views
from schemas.unread import DECIMALS

WEIGHT_UNIT = 1024.0
"""N-gram weights are whole multiples of one over this."""

_DATA = re.compile(r"[A-Za-z0-9+/]{513,}")
_OF_DATA = 256
"""Characters read of either end of longer runs without a space: data, whose text is what it says once decoded."""

_SIEVED = 12
"""Bits of a key that a first look leaves out: the table of the others has a million entries."""


class Table(msgspec.Struct, frozen=True, eq=False):
    """Weights by n-gram, in units of one over ``WEIGHT_UNIT``: ``keys`` ascending, never empty."""

    keys: Keys
    weights: npt.NDArray[np.int32]


class Text(msgspec.Struct, frozen=True, eq=False):
    """A text and its decoded views, read.

    ``unread`` counts what should have been read and was not: characters around telling words, of decoded views, and
    tokens. ``shown`` counts the characters that were.
    """

    readings: tuple[Reading, ...]
    views: tuple[View, ...]
    shown: int = 0
    unread: int = 0

    @property
    def tokens(self) -> int:
        """How many tokens the text itself has."""
        return self.readings[0].tokens


@lru_cache(maxsize=32)
def read_text(text: str) -> Text:
    """Read a text of any length, and what it says once decoded; the work is bounded.

    Appraisal and intuition read the same texts one after the other: the latest are read once.
    """
    text = unescape_strings(text)
    shown, unread = excerpt_of(text)
    encoded = excerpt_of(text, DECODED).text
    views, decoded = read_views(encoded), texts_for_judges(encoded)
    plain = _DATA.sub(lambda run: f"{run[0][:_OF_DATA]} {run[0][-_OF_DATA:]}", shown)
    known = {view.text for view in views.found}
    readings = (
        read(plain),
        *(read(view.text, view.kind) for view in views.found),
        *(read(said) for said in decoded.texts if said not in known),
    )
    unread += views.unread + decoded.unread + sum(reading.unread for reading in readings)
    return Text(readings, views.found, len(shown), unread)


def unread_share(read: int, unread: int) -> float:
    """Return how much of what should have been read was not, from 0 to 1; in characters."""
    return round(unread / (read + unread), DECIMALS) if unread > 0 else 0.0


def worst_of(table: Table, text: Text) -> Passage:
    """Return the worst passage of a text and its views; its score is in log-odds, without a bias.

    A view is a text of its own: passages do not reach from one into another.
    """
    found = [worst_passage(table.weights, _known(table, reading), reading.segments) for reading in text.readings]
    worst = max(found, key=lambda passage: passage.score)
    return worst._replace(score=worst.score / WEIGHT_UNIT)


def _known(table: Table, reading: Reading) -> Occurrences:
    """Return the n-grams of a reading that the table knows."""
    # Most n-grams are none of the table's, and nearly all of these are told by their first bits alone.
    likely = np.flatnonzero(_sieve(table)[reading.found.grams >> _SIEVED])
    keys = reading.found.grams[likely].astype(np.uint32)
    spots = np.searchsorted(table.keys, keys)
    right = table.keys[np.minimum(spots, len(table.keys) - 1)] == keys
    found = likely[right]
    return Occurrences(spots[right], reading.found.places[found])


@lru_cache(maxsize=8)
def _sieve(table: Table) -> npt.NDArray[np.bool_]:
    begins = np.zeros(1 << (32 - _SIEVED), dtype=np.bool_)
    begins[table.keys >> np.uint32(_SIEVED)] = True
    return begins
