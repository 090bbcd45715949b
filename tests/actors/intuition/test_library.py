"""States that share an index: each answers for itself, in whatever order they are asked."""

from collections.abc import Sequence
from math import sqrt
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.intuition.decider import precedent_of
from actors.intuition.index import Nearest
from actors.intuition.index import index_value as handle
from actors.intuition.library import Library
from actors.intuition.signature import text_signature
from schemas.persistent import decode_state, encode_state
from tests.actors.intuition.builders import GATE, benign, harmful

texts = st.lists(st.sampled_from(["open", "the", "north", "gate", "now"]), min_size=1, max_size=6).map(" ".join)
names = st.sampled_from(["p-1", "p-2", "p-3", "p-4"])

Change = tuple[int, str, str | None, bool]
changes = st.lists(st.tuples(st.integers(0, 30), names, st.none() | texts, st.booleans()), max_size=25)
"""Which of the libraries so far is changed, which precedent, its new description (None: withdrawn), its outcome."""


def changed(library: Library, change: Change) -> Library:
    _, name, description, harm = change
    if description is None:
        return library.without_precedent(name)
    return library.with_precedent(name, precedent_of((harmful if harm else benign)(name, description)))


def asked(library: Library, text: str) -> Nearest:
    found = library.nearest(text_signature(text), "general", most=3, floor=0.2, motif_floor=0.0)
    return Nearest(found.similar, found.motif)


def compared(library: Library, text: str) -> Nearest:
    signature = set(text_signature(text).tolist())
    rows = []
    for name, precedent in library.precedents.items():
        other = {precedent.signature[at : at + 8] for at in range(0, len(precedent.signature), 8)}
        shared = len({each.to_bytes(8, "little") for each in signature} & other)
        if shared:
            size = precedent.size
            near = (shared + 1) / sqrt((len(signature) + 1) * size)
            rows.append(
                (-((shared + 1) ** 2) / size, precedent.number, precedent.is_motif, handle.SimilarEntry(name, near))
            )
    rows.sort(key=lambda row: row[:2])
    motifs = [found for *_, is_motif, found in rows if is_motif]
    return Nearest(tuple(found for *_, found in rows if found.similarity >= 0.2)[:3], motifs[0] if motifs else None)


@given(changes=changes, questions=st.lists(st.tuples(st.integers(0, 30), texts), max_size=25))
@settings(max_examples=80, deadline=None)
def test_states_that_went_different_ways_answer_for_themselves_in_any_order(
    changes: Sequence[Change], questions: Sequence[tuple[int, str]]
) -> None:
    with mock.patch.object(handle, "COMPACTED_FROM", 2):
        libraries = [Library()]
        waiting = list(questions)
        for change in changes:
            libraries.append(changed(libraries[change[0] % len(libraries)], change))
            if waiting and change[3]:  # asked between changes too
                which, text = waiting.pop()
                library = libraries[which % len(libraries)]
                assert asked(library, text) == compared(library, text)
        for which, text in waiting:
            library = libraries[which % len(libraries)]
            assert asked(library, text) == compared(library, text)


@given(changes=changes, after=changes, text=texts)
@settings(max_examples=40, deadline=None)
def test_a_library_read_from_a_snapshot_goes_on_like_the_one_that_was_written(
    changes: Sequence[Change], after: Sequence[Change], text: str
) -> None:
    kept = Library()
    for change in changes:
        kept = changed(kept, change)
        asked(kept, text)
    restored = decode_state(encode_state(kept), Library)
    for change in after:
        kept, restored = changed(kept, change), changed(restored, change)
        assert asked(restored, text) == asked(kept, text)
    assert restored == kept


def test_an_older_state_does_not_see_what_was_added_or_retired_since() -> None:
    first = Library().with_precedent("p-1", precedent_of(harmful("p-1")))
    assert asked(first, GATE).motif == ("p-1", 1.0)
    second = first.with_precedent("p-2", precedent_of(harmful("p-2", "open the gate"))).without_precedent("p-1")
    assert asked(second, GATE).motif != ("p-1", 1.0)
    assert asked(first, GATE).motif == ("p-1", 1.0)
    assert asked(first, "open the gate").motif == compared(first, "open the gate").motif


def test_a_line_of_states_shares_one_store() -> None:
    library = Library().with_precedent("p-1", precedent_of(harmful("p-1")))
    asked(library, GATE)
    with mock.patch.object(handle, "Store", side_effect=AssertionError("built anew")):
        for number in range(50):
            library = library.with_precedent(f"q-{number}", precedent_of(benign(f"q-{number}", f"{GATE} {number}")))
            asked(library, GATE)
            library = library.without_precedent(f"q-{number}") if number % 3 else library


def test_recording_the_same_again_changes_nothing() -> None:
    library = Library().with_precedent("p-1", precedent_of(harmful("p-1")))
    assert library.with_precedent("p-1", precedent_of(harmful("p-1"))) is library
    assert library.without_precedent("p-2") is library
