"""The index answers what comparing with every row would answer, as of any version."""

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.memory.layers import index as index_module
from actors.memory.layers.index import Index, Near, Row
from actors.memory.layers.vectors import WIDEST, cosines_of, dots, from_text
from tests.actors.memory.builders import encoded
from tests.each import each

WIDTH = 3
numbers_of_a_byte = st.integers(-128, 127)
vectors = st.lists(numbers_of_a_byte, min_size=WIDTH, max_size=WIDTH).filter(any)
models = st.sampled_from(["one", "other"])
weights = st.sampled_from([0.85, 0.9, 0.925, 1.0])


def as_bytes(vector: Sequence[int]) -> bytes:
    return bytes(number % 256 for number in vector)


def energy(row: Row, query: bytes) -> float:
    """Compare one row, in plain whole numbers."""
    one, other = (np.frombuffer(each, np.int8).tolist() for each in (row.embedding, query))
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    squares = sum(a * a for a in one) * sum(b * b for b in other)
    return min(1.0, round(max(0.0, dot / sqrt(squares)) * row.weight, 6))


def compared(
    rows: Sequence[Row], model: str, query: bytes, most: int, without: Sequence[int]
) -> list[tuple[float, int]]:
    found = [(energy(row, query), row.number) for row in rows if row.model == model and row.number not in without]
    return sorted(((near, number) for near, number in found if near > 0), key=lambda each: (-each[0], -each[1]))[:most]


steps = st.lists(st.tuples(st.none() | vectors, models, weights, st.integers(0, 99)), max_size=40)


def grown(changes: Sequence[tuple[Sequence[int] | None, str, float, int]]) -> list[tuple[Index, list[Row]]]:
    """Return every version of an index with the rows that count in it."""
    index, rows = Index(), list[Row]()
    index.ranking(lambda: (), "one", as_bytes([1] * WIDTH))  # builds the store, which is extended from here on
    versions = [(index, rows)]
    for number, (vector, model, weight, which) in enumerate(changes, 1):
        if vector is not None:
            row = Row(number, model, as_bytes(vector), weight)
            index, rows = index.adding(row), [*rows, row]
        elif rows:
            gone = rows[which % len(rows)]
            index, rows = index.without(gone), [row for row in rows if row is not gone]
        versions.append((index, rows))
    return versions


@given(steps, vectors, models, st.integers(1, 5), st.integers(0, 99))
@settings(deadline=None)
def test_it_finds_what_comparing_with_every_row_finds_as_of_any_version(
    changes: list[tuple[list[int] | None, str, float, int]], sought: list[int], model: str, most: int, passed_over: int
):
    query = as_bytes(sought)
    for compacted_from in (0, 1024):
        with mock.patch.object(index_module, "COMPACTED_FROM", compacted_from):
            versions = grown(changes)
        for index, rows in versions:
            without = [rows[passed_over % len(rows)].number] if rows else []
            for passed in ([], without):
                found = index.ranking(lambda: pytest.fail("the store is there"), model, query, passed).strongest(most)
                assert [(near.energy, near.number) for near in found] == compared(rows, model, query, most, passed)


@given(steps, vectors)
@settings(deadline=None)
def test_one_built_from_the_rows_answers_like_one_that_grew(
    changes: list[tuple[list[int] | None, str, float, int]], sought: list[int]
):
    index, rows = grown(changes)[-1]
    fresh = Index()
    assert fresh == index, "what is derived is no part of a value"
    for model in ("one", "other"):
        grew = index.ranking(lambda: rows, model, as_bytes(sought)).strongest(5)
        assert fresh.ranking(lambda: rows, model, as_bytes(sought)).strongest(5) == grew


def test_a_state_extended_in_two_ways_keeps_both():
    first = Row(1, "one", as_bytes([1, 0, 0]), 1.0)
    before = grown([([1, 0, 0], "one", 1.0, 0)])[-1][0]
    ways = [Row(2, "one", as_bytes([0, 1, 0]), 1.0), Row(2, "one", as_bytes([0, 0, 1]), 1.0)]
    both = [before.adding(row) for row in ways]
    for row, index in zip(ways, both, strict=True):
        found = index.ranking(lambda row=row: [first, row], "one", row.embedding).strongest(5)
        assert found == [Near(2, 1.0)]
    assert before.ranking(lambda: [first], "one", as_bytes([0, 1, 0])).strongest(5) == []


@given(st.lists(st.lists(numbers_of_a_byte, min_size=40, max_size=40), min_size=1, max_size=8), st.data())
def test_products_are_exact(rows: list[list[int]], data: st.DataObject):
    query = data.draw(st.lists(numbers_of_a_byte, min_size=40, max_size=40))
    found = dots(np.array(rows, np.int8), as_bytes(query)).tolist()
    assert found == [sum(a * b for a, b in zip(row, query, strict=True)) for row in rows]


def test_products_are_exact_at_the_greatest_width():
    extreme = np.full((2, WIDEST), -128, np.int8)
    extreme[1, 0] = 127
    found = [Fraction(each) for each in dots(extreme, bytes([128]) * WIDEST).tolist()]
    assert found == [128 * 128 * WIDEST, 128 * 128 * (WIDEST - 1) - 128 * 127]


def test_rows_beyond_one_block_are_compared_too():
    rows = np.ones((5000, 64), np.int8)
    rows[:, 0] = np.arange(5000) % 100
    assert dots(rows, as_bytes([1] * 64)).tolist() == [63 + number % 100 for number in range(5000)]


def test_embeddings_of_another_width_are_not_compared():
    assert cosines_of(as_bytes([1, 0, 0]), [as_bytes([1, 0, 0]), as_bytes([1, 0]), b"", as_bytes([0, 1, 0])]) == [
        1,
        0,
        0,
        0,
    ]


@each("text", ["", "[sealed]", "!", encoded([0, 0, 0]), encoded([1] * (WIDEST + 1))])
def test_what_cannot_be_read_or_says_nothing_is_no_embedding(text: str):
    assert from_text(text) == b""


def test_an_embedding_is_read_as_it_was_written():
    assert from_text(encoded([1, -2, 127])) == as_bytes([1, -2, 127])
