"""The views of a text: as it stands, and what its encoded runs decode to, to a depth of two.

The view of an encoding is one text: the decoded runs in order, one a line, so that what was spread over several runs is
read together. How much is decoded at most, over all views of an input, is the caller's allowance.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import accumulate

import msgspec
import numpy as np

from actors.reflex.characters import INVISIBLE, MARK, fold_table
from actors.reflex.encodings import DECODERS, NONE, Encoding, Run, Runs
from actors.reflex.normalise import Offsets

DEPTH = 2
"""Encodings within each other that are undone."""

_VISIBLE = bytes(code for code in range(128) if chr(code).isprintable() or chr(code).isspace())


class View(msgspec.Struct, frozen=True):
    """A text to search. ``path`` names the encodings undone, outermost first, and ``runs`` are the parent's decoded."""

    path: tuple[Encoding, ...]
    text: str
    runs: tuple[Run, ...] = ()
    parent: "View | None" = None

    def source(self, start: int, end: int) -> tuple[int, int] | None:
        """Return where in the received text the runs lie that a span of this view was decoded from; None at the top."""
        if self.parent is None:
            return None
        begins = list(accumulate((len(run.text) + 1 for run in self.runs[:-1]), initial=0))
        first, last = (self.runs[bisect_right(begins, place) - 1] for place in (start, end - 1))
        return self.parent.source(first.start, last.end) or (first.start, last.end)


class Views(msgspec.Struct, frozen=True):
    """The views of a text, that of the text itself first. ``decoded`` counts the characters of the others.

    ``cut``: there was more to decode than was allowed.
    """

    all: tuple[View, ...]
    decoded: int = 0
    cut: bool = False


def views_of(text: str, encodings: Collection[str], allowance: int) -> Views:
    """Return the views of a text; those besides the text itself have ``allowance`` characters at most, together."""
    found = [View((), text)]
    decoded, cut = 0, False
    level = found[:1]
    for _ in range(DEPTH):
        below: list[View] = []
        for parent, encoding, runs in _decodable(level, encodings):
            kept = _within(runs.found, allowance - decoded)
            cut = cut or runs.cut or kept != runs.found
            if kept:
                below.append(View((*parent.path, encoding), "\n".join(run.text for run in kept), kept, parent))
                decoded += len(below[-1].text)
        found += below
        level = below
    return Views(tuple(found), decoded, cut)


def _decodable(level: list[View], encodings: Collection[str]) -> Iterator[tuple[View, Encoding, Runs]]:
    for parent in level:
        text, ascii_text, origins = _visible(parent.text)
        for encoding, decode in DECODERS.items():
            runs = decode(text, ascii_text) if encoding in encodings else NONE
            if runs is not NONE:
                yield parent, encoding, runs if origins is None else _moved(runs, origins)


def _within(runs: tuple[Run, ...], allowance: int) -> tuple[Run, ...]:
    """Return the first runs that fit, line breaks included, and a part of the next."""
    kept: list[Run] = []
    room = allowance
    for run in runs:
        if len(run.text) > room:
            return (*kept, msgspec.structs.replace(run, text=run.text[:room])) if room > 0 else tuple(kept)
        kept.append(run)
        room -= len(run.text) + 1
    return tuple(kept)


def _visible(text: str) -> tuple[str, bytes, Offsets | None]:
    """Return a text without the invisible characters and marks that would break up a run.

    Also the same with a ``?`` for every character that is not ASCII, and where its characters were if any is missing.
    """
    if text.isascii():
        data = text.encode("ascii")
        if not data.translate(None, _VISIBLE):
            return text, data, None
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<i4")
    values = fold_table().single.take(codes)
    kept = np.flatnonzero((values != INVISIBLE) & (values != MARK))
    if len(kept) == len(codes):
        return text, text.encode("ascii", "replace"), None
    text = codes[kept].tobytes().decode("utf-32-le", "surrogatepass")
    return text, text.encode("ascii", "replace"), kept


def _moved(runs: Runs, origins: Offsets) -> Runs:
    moved = (Run(int(origins[run.start]), int(origins[run.end - 1]) + 1, run.text) for run in runs.found)
    return Runs(tuple(moved), runs.cut)
