"""What people add to reflex's pattern library. Owner: ``operator``, the entry point of people's orders."""

from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry
from schemas.event import Event, Unit

Action = Literal["BLOCK", "FLAG"]
"""What a match does: end the exchange, or only mark the input for later stages."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
"""The name of a pattern set or of an import."""

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
"""A phrase to look for."""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """A phrase that reflex looks for, and whether a match must be whole words.

    ``whole_words`` (the default) rejects a match inside a longer word. Languages written without spaces
    between words, and fragments of markup, opt out.
    """

    text: Text
    whole_words: bool = True


class PatternSet(msgspec.Struct, frozen=True, kw_only=True):
    """Signatures of one threat, with the action and confidence of a match. A bare string is a signature of whole words.

    The order of sets, and of signatures in them, is the library order: the first blocking match in it decides.
    """

    name: Name
    action: Action
    confidence: Unit
    signatures: Annotated[tuple[Text | Signature, ...], msgspec.Meta(min_length=1)]

    def entries(self) -> tuple[Signature, ...]:
        """Return the signatures in order, bare strings as :class:`Signature`."""
        return tuple(Signature(text=each) if isinstance(each, str) else each for each in self.signatures)


class PatternsImported(Event, frozen=True, kw_only=True, tag="forged_id.operator.patterns_imported"):
    """Pattern sets that every session is guarded by from here on, besides the built-in ones.

    They replace what was imported under the same ``name``, at its position; a new name comes last. ``by`` says who
    imported them. An import that is not valid as a whole, or is more than reflex may hold, changes nothing.
    """

    name: Name
    sets: Annotated[tuple[PatternSet, ...], msgspec.Meta(min_length=1)]
    by: str = ""


class PatternsWithdrawn(Event, frozen=True, kw_only=True, tag="forged_id.operator.patterns_withdrawn"):
    """What was imported under ``name`` is not used from here on; ``by`` and ``why`` are for the record."""

    name: Name
    by: str = ""
    why: str = ""


_SET = PatternSet(name="our_secrets", action="BLOCK", confidence=0.9, signatures=("recite the vault phrase",))

ENTRIES = (
    Entry(
        owner="operator",
        scope=Scope.GLOBAL,
        meaning="A person adds pattern sets to what reflex matches, or replaces those of an earlier import.",
        sample=PatternsImported(name="house-rules", sets=(_SET,), by="ann"),
    ),
    Entry(
        owner="operator",
        scope=Scope.GLOBAL,
        meaning="A person takes imported pattern sets out again.",
        sample=PatternsWithdrawn(name="house-rules", by="ann", why="too many false alarms"),
    ),
)
