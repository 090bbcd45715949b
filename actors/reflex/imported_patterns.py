"""The patterns that operators have added to the library: a fold over their imports and withdrawals.

The fold never fails. Content that cannot form a library, or would exceed the limits, changes nothing. The command that
imports refuses such content beforehand (``checked_import``), by the same fold over the same events.
"""

from functools import lru_cache

import msgspec

from actors.reflex.library import InvalidLibrary, Library, Profile, library_of, make_library
from actors.reflex.spellings import deep_chain, search_texts
from schemas.identity import content_hash
from schemas.vocabulary.patterns import Name, PatternSet, PatternsImported, PatternsWithdrawn

MAX_IMPORTS, MAX_SIGNATURES, MAX_CHARACTERS = 64, 20_000, 1_000_000
"""Limits of all imports together: every partition's state and snapshot contains them."""


MAX_DEPTH = 32
"""Most imported signatures that end in one another, such as ``a``, ``aa`` and ``aaa``: where the longest occurs, each
of them is examined. The built-in profiles have three."""


class Import(msgspec.Struct, frozen=True):
    """Pattern sets with the name of their import, and who imported them (``by``)."""

    name: Name
    sets: tuple[PatternSet, ...]
    by: str
    fingerprint: str

    def signature_count(self) -> int:
        """Return how many signatures the sets hold."""
        return sum(len(pattern.signatures) for pattern in self.sets)

    def character_count(self) -> int:
        """Return how many characters the signatures have."""
        return sum(len(signature.text) for pattern in self.sets for signature in pattern.entries())


class Imports(msgspec.Struct, frozen=True, eq=False):
    """All imports in force, in library order. They compare by ``fingerprint``, which is equal for equal content."""

    entries: tuple[Import, ...] = ()
    fingerprint: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Imports) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def names(self) -> tuple[str, ...]:
        """Return the names of the imports."""
        return tuple(entry.name for entry in self.entries)


def checked_import(imports: Imports, event: PatternsImported) -> Imports:
    """Return the imports after one more.

    Raises:
        InvalidLibrary: its sets cannot form a library, or the library would exceed a limit.
    """
    sets = tuple(map(_without_negative_zero, event.sets))
    new = Import(event.name, sets, event.by, make_library(sets).fingerprint)
    if event.name in imports.names():
        entries = tuple(new if entry.name == event.name else entry for entry in imports.entries)
    else:
        entries = (*imports.entries, new)
    for amount, most, what in (
        (len(entries), MAX_IMPORTS, "imports"),
        (sum(entry.signature_count() for entry in entries), MAX_SIGNATURES, "imported signatures"),
        (sum(entry.character_count() for entry in entries), MAX_CHARACTERS, "characters of imported signatures"),
    ):
        if amount > most:
            raise InvalidLibrary(f"there would be {amount:,} {what}, of at most {most:,}: withdraw some first")
    _refuse_deep(entries)
    return _imports(entries)


def _without_negative_zero(pattern: PatternSet) -> PatternSet:
    """Return the set without negative zeros among its confidences.

    -0.0 equals 0.0 but has another hash: the fingerprint would depend on which of the two a process has kept.
    """
    return pattern if pattern.confidence else msgspec.structs.replace(pattern, confidence=0.0)


def _refuse_deep(entries: tuple[Import, ...]) -> None:
    signatures = [
        (f"{entry.name}/{pattern.name}", signature.text)
        for entry in entries
        for pattern in entry.sets
        for signature in pattern.entries()
    ]
    chain = deep_chain(search_texts([text for _, text in signatures]), MAX_DEPTH)
    if chain:
        shown = [f"{name}: {text!r}" for name, text in (signatures[index] for index in (*chain[:3], chain[-1]))]
        raise InvalidLibrary(
            f"more than {MAX_DEPTH} signatures end in one another ({', '.join(shown[:3])}, … {shown[3]}), and a text "
            f"that holds the longest would be compared with each: keep {MAX_DEPTH} of them at most"
        )


@lru_cache(maxsize=32)
def with_event(imports: Imports, event: PatternsImported | PatternsWithdrawn) -> Imports:
    """Return the imports after an event; computed once in a process, for all its partitions."""
    if isinstance(event, PatternsWithdrawn):
        kept = tuple(entry for entry in imports.entries if entry.name != event.name)
        return imports if len(kept) == len(imports.entries) else _imports(kept)
    try:
        return checked_import(imports, event)
    except InvalidLibrary:
        return imports


@lru_cache(maxsize=16)
def whole_library(profile: Profile, imports: Imports) -> Library:
    """Return the library to match: the profile's sets, then the imported ones as ``<import>/<set>``."""
    own = library_of(profile)
    if not imports.entries:
        return own
    imported = (
        msgspec.structs.replace(pattern, name=f"{entry.name}/{pattern.name}")
        for entry in imports.entries
        for pattern in entry.sets
    )
    return Library((*own.sets, *imported), content_hash([own.fingerprint, imports.fingerprint]))


def _imports(entries: tuple[Import, ...]) -> Imports:
    """Fingerprint the entries, including ``by``, since states of different content must not compare as equal."""
    return Imports(entries, content_hash([(e.name, e.by, e.fingerprint) for e in entries]) if entries else "")
