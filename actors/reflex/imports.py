"""What operators have added to the library: a fold over their imports and withdrawals.

The fold never fails. Content that no library can be made of, or that would go beyond the limits, leaves things as they
are; whoever imports is told so beforehand (``check``), from the same fold over the same events.
"""

from functools import lru_cache

import msgspec

from actors.reflex.library import InvalidLibrary, Library, Profile, library_of, make_library
from schemas.identity import content_hash
from schemas.vocabulary.patterns import Name, PatternSet, PatternsImported, PatternsWithdrawn

MAX_IMPORTS, MAX_SIGNATURES, MAX_CHARACTERS = 64, 20_000, 1_000_000
"""What is held at most, all imports together: every partition's state and snapshot carries it."""


class Import(msgspec.Struct, frozen=True):
    """Pattern sets under the name they were imported by, and who did it."""

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
    """All imports in force, in library order. Equal content means an equal ``fingerprint``, by which they compare."""

    entries: tuple[Import, ...] = ()
    fingerprint: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Imports) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def names(self) -> tuple[str, ...]:
        """Return the names of the imports."""
        return tuple(entry.name for entry in self.entries)


def check(imports: Imports, event: PatternsImported) -> Imports:
    """Return the imports after one more.

    Raises:
        InvalidLibrary: no library can be made of its sets, or it would go beyond a limit.
    """
    library = make_library(event.sets)
    new = Import(event.name, event.sets, event.by, library.fingerprint)
    if event.name in imports.names():
        entries = tuple(new if entry.name == event.name else entry for entry in imports.entries)
    else:
        entries = (*imports.entries, new)
    for found, most, what in (
        (len(entries), MAX_IMPORTS, "imports"),
        (sum(entry.signature_count() for entry in entries), MAX_SIGNATURES, "imported signatures"),
        (sum(entry.character_count() for entry in entries), MAX_CHARACTERS, "characters of imported signatures"),
    ):
        if found > most:
            raise InvalidLibrary(f"there would be {found:,} {what}, of at most {most:,}: withdraw some first")
    return _imports(entries)


@lru_cache(maxsize=32)
def after(imports: Imports, event: PatternsImported | PatternsWithdrawn) -> Imports:
    """Return the imports after an event; worked out once a process, however many partitions fold it."""
    if isinstance(event, PatternsWithdrawn):
        kept = tuple(entry for entry in imports.entries if entry.name != event.name)
        return imports if len(kept) == len(imports.entries) else _imports(kept)
    try:
        return check(imports, event)
    except InvalidLibrary:
        return imports


@lru_cache(maxsize=16)
def whole_library(profile: Profile, imports: Imports) -> Library:
    """Return the library that is matched: the profile's sets, then the imported ones as ``<import>/<set>``."""
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
    """Fingerprint the entries; ``by`` is part of it, since states of different content may not compare as equal."""
    return Imports(entries, content_hash([(e.name, e.by, e.fingerprint) for e in entries]) if entries else "")
