"""What a guard did not read of an input: the work for one input is bounded, and what is left out is recorded.

Every guard that bounds its work lists in its verdict what it left out: how much, of what, in which part of the input,
and which bound was reached. ``share`` says how much that weighs, by the guard's own judgement: 0 is nothing, 1 is as if
nothing had been read. The coherence gate raises its entropy by the largest share, and rejects an input from a
configured share on. So an attack cannot be hidden behind text that uses up a bound.
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


def saturating_share(amount: int, half: int) -> float:
    """Return a share that is 0 for nothing, one half at ``half``, and comes near 1 for much more."""
    return round(amount / (amount + half), DECIMALS) if amount > 0 else 0.0


def layers_left_out(count: int) -> tuple[Unread, ...]:
    """Return the entry for layers that are not read at all: with such layers, the input counts as unread."""
    return (Unread(layer="", what="layers", amount=count, why="most_layers", share=1.0),) if count else ()


def largest_share(unread: tuple[Unread, ...]) -> float:
    """Return the heaviest share, 0 where everything was looked at."""
    return max((each.share for each in unread), default=0.0)
