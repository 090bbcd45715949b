"""What a guard did not read of an input: the work for one input is bounded, and what is left out is recorded.

Every guard that bounds its work lists in its verdict what it left out: how much, of what, in which layer of the input,
and which bound was reached. ``share`` says how much that matters, as the guard judges it: from 0 (not at all) to 1 (as
if nothing had been read). The coherence gate raises the entropy of an input (how badly it fits) by the largest share,
and rejects the input if that share reaches a setting. So an attack cannot be hidden behind text that uses up a bound.
"""

from typing import Literal

import msgspec

from schemas.event import Unit

DECIMALS = 6
"""Decimals that a share is rounded to."""

UnreadKind = Literal[
    "base64", "hex", "percent", "disguised", "overlaps", "comparisons", "characters", "telling", "layers"
]
"""What may be left out.

``base64``, ``hex``, ``percent``: encoded runs. ``disguised``: text hidden in other ways, such as ciphers, escapes and
letters set apart. ``overlaps``: places where signatures (known phrases) overlap. ``comparisons``: passages to compare
with precedents, and ``characters``: text to read for that. ``telling``: text around words that attacks use, for the
scorer (a trained model). ``layers``: whole layers of an input that has too many.
"""

UnreadBound = Literal["decoding", "candidates", "work", "most_read", "scored_characters", "most_layers"]
"""Which bound was reached.

Of reflex, which searches for known phrases: ``decoding`` bounds the work of decoding, ``candidates`` the
hits that are checked. Of intuition, which compares with precedents: ``work`` bounds the cost of the comparisons,
``most_read`` the characters that are read for them, ``scored_characters`` those that the scorer reads. Of every reader:
``most_layers`` bounds the layers of an input.
"""


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """One bound that was reached in one layer of an input.

    Attributes:
        layer: ``text``, or the role and index of a layer such as ``document[1]``; empty: over the whole input.
        what: What was not read.
        amount: How much of it: a number of comparisons, of layers, or else of characters.
        why: The bound that was reached.
        share: How much it matters, from 0 to 1.
    """

    layer: str
    what: UnreadKind
    amount: int
    why: UnreadBound
    share: Unit


def saturating_share(amount: int, half: int) -> float:
    """Return a share that is 0 for an amount of 0, one half at ``half``, and approaches 1 for larger amounts."""
    return round(amount / (amount + half), DECIMALS) if amount > 0 else 0.0


def layers_left_out(count: int) -> tuple[Unread, ...]:
    """Return the entry for layers that nobody reads. Its share is 1: the input counts as not read at all."""
    return (Unread(layer="", what="layers", amount=count, why="most_layers", share=1.0),) if count else ()
