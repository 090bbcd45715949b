"""The pattern library: which signatures (phrases) are known threats, and in which order.

A built-in profile is beside this module: ``seed`` as plain pattern sets, ``standard`` as templates (``templates``).
Imports of operators (``imported_patterns``) come after it. The order of sets, and of signatures in them, is the library
order: the first blocking match in that order decides.
"""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from actors.reflex.normalise import squeeze
from actors.reflex.templates import TemplateFile, expand
from schemas.identity import content_hash, without_defaults
from schemas.vocabulary.patterns import PatternSet, Signature

Profile = Literal["standard", "seed"]
"""Names of the built-in profiles. ``seed``: four small pattern sets with 16 signatures.
``standard``: our own, from templates in several languages; ``python -m bench.quality.reflex_detection`` measures it."""

Path = tuple[str | int, ...]
"""A path in a document of pattern sets, such as ``(2, "signatures", 5)``."""

# The files of the profile ``standard``, whose sets are written as templates, in library order.
_STANDARD = (
    "english",
    "german",
    "french",
    "spanish",
    "italian",
    "portuguese",
    "dutch",
    "markup",  # marks of chat formats, and phrases in other scripts
    "source",  # signatures of ``seed`` that the other files lack
    "suspicious",  # sets that only flag an input
)


class InvalidLibrary(ValueError):
    """A pattern library cannot be used; the message names the pattern set and signature, ``path`` their position."""

    code = "invalid_library"

    def __init__(self, message: str, path: Path = ()) -> None:
        super().__init__(message)
        self.path = path


class Library(msgspec.Struct, frozen=True, eq=False):
    """Pattern sets in library order. Libraries compare by ``fingerprint``, which is equal for equal content."""

    sets: tuple[PatternSet, ...]
    fingerprint: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Library) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def signatures(self) -> Iterator[tuple[PatternSet, Signature]]:
        """Yield every signature with its set, in library order."""
        return ((pattern, signature) for pattern in self.sets for signature in pattern.entries())


def make_library(sets: tuple[PatternSet, ...]) -> Library:
    """Return the library of these sets.

    Raises:
        InvalidLibrary: two sets share a name, or a signature is listed twice in its set or has no visible character.
    """
    names: set[str] = set()
    for index, pattern in enumerate(sets):
        if pattern.name in names:
            raise InvalidLibrary(
                f"two pattern sets are named {pattern.name!r}: merge them or rename one", (index, "name")
            )
        names.add(pattern.name)
        _check_signatures(pattern, index)
    return Library(sets, content_hash([_content(pattern) for pattern in sets]))


def _content(pattern: PatternSet) -> dict[str, Any]:
    """Return the content of a set that its library's fingerprint is computed from."""
    signatures = [
        each if isinstance(each, str) else without_defaults(each, "whole_words") for each in pattern.signatures
    ]
    return without_defaults(pattern) | {"signatures": signatures}


def _check_signatures(pattern: PatternSet, index: int) -> None:
    texts: set[str] = set()
    for number, signature in enumerate(pattern.entries()):
        where = (index, "signatures", number)
        if not squeeze(signature.text):
            raise InvalidLibrary(
                f"{pattern.name}: signature {signature.text!r} has no visible character: remove it", where
            )
        if signature.text in texts:
            raise InvalidLibrary(f"{pattern.name}: signature {signature.text!r} is listed twice: remove one", where)
        texts.add(signature.text)


@cache
def library_of(profile: Profile) -> Library:
    """Return the library of a built-in profile."""
    folder = files("actors.reflex").joinpath("profiles")
    if profile == "seed":
        return make_library(msgspec.json.decode(folder.joinpath("seed.json").read_bytes(), type=tuple[PatternSet, ...]))
    found: list[PatternSet] = []
    for name in _STANDARD:
        data = folder.joinpath("standard", f"{name}.json").read_bytes()
        found += expand(msgspec.json.decode(data, type=TemplateFile))
    return make_library(tuple(found))
