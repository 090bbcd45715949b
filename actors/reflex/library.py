"""The pattern library: what counts as a known threat, and in which order.

A profile is a JSON file beside this module, a list of pattern sets. The order of sets and of
signatures in them is the library order: the first blocking match in it decides.
"""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import msgspec

from actors.reflex.normalise import squeeze
from schemas.event import Unit
from schemas.identity import content_hash

Action = Literal["BLOCK", "FLAG"]
"""What a match does: end the exchange, or only mark the input for later stages."""

Profile = Literal["seed"]
"""Names of the profiles that ship. ``seed``: the four pattern sets of the source (R 2.1), 16 signatures."""

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class InvalidLibrary(ValueError):
    """A pattern library that cannot be used; the message names the pattern set and signature."""


class Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A phrase, and whether it must stand alone.

    ``whole_words`` (the default) rejects a hit that goes on into a longer word. Languages written without spaces
    between words, and fragments of markup, opt out.
    """

    text: _Text
    whole_words: bool = True


class PatternSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Signatures of one threat, with the action and confidence of a match."""

    name: _Name
    action: Action
    confidence: Unit
    signatures: Annotated[tuple[Signature, ...], msgspec.Meta(min_length=1)]


class Library(msgspec.Struct, frozen=True, eq=False):
    """Pattern sets in library order. Equal content means an equal ``fingerprint``, by which libraries compare."""

    sets: tuple[PatternSet, ...]
    fingerprint: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Library) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def signatures(self) -> Iterator[tuple[PatternSet, Signature]]:
        """Yield every signature with its set, in library order."""
        return ((pattern, signature) for pattern in self.sets for signature in pattern.signatures)


def make_library(sets: tuple[PatternSet, ...]) -> Library:
    """Return the library of these sets.

    Raises:
        InvalidLibrary: two sets share a name, or a signature is listed twice in its set or has no visible character.
    """
    names: set[str] = set()
    for pattern in sets:
        if pattern.name in names:
            raise InvalidLibrary(f"two pattern sets are named {pattern.name!r}: merge them or rename one")
        names.add(pattern.name)
        texts: set[str] = set()
        for signature in pattern.signatures:
            if not squeeze(signature.text):
                raise InvalidLibrary(
                    f"{pattern.name}: signature {signature.text!r} has no visible character: remove it"
                )
            if signature.text in texts:
                raise InvalidLibrary(f"{pattern.name}: signature {signature.text!r} is listed twice: remove one")
            texts.add(signature.text)
    return Library(sets, content_hash(sets))


def parse_library(data: bytes, source: str) -> Library:
    """Read a library from JSON: a list of pattern sets.

    Raises:
        InvalidLibrary: it is not such a list, or ``make_library`` refuses it; the message starts with ``source``.
    """
    try:
        return make_library(msgspec.json.decode(data, type=tuple[PatternSet, ...]))
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidLibrary) as wrong:
        raise InvalidLibrary(f"{source}: {wrong}") from wrong


@cache
def library_of(profile: Profile) -> Library:
    """Return the library of a profile that ships with the package."""
    source = files("actors.reflex").joinpath("profiles", f"{profile}.json")
    return parse_library(source.read_bytes(), source.name)
