"""The views of a text: the text itself, and the decoding of its encoded runs, to a depth of three.

The view of an encoding is one text: the decoded runs in order, one on each line, so that an instruction spread over
several runs is read as one. The caller limits how much is decoded over all views of an input. What is still encoded at
the full depth counts as not read.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise

import msgspec
import numpy as np

from actors.reflex.decoding.encodings import (
    ALTERNATIVES_SEPARATOR,
    DECODERS,
    ESCAPE_LENGTH,
    MAX_WORK,
    NO_RUNS,
    DecodingBudget,
    EncodedRun,
    EncodedRuns,
    Encoding,
)
from actors.reflex.fold_table import INVISIBLE, MARK, fold_table
from actors.reflex.normalise import Offsets, codes_of

DEPTH = 3
"""Most encodings inside each other that are undone: a URL in a URL in a URL is percent-escaped as often."""

_VISIBLE = bytes(code for code in range(128) if chr(code).isprintable() or chr(code).isspace())


class TextView(msgspec.Struct, frozen=True):
    """A text to search; ``path`` names the encodings undone, outermost first, ``runs`` the parent's decoded runs."""

    path: tuple[str, ...]
    text: str
    runs: tuple[EncodedRun, ...] = ()
    parent: "TextView | None" = None

    def source(self, start: int, end: int) -> tuple[int, int] | None:
        """Return which part of the received text a span of this view was decoded from; None for the text itself."""
        if self.parent is None:
            return None
        begins = list(accumulate((len(run.text) + 1 for run in self.runs[:-1]), initial=0))
        first, last = (self.runs[bisect_right(begins, offset) - 1] for offset in (start, end - 1))
        return self.parent.source(first.start, last.end) or (first.start, last.end)


class TextViews(msgspec.Struct, frozen=True):
    """The views of a text, first the text itself. ``decoded`` counts the characters of the others.

    ``work`` counts the steps of decoding, ``unread`` the characters that were not read, by encoding.
    """

    all: tuple[TextView, ...]
    decoded: int = 0
    work: int = 0
    unread: tuple[tuple[Encoding, int], ...] = ()


def text_views_of(text: str, encodings: Collection[str], characters: int, work: int = MAX_WORK) -> TextViews:
    """Return the views of a text; the others have at most ``characters`` characters in all.

    ``work`` limits the steps of decoding (``encodings.MAX_WORK``).
    """
    found = [TextView((), text)]
    unread: dict[Encoding, int] = {}
    decoded, work_done = 0, 0
    level = found[:1]
    for depth in range(DEPTH + 1):
        below: list[TextView] = []
        for parent in level:
            readable = _visible(parent.text)
            for encoding in DECODERS:
                if encoding not in encodings:
                    continue
                # Each encoding may use up to two thirds, and leaves a third to the others.
                budget = DecodingBudget(max(0, characters - decoded), max(0, work - work_done) * 2 // 3)
                runs = _runs(readable, encoding, budget)
                work_done += runs.work
                left = runs.unread
                if depth == DEPTH:
                    left += sum(_characters_left_encoded(parent, encoding, run) for run in runs.found)
                elif runs.found:
                    separated = _with_separators(parent.text, runs.found, budget.characters)
                    text_of_runs = "\n".join(run.text for run in separated)
                    below.append(TextView((*parent.path, encoding), text_of_runs, separated, parent))
                    decoded += len(text_of_runs)
                if left:
                    unread[encoding] = unread.get(encoding, 0) + left
        found += below
        level = below
    return TextViews(tuple(found), decoded, work_done, tuple(unread.items()))


def _with_separators(text: str, runs: Sequence[EncodedRun], most: int) -> tuple[EncodedRun, ...]:
    """Return runs; the separator between alternative readings of one run is kept as far as ``most`` allows."""
    if ALTERNATIVES_SEPARATOR not in text:
        return tuple(runs)
    mark = ALTERNATIVES_SEPARATOR.removesuffix("\n")
    left = most - sum(len(run.text) + 1 for run in runs) + 1
    separated: list[EncodedRun] = []
    for run, after in pairwise((*runs, None)):
        assert run is not None, "only the last is none"
        # A run of hex includes the white space after it.
        between = "" if after is None else text[max(run.start, run.end - len(ALTERNATIVES_SEPARATOR)) : after.start]
        ends_reading = ALTERNATIVES_SEPARATOR in between and left >= len(mark)
        separated.append(msgspec.structs.replace(run, text=run.text + mark) if ends_reading else run)
        left -= len(mark) * ends_reading
    return tuple(separated)


def _characters_left_encoded(view: TextView, encoding: Encoding, run: EncodedRun) -> int:
    """Return how many received characters of a run of a view are not decoded any further."""
    if encoding == "percent":
        # The characters around an escape are read as they are.
        return (run.end - run.start - len(run.text)) * ESCAPE_LENGTH // (ESCAPE_LENGTH - 1)
    start, end = view.source(run.start, run.end) or (run.start, run.end)
    return end - start


def _runs(readable: "_Readable", encoding: Encoding, budget: DecodingBudget) -> EncodedRuns:
    text, ascii_text, origins = readable
    runs = DECODERS[encoding](text, ascii_text, budget)
    return runs if runs is NO_RUNS or origins is None else _moved(runs, origins)


_Readable = tuple[str, bytes, Offsets | None]


def _visible(text: str) -> _Readable:
    """Return a text without the invisible characters and combining marks that would interrupt a run.

    Also returns that text with a ``?`` for each character that is not ASCII; and, if any character was left out, the
    original positions of the others.
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


def _moved(runs: EncodedRuns, origins: Offsets) -> EncodedRuns:
    """Return runs of a text without invisible characters at their positions in the text itself."""
    moved = (EncodedRun(int(origins[run.start]), int(origins[run.end - 1]) + 1, run.text) for run in runs.found)
    return msgspec.structs.replace(runs, found=tuple(moved))
