"""Labelled prompts, and which of them may be used when some sources are held out.

A source is never split, since its rows resemble each other. Some sources also quote others: a row that shares half of
its wording with a held-out row, in plain or in decoded form, is left out of the training rows, too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from actors.contract.text.excerpt import excerpt
from actors.contract.text.folding import fold
from actors.contract.text.tokens import split_tokens
from actors.contract.text.views import views_of
from deploy.training.labelled_files import Label, labelled_rows

DIRECT = frozenset({"jailbreak", "prompt_injection", "multi_injection", "system_prompt_extraction"})
"""Categories of attacks that a user sends, besides those named ``encoded_`` something."""

INDIRECT = frozenset({"indirect_injection", "indirect_injection_long"})
"""Categories of attacks that stand in a document."""

APART = frozenset({"indirect_benign_payload", "latent_jailbreak"})
"""Harmless tasks hidden in a text: neither trained on nor counted with the attacks."""

_FAMILIES = ("own:multi", "own:inserted", "InjecAgent", "GPTeacher", "Taskmaster", "BIPIA", "clean emails")
"""Beginnings of sources that are one to a judge of what generalises: the same phrases in other languages or places."""

_KINDS = ("docs:", "code:")

_SHINGLE = 5
_SHINGLED_TOKENS = 4_000
_COMMON_SHINGLE = 60
"""A shingle of more rows than this is a turn of phrase, no sign of quoting."""


class Row(msgspec.Struct, frozen=True):
    """A labelled text.

    ``label`` is attack, benign or hard_benign. ``parents`` are the places of the corpus rows it was made of, empty for
    rows of the corpus itself.
    """

    text: str
    label: Label
    category: str
    source: str
    parents: tuple[int, ...] = ()

    @property
    def attack(self) -> bool:
        """Whether this is an attack."""
        return self.label == "attack"


def load_rows(path: Path) -> list[Row]:
    """Read rows from JSON Lines; unknown fields are ignored.

    Raises:
        ValueError: a line is not such a row; the message names the line.
    """
    return list(labelled_rows(path, Row))


def is_direct(category: str) -> bool:
    """Return whether a category counts as a direct attack."""
    return category in DIRECT or category.startswith("encoded_")


def family_of(source: str) -> str:
    """Return what a source is held out with: texts and code of one project, one collection's parts and languages."""
    for kind in _KINDS:
        if source.startswith(kind):
            return source.removeprefix(kind).partition("+")[0]
    return next((family for family in _FAMILIES if source.startswith(family)), source)


def folds_of(rows: Sequence[Row], count: int) -> list[int]:
    """Return the fold of each row: whole families of sources, the largest first, each to the smallest fold so far.

    Those with attacks and the harmless are dealt out apart, so that every fold holds out some of both.
    """
    families = [family_of(row.source) for row in rows]
    sizes = Counter(families)
    attacked = {family for family, row in zip(families, rows, strict=True) if row.attack and row.category not in APART}
    fold_of: dict[str, int] = {}
    for group in (attacked, set(sizes) - attacked):
        load = [0] * count
        for family in sorted(group, key=lambda family: (-sizes[family], family)):
            lightest = load.index(min(load))
            fold_of[family] = lightest
            load[lightest] += sizes[family]
    return [fold_of[family] for family in families]


def rows_quoted_elsewhere(rows: Sequence[Row], folds: Sequence[int]) -> dict[int, set[int]]:
    """Return for each fold the rows of other folds that share half of their wording with a row of it."""
    shingles = [_shingles(row.text) for row in rows]
    holders: dict[int, list[int]] = defaultdict(list)
    for place, found in enumerate(shingles):
        for shingle in found:
            holders[shingle].append(place)
    found_in: dict[int, set[int]] = {fold_number: set() for fold_number in folds}
    for place, found in enumerate(shingles):
        shared: Counter[int] = Counter()
        for shingle in found:
            if len(holders[shingle]) <= _COMMON_SHINGLE:
                shared.update(other for other in holders[shingle] if folds[other] != folds[place])
        for other, common in shared.items():
            if 2 * common >= min(len(found), len(shingles[other])):
                found_in[folds[place]].add(other)
    return found_in


def training_places(
    rows: Sequence[Row], folds: Sequence[int], left_out: Iterable[int], quotes: dict[int, set[int]]
) -> list[int]:
    """Return the places of the rows to train on when some folds are left out.

    ``rows`` are the corpus's rows followed by rows made of them; ``folds`` covers the former only.
    """
    held = set(left_out)
    barred = {place for place, number in enumerate(folds) if number in held}
    for number in held:
        barred |= quotes[number]
    return [
        place
        for place, row in enumerate(rows)
        if row.category not in APART and place not in barred and barred.isdisjoint(row.parents)
    ]


def _shingles(text: str) -> set[int]:
    shown = excerpt(text)
    found: set[int] = set()
    for each in (shown, *(view.text for view in views_of(shown))):
        tokens = split_tokens(fold(each))[:_SHINGLED_TOKENS]
        # Hashes within one process only: never stored.
        found.update(
            hash(tuple(tokens[place : place + _SHINGLE])) for place in range(max(1, len(tokens) - _SHINGLE + 1))
        )
    return found
