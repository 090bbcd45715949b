"""Intuition: the cost of finding the nearest of many motifs, compared with plain dicts and numpy postings.

A precedent is a recorded input, a motif one that did harm; shingles are its sequences of words. Motifs are texts of 8
to 24 words drawn by Zipf's law, so that some shingles are in a tenth of them and most in one. Half of the questions are
motifs with a word in seven changed, half are new texts. ``motif`` is the search that rejects (the nearest motif with a
similarity from 0.7 on), ``verdict`` all that a verdict lists (the five most similar precedents from 0.3 on, and the
nearest motif, however different), ``added`` one more precedent in the state and its index. Every answer is exact, and
the peers' answers are checked. ``hostile layers`` is the whole verdict, without the scorer (a trained model), on inputs
that are made to be slow: layers full of sentences of the words that all motifs have, or of one sentence again and
again. Times are the thread's CPU times: on a shared machine, elapsed times would make the 99th percentile meaningless.

Run it with ``python -m bench.decisions.intuition [MOTIFS...]``.
"""

import gc
import os
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import msgspec
import numpy as np

from actors.intuition.index import Entry, Hashes, index_value, similarity
from actors.intuition.index.query import Query
from actors.intuition.index.store import Store
from actors.intuition.judging import Input, Part, judge
from actors.intuition.library import Library, Precedent
from actors.intuition.settings import IntuitionSettings
from actors.intuition.signature import signature_of, text_signature, to_bytes
from bench.harness.table import is_brief, percentiles_of, record

SIZES = (10_000, 100_000, 1_000_000)
"""Numbers of motifs."""

DICT_MOST = 100_000
"""Most motifs with which the dict peer is run: with a million it needs three gigabytes."""

THRESHOLD = 0.7
"""Similarity from which an input is rejected."""

QUESTIONS = 2_000
"""Texts whose nearest motif is searched for, in each case."""

SECONDS_PER_CASE = 1.0 if is_brief() else 4.0
HOSTILE_MOTIFS = (667, 20_000)
"""Numbers of motifs against which hostile inputs are judged."""

HOSTILE_LAYERS = (1, 100, 1024)
"""Number of layers of a hostile input, which has a megabyte in all."""

_WORDS = ("please", "ignore", "the", "earlier", "secret", "instructions", "and", "then")  # of hostile inputs
_VOCABULARY = 30_000  # words that texts are drawn from
_SITUATION = "general"  # the kind of situation that every text is of


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case. Times are microseconds; the ratios say how many times as long as this product's search a peer takes."""

    motifs: int
    case: str
    engine: str
    p50_us: float
    p99_us: float
    p50_ratio: float | None = None
    p99_ratio: float | None = None


Times = tuple[float, float]
"""The median and the 99th percentile of a case, microseconds."""

Search = Callable[[Hashes], str | None]
"""A question, as the hashes of its shingles -> the name of the nearest motif, None if none is near enough."""


def _warm() -> None:
    """Load the compiled engine, if there is one, so that its memory is not counted as the motifs'."""
    engine = index_value.compiled_engine()
    if engine is not None:
        store = Store()
        engine.add(store, Entry(1, "e", np.array([1, 2], np.uint64).tobytes(), 1, True))
        engine.search(store, Query(np.array([1], np.uint64), 1, 5, 0.3, 0.0))
        engine.smallest(store, np.array([1], np.uint64))


def run(sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """Measure all cases of each size, in turn; a million motifs take some two minutes."""
    draw = np.random.default_rng(20240917)
    words = draw.integers(1, 2**63, _VOCABULARY, dtype=np.uint64)
    shares = 1.0 / np.arange(1, _VOCABULARY + 1)
    texts = _Texts(draw, words, shares / shares.sum())
    _warm()
    for size in () if is_brief() else HOSTILE_MOTIFS:
        yield from _hostile_rows(size)
    for size in sizes:
        yield from _rows(size, texts)


def _hostile_rows(size: int) -> Iterator[Row]:
    library = Library()
    for number, sentence in enumerate(_sentences(0, size)):
        library = library.with_precedent(f"p-{number}", _precedent(text_signature(sentence)))
    settings = IntuitionSettings(scorer=False)
    inputs = [_hostile(layers, repeated) for layers in HOSTILE_LAYERS for repeated in (False, True)]
    engines = ["interpreted"]
    if index_value.compiled_engine():
        engines.insert(0, "compiled")
    for engine in engines:
        compiled = index_value.compiled_engine() if engine == "compiled" else None
        with mock.patch.multiple(index_value, compiled_engine=lambda compiled=compiled: compiled, COMPILED_FROM=0):
            judge(library, settings, inputs[0])  # builds the store
            samples = []
            for hostile in inputs * 5:
                began_ns = time.thread_time_ns()
                judge(library, settings, hostile)
                samples.append(time.thread_time_ns() - began_ns)
        yield _row(size, "hostile layers", engine, percentiles_of(samples))


def _hostile(layers: int, repeated: bool) -> Input:
    """Return an input of a megabyte. With a repeated sentence, layers differ only in their first words."""
    parts = [Part("text", "Summarise these.")]
    for layer in range(layers):
        count = 16_000 // layers
        sentences = _sentences(1, 1) * count if repeated else _sentences(layer + 1, count)
        parts.append(Part(f"document[{layer}]", f"Number {layer}. {'. '.join(sentences)}."))
    return Input(tuple(parts), _SITUATION)


def _sentences(seed: int, count: int) -> list[str]:
    """Return sentences of the same few words, so that every sequence of three words is in many of them."""
    draw = Random(seed)
    return [" ".join(draw.choices(_WORDS, k=10)) for _ in range(count)]


class _Texts:
    """Texts as their words' hashes."""

    def __init__(self, draw: np.random.Generator, words: Hashes, shares: np.ndarray[Any, Any]) -> None:
        self._draw, self._words, self._shares = draw, words, shares

    def many(self, count: int) -> Iterator[Hashes]:
        """Draw texts, all at once; return them one by one."""
        lengths = self._draw.integers(8, 25, count)
        ranks = self._draw.choice(len(self._words), int(lengths.sum()), p=self._shares)
        ends = np.cumsum(lengths)
        return (self._words[ranks[end - length : end]] for end, length in zip(ends, lengths, strict=True))

    def altered(self, text: Hashes) -> Hashes:
        changed = text.copy()
        indices = self._draw.random(len(text)) < 1 / 7
        changed[indices] = self._words[self._draw.integers(0, len(self._words), int(indices.sum()))]
        return changed


def _rows(size: int, texts: _Texts) -> Iterator[Row]:
    engine = "compiled" if index_value.compiled_engine() and size >= index_value.COMPILED_FROM else "interpreted"
    library = Library().with_precedent("first", _precedent(signature_of(next(texts.many(1)))))
    _motif(library)(np.ones(1, np.uint64))  # builds the store, so that it is extended from here on
    kept: list[Hashes] = []
    added = array("q", bytes(8 * (size - 1)))  # made here, so that it does not count as memory of the motifs
    fresh = texts.many(size - 1)
    gc.collect()
    before = _resident()  # right only for the first size: later ones use memory that earlier ones released
    for number, text in enumerate(fresh):
        precedent = _precedent(signature_of(text))
        if number % max(1, size // QUESTIONS) == 0:
            kept.append(text)
        began_ns = time.thread_time_ns()
        library = library.with_precedent(f"p-{number:07}", precedent)
        added[number] = time.thread_time_ns() - began_ns
    gc.collect()
    grown = (_resident() - before) / size
    print(
        f"{size} motifs: {grown:.0f} B each, {library.index.nbytes / size:.0f} B of them in the index", file=sys.stderr
    )
    yield _row(size, "added", engine, percentiles_of(added[-20_000:]))

    half = QUESTIONS // 2
    questions = [signature_of(text) for text in texts.many(half)]
    questions += [signature_of(texts.altered(text)) for text in kept[:half]]
    np.random.default_rng(7).shuffle(questions)
    ours = _measured(_motif(library), questions)
    yield _row(size, "motif", engine, ours)
    yield _row(size, "verdict", engine, _measured(_verdict(library), questions))
    if engine == "compiled":
        with mock.patch.object(index_value, "compiled_engine", return_value=None):
            yield _row(size, "motif", "interpreted", _measured(_motif(library), questions), ours)
            yield _row(size, "verdict", "interpreted", _measured(_verdict(library), questions))
    entries = sorted(library.precedents.items(), key=lambda item: item[1].number)
    peers: dict[str, Callable[[Sequence[tuple[str, Precedent]]], Search]] = {"numpy postings": _numpy_peer}
    if size <= DICT_MOST:
        peers["dict postings"] = _dict_peer
    for name, peer in peers.items():
        search = peer(entries)
        for question in questions[:100]:
            assert search(question) == _motif(library)(question), f"{name} and the index differ"
        yield _row(size, "motif", name, _measured(search, questions), ours)


def _precedent(signature: Hashes) -> Precedent:
    return Precedent(
        signature=to_bytes(signature), situation=_SITUATION, action="answer", outcome="harmful", harm_level=0.9
    )


def _motif(library: Library) -> Search:
    def search(question: Hashes) -> str | None:
        found = library.nearest(question, _SITUATION, most=0, floor=1.0, motif_floor=THRESHOLD).motif
        return found.name if found is not None else None

    return search


def _verdict(library: Library) -> Search:
    def search(question: Hashes) -> str | None:
        library.nearest(question, _SITUATION, most=5, floor=0.3, motif_floor=0.0)
        return None

    return search


def _dict_peer(entries: Sequence[tuple[str, Precedent]]) -> Search:
    """Return the search with prefix and length filter over a dict of lists.

    Each set has one element more than its shingles: its situation, which is the same for all here.
    """
    postings: dict[int, list[int]] = {}
    sets = []
    for index, (_, precedent) in enumerate(entries):
        shingles = np.frombuffer(precedent.signature, np.uint64).tolist()
        sets.append(frozenset(shingles))
        for shingle in shingles:
            postings.setdefault(shingle, []).append(index)

    def search(question: Hashes) -> str | None:
        shingles = set(question.tolist())
        n = len(shingles) + 1
        rarest = sorted(shingles, key=lambda shingle: len(postings.get(shingle, ())))
        prefix = rarest[: n - ceil(THRESHOLD**2 * n) + 1]
        best, nearest = 0.0, ""
        for index in sorted({index for shingle in prefix for index in postings.get(shingle, ())}):
            m = len(sets[index]) + 1
            if THRESHOLD**2 * n <= m <= n / THRESHOLD**2:
                near = similarity(len(shingles & sets[index]) + 1, n, m)
                if near >= THRESHOLD and near > best:
                    best, nearest = near, entries[index][0]
        return nearest or None

    return search


def _numpy_peer(entries: Sequence[tuple[str, Precedent]]) -> Search:
    """Return the search that counts all postings of all shingles, in sorted arrays."""
    sizes = np.array([len(precedent.signature) // 8 for _, precedent in entries])
    shingles = np.frombuffer(b"".join(precedent.signature for _, precedent in entries), np.uint64)
    order = np.argsort(shingles, kind="stable")
    owners = np.repeat(np.arange(len(entries), dtype=np.int32), sizes)[order]
    shingles = shingles[order]

    def search(question: Hashes) -> str | None:
        starts, ends = np.searchsorted(shingles, question), np.searchsorted(shingles, question, side="right")
        matches = np.concatenate([owners[begin:end] for begin, end in zip(starts, ends, strict=True)])
        indices, shared = np.unique(matches, return_counts=True)
        if not len(indices):
            return None
        near = (shared + 1) / np.sqrt((len(question) + 1) * (sizes[indices] + 1))
        best = int(np.argmax(near))
        return entries[int(indices[best])][0] if near[best] >= THRESHOLD else None

    return search


def _measured(search: Search, questions: Sequence[Hashes]) -> Times:
    for question in questions[:50]:
        search(question)
    samples: list[int] = []
    end = time.perf_counter() + SECONDS_PER_CASE
    for question in questions:
        began_ns = time.thread_time_ns()
        search(question)
        samples.append(time.thread_time_ns() - began_ns)
        if time.perf_counter() > end:
            break
    return percentiles_of(samples)


def _row(size: int, case: str, engine: str, times: Times, ours: Times | None = None) -> Row:
    return Row(
        motifs=size,
        case=case,
        engine=engine,
        p50_us=round(times[0], 1),
        p99_us=round(times[1], 1),
        p50_ratio=round(times[0] / ours[0], 1) if ours else None,
        p99_ratio=round(times[1] / ours[1], 1) if ours else None,
    )


def _resident() -> int:
    """Return the process's resident bytes; 0 if the system does not state them."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def main() -> None:
    """Print the rows as they come."""
    print(f"{'motifs':>9} {'case':14} {'engine':15} {'p50 us':>9} {'p99 us':>9} {'p50 x':>7} {'p99 x':>7}")
    rows = []
    for row in run([int(size) for size in sys.argv[1:]] or SIZES):
        rows.append(row)
        ratios = " ".join(f"{ratio:7.1f}" if ratio else " " * 7 for ratio in (row.p50_ratio, row.p99_ratio))
        print(f"{row.motifs:9} {row.case:14} {row.engine:15} {row.p50_us:9.1f} {row.p99_us:9.1f} {ratios}", flush=True)
    record(rows)


if __name__ == "__main__":
    main()
