"""What a sense did not look at: the work that one input may cost is bounded, and whatever that leaves out is said.

Every sense that bounds its work lists it in its verdict: how much, of what, in which part of the input, and which bound
was met. ``share`` is how heavily that weighs, and it is the sense's own judgement: 0 is nothing, 1 is as good as not
looked at. The coherence gate raises its entropy by the heaviest share, and rejects an input from a stated one on; so a
flood that uses up a bound hides nothing that is then let through.
"""

from typing import Literal

import msgspec

from schemas.event import Unit

DECIMALS = 6

What = Literal["base64", "hex", "percent", "disguised", "overlaps", "comparisons", "characters", "telling", "layers"]
"""What may go unlooked at.

Encoded runs, and rarer disguises; places where signatures overlap; passages that are to be compared with precedents,
and characters that are to be read for it; what stands around telling words, for the scorer; and whole layers, of an
input with too many.
"""

Bound = Literal["decoding", "candidates", "work", "most_read", "scored_characters", "most_layers"]
"""Bounds that may be met: reflex's work on decoding and its candidates; intuition's three; and what nobody reads."""


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """One bound that was met in one part of an input.

    Attributes:
        layer: ``text``, or the role and place of a layer such as ``document[1]``; empty: over the whole input.
        what: What was not looked at.
        amount: How much of it: comparisons, layers, and characters of anything else.
        why: The bound that was met.
        share: How heavily it weighs.
    """

    layer: str
    what: What
    amount: int
    why: Bound
    share: Unit


def weighed(amount: int, half: int) -> float:
    """Return a share that is 0 for nothing, one half at ``half``, and comes near 1 for much more."""
    return round(amount / (amount + half), DECIMALS) if amount > 0 else 0.0


def layers_left_out(count: int) -> tuple[Unread, ...]:
    """Return what a guard says of layers that nobody looks at: with them, the input is as good as unread."""
    return (Unread(layer="", what="layers", amount=count, why="most_layers", share=1.0),) if count else ()


def heaviest(unread: tuple[Unread, ...]) -> float:
    """Return the heaviest share, 0 where everything was looked at."""
    return max((each.share for each in unread), default=0.0)
