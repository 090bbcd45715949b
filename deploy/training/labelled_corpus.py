"""The corpus of labelled prompts, and which of them may be trained on when some sources are held out.

A source is never split, since its rows resemble each other. Some sources also quote others: a row that shares half of
its wording with a held-out row, in plain or in decoded form, is not trained on either.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from actors.contract.text.decoded_views import decoded_views_of
from actors.contract.text.excerpt import excerpt
from actors.contract.text.folding import fold as fold_text
from actors.contract.text.tokens import split_tokens
from deploy.training.labelled_files import Label, labelled_rows
from schemas.intake.blank import is_blank

DIRECT = frozenset({"jailbreak", "prompt_injection", "multi_injection", "system_prompt_extraction"})
"""Categories of attacks that a user sends, besides those whose names begin with ``encoded_``."""

INDIRECT = frozenset({"indirect_injection", "indirect_injection_long"})
"""Categories of attacks that are hidden in a document."""

EXCLUDED_CATEGORIES = frozenset({"indirect_benign_payload", "latent_jailbreak"})
"""Harmless tasks hidden in a text: neither trained on nor counted with the attacks."""

_FAMILIES = ("own:multi", "own:inserted", "InjecAgent", "GPTeacher", "Taskmaster", "BIPIA", "clean emails")
"""Prefixes of sources that count as one source: they have the same phrases in other languages or contexts."""

_PROJECT_KINDS = ("docs:", "code:")
"""Prefixes of sources from one software project, which count as one source, too."""

_SHINGLE_TOKENS = 5
"""Tokens of a shingle, a run of words by which quotations are found."""

_MOST_TOKENS = 4_000
"""The most tokens of a text that are searched for quotations, from its beginning on."""

_COMMON_ROWS = 60
"""A shingle that occurs in more rows than this is a common phrase, and no quotation."""


class Row(msgspec.Struct, frozen=True):
    """A labelled text.

    ``label`` is attack, benign or hard_benign (harmless, but similar to attacks). ``parents`` are the indices of the
    corpus rows that it was made from; empty for rows of the corpus itself.
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
        ValueError: a line is not such a row, or its text is blank; the message names the line, or the row.
    """
    rows = list(labelled_rows(path, Row))
    if (blank := next((number for number, row in enumerate(rows, 1) if is_blank(row.text)), 0)) > 0:
        raise ValueError(f"{path.name}, row {blank}: text is blank: a label needs words, fill it in or drop the row")
    return rows


def is_direct(category: str) -> bool:
    """Return whether a category counts as a direct attack."""
    return category in DIRECT or category.startswith("encoded_")


def family_of(source: str) -> str:
    """Return the name of the family with which a source is held out: of one project, or of one collection."""
    for kind in _PROJECT_KINDS:
        if source.startswith(kind):
            return source.removeprefix(kind).partition("+")[0]
    return next((family for family in _FAMILIES if source.startswith(family)), source)


def folds_of(rows: Sequence[Row], count: int) -> list[int]:
    """Return the fold of each row: whole families of sources, the largest first, each to the smallest fold so far.

    Families with attacks and harmless ones are distributed separately, so that every fold holds out some of both.
    """
    families = [family_of(row.source) for row in rows]
    sizes = Counter(families)
    attacked = {
        family
        for family, row in zip(families, rows, strict=True)
        if row.attack and row.category not in EXCLUDED_CATEGORIES
    }
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
    for index, found in enumerate(shingles):
        for shingle in found:
            holders[shingle].append(index)
    found_in: dict[int, set[int]] = {fold_number: set() for fold_number in folds}
    for index, found in enumerate(shingles):
        shared: Counter[int] = Counter()
        for shingle in found:
            if len(holders[shingle]) <= _COMMON_ROWS:
                shared.update(other for other in holders[shingle] if folds[other] != folds[index])
        for other, common in shared.items():
            if 2 * common >= min(len(found), len(shingles[other])):
                found_in[folds[index]].add(other)
    return found_in


def training_indices(
    rows: Sequence[Row], folds: Sequence[int], left_out: Iterable[int], quotes: dict[int, set[int]]
) -> list[int]:
    """Return the indices of the rows to train on when some folds are left out.

    ``rows`` are the corpus's rows followed by rows made from them; ``folds`` covers only the former.
    """
    held = set(left_out)
    excluded = {index for index, number in enumerate(folds) if number in held}
    for number in held:
        excluded |= quotes[number]
    return [
        index
        for index, row in enumerate(rows)
        if row.category not in EXCLUDED_CATEGORIES and index not in excluded and excluded.isdisjoint(row.parents)
    ]


def _shingles(text: str) -> set[int]:
    """Return the shingles of a text and of its decoded views, as hashes."""
    shown = excerpt(text)
    found: set[int] = set()
    for each in (shown, *(view.text for view in decoded_views_of(shown))):
        tokens = split_tokens(fold_text(each))[:_MOST_TOKENS]
        # Python's own hashes, which differ between processes: they are never stored.
        found.update(
            hash(tuple(tokens[index : index + _SHINGLE_TOKENS]))
            for index in range(max(1, len(tokens) - _SHINGLE_TOKENS + 1))
        )
    return found
