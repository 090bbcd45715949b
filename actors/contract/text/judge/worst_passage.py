"""Reads a text and its decoded views (its encodings undone): n-grams by position, and the score of the worst passage.

A passage is a run of sentences; the worst is the one that a classifier scores highest as an attack.
"""

import re
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from actors.contract.text.decoded_views import DecodedView, read_decoded_views
from actors.contract.text.decoding import texts_for_judges
from actors.contract.text.excerpt import MOST_FOR_DECODING, excerpt_of
from actors.contract.text.hashing import Keys
from actors.contract.text.judge.features import TextFeatures, read
from actors.contract.text.judge.passages import Occurrences, Passage, worst_passage
from actors.contract.text.quoted_strings import unescape_strings
from schemas.unread import DECIMALS

WEIGHT_UNIT = 1024.0
"""N-gram weights are integer multiples of one over this."""

_DATA = re.compile(r"[A-Za-z0-9+/]{513,}")
_DATA_ENDS = 256
"""Characters read at either end of a long run without a space: it is data, of which the decoded text is read."""

SHORT = 2_000
"""Most characters of a short text: what was read of it takes 80 KB at most, against 700 KB of a long one."""

_CACHED_SHORT, _CACHED_LONG = 512, 32
"""Most short and long texts whose features are cached.

A backlog of inputs passes appraisal before intuition begins, and an input has several parts.
"""

_IGNORED_BITS = 12
"""Low bits of a key that the first check ignores, so that its table has only a million entries."""


class Table(msgspec.Struct, frozen=True, eq=False):
    """Weights by n-gram, as multiples of one over ``WEIGHT_UNIT``; ``keys`` ascending, never empty."""

    keys: Keys
    weights: npt.NDArray[np.int32]


class ReadText(msgspec.Struct, frozen=True, eq=False):
    """The features of a text and of its decoded texts.

    ``readings`` holds the text itself first, ``views`` its decoded views. ``unread`` counts what should have been read
    but was not: characters around words typical of instructions to a model, characters of decoded texts, and tokens.
    ``shown`` counts the characters that were read.
    """

    readings: tuple[TextFeatures, ...]
    views: tuple[DecodedView, ...]
    shown: int = 0
    unread: int = 0

    @property
    def tokens(self) -> int:
        """The number of tokens of the text itself."""
        return self.readings[0].tokens


def read_text(text: str) -> ReadText:
    """Read a text of any length, and its decoded texts; the work is limited.

    Appraisal and intuition read the same texts one after the other, so the latest results are cached.
    """
    return (_read_short if len(text) <= SHORT else _read_long)(text)


def read_anew(text: str) -> ReadText:
    """Read a text as :func:`read_text` does, without the cache."""
    text = unescape_strings(text)
    excerpt, unread = excerpt_of(text)
    shorter = excerpt_of(text, MOST_FOR_DECODING).text
    views, decoded = read_decoded_views(shorter), texts_for_judges(shorter)
    plain = _DATA.sub(lambda run: f"{run[0][:_DATA_ENDS]} {run[0][-_DATA_ENDS:]}", excerpt)
    known = {view.text for view in views.found}
    readings = (
        read(plain),
        *(read(view.text, view.kind) for view in views.found),
        *(read(each) for each in decoded.texts if each not in known),
    )
    unread += views.unread + decoded.unread + sum(reading.unread for reading in readings)
    return ReadText(readings, views.found, len(excerpt), unread)


_read_short = lru_cache(maxsize=_CACHED_SHORT)(read_anew)
_read_long = lru_cache(maxsize=_CACHED_LONG)(read_anew)


def unread_share(read: int, unread: int) -> float:
    """Return which share of what should have been read was not, from 0 to 1; ``read`` and ``unread`` in characters."""
    return round(unread / (read + unread), DECIMALS) if unread > 0 else 0.0


def worst_of(table: Table, text: ReadText) -> Passage:
    """Return the worst passage of a text and its views; the score is in log-odds, without a bias.

    A view is a separate text: no passage extends from one to another.
    """
    found = [worst_passage(table.weights, _known(table, reading), reading.segments) for reading in text.readings]
    worst = max(found, key=lambda passage: passage.score)
    return worst._replace(score=worst.score / WEIGHT_UNIT)


def _known(table: Table, reading: TextFeatures) -> Occurrences:
    """Return the n-grams of a reading that the table knows."""
    # Most n-grams are not in the table, and the first bits of the key show that for nearly all of them.
    likely = np.flatnonzero(_known_beginnings(table)[reading.found.grams >> _IGNORED_BITS])
    keys = reading.found.grams[likely].astype(np.uint32)
    numbers = np.searchsorted(table.keys, keys)
    known = table.keys[np.minimum(numbers, len(table.keys) - 1)] == keys
    return Occurrences(numbers[known], reading.found.positions[likely[known]])


@lru_cache(maxsize=8)
def _known_beginnings(table: Table) -> npt.NDArray[np.bool_]:
    begins = np.zeros(1 << (32 - _IGNORED_BITS), dtype=np.bool_)
    begins[table.keys >> np.uint32(_IGNORED_BITS)] = True
    return begins
