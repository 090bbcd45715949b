"""The views of a text: as it stands, and what its encoded runs decode to, to a depth of two.

The view of an encoding is one text: the decoded runs in order, one a line, so that what was spread over several runs is
read together. How much is decoded at most, over all views of an input, is the caller's allowance.
"""

from bisect import bisect_right
from collections.abc import Collection
from itertools import accumulate

import msgspec
import numpy as np

from actors.reflex.characters import INVISIBLE, MARK, fold_table
from actors.reflex.encodings import DECODERS, MAX_TRIES, NONE, Encoding, Room, Run, Runs
from actors.reflex.normalise import Offsets, codes_of

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

    ``tries`` counts what other readings of base64 took. ``cut``: there was more to decode than was allowed.
    """

    all: tuple[View, ...]
    decoded: int = 0
    tries: int = 0
    cut: bool = False


def views_of(text: str, encodings: Collection[str], allowance: int, tries: int = MAX_TRIES) -> Views:
    """Return the views of a text; those besides the text itself have ``allowance`` characters at most, together.

    ``tries`` bounds what base64 may be decoded from other places than the likeliest (``encodings.MAX_TRIES``).
    """
    found = [View((), text)]
    decoded, tried, cut = 0, 0, False
    level = found[:1]
    for _ in range(DEPTH):
        below: list[View] = []
        for parent in level:
            readable = _visible(parent.text)
            for encoding in DECODERS:
                if encoding not in encodings:
                    continue
                room = Room(allowance - decoded, tries - tried)
                runs = _runs(readable, encoding, room)
                kept = _within(runs.found, room.characters)
                cut = cut or runs.cut or kept != runs.found
                tried += runs.tries
                if kept:
                    below.append(View((*parent.path, encoding), "\n".join(run.text for run in kept), kept, parent))
                    decoded += len(below[-1].text)
        found += below
        level = below
    return Views(tuple(found), decoded, tried, cut)


def _runs(readable: "_Readable", encoding: Encoding, room: Room) -> Runs:
    text, ascii_text, origins = readable
    runs = DECODERS[encoding](text, ascii_text, room)
    return runs if runs is NONE or origins is None else _moved(runs, origins)


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


_Readable = tuple[str, bytes, Offsets | None]


def _visible(text: str) -> _Readable:
    """Return a text without the invisible characters and marks that would break up a run.

    Also the same with a ``?`` for every character that is not ASCII, and where its characters were if any is missing.
    """
    if text.isascii():
        data = text.encode("ascii")
        if not data.translate(None, _VISIBLE):
            return text, data, None
    codes = codes_of(text)
    values = fold_table().single.take(codes)
    kept = np.flatnonzero((values != INVISIBLE) & (values != MARK))
    if len(kept) == len(codes):
        return text, text.encode("ascii", "replace"), None
    text = codes[kept].tobytes().decode("utf-32-le")  # without surrogates, which are invisible
    return text, text.encode("ascii", "replace"), kept


def _moved(runs: Runs, origins: Offsets) -> Runs:
    moved = (Run(int(origins[run.start]), int(origins[run.end - 1]) + 1, run.text) for run in runs.found)
    return msgspec.structs.replace(runs, found=tuple(moved))
