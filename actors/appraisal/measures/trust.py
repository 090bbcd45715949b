"""How far a part of a prompt can be trusted: truth, indeterminacy and falsehood, three independent numbers in [0, 1].

Falsehood measures how far a part gives orders to the model itself: it reverses roles, overrides instructions or asks
for them, or hides an order in a document. A part is read in passages and the worst passage decides. So politeness,
other text around it, repetition and length never lower falsehood.

Falsehood is scaled so that the breaker's triggers (beyond them it withholds the input) match the threshold that
training fixed for a false-alarm rate. At and above that threshold falsehood exceeds ``ROLE_CONFUSION``, which trips for
any part; below, it is at most ``SATURATION``, above which long parts trip. So a passage trips in a short part if and
only if it trips in a long one.

Text that should have been read and was not, because the work is bounded, counts against a part: its falsehood is raised
by the share of that text.
"""

from functools import cache

import msgspec

from actors.appraisal.measures.piecewise_linear import interpolated
from actors.contract.text.judge.model import Model, margin
from actors.contract.text.judge.weights import weights_of
from actors.contract.text.judge.worst_passage import read_text, unread_share
from schemas.vocabulary.appraisal import LayerTrust

ROLE_CONFUSION, SATURATION = 0.65, 0.5
"""The breaker's default triggers (``role_confusion_above``, ``saturation_above``): of any part, and of a long one."""
_DECIMALS = 6
_KNOTS = ((-9.0, 0.02), (-5.0, 0.08), (-2.5, 0.2), (0.0, SATURATION), (0.0, 0.66), (3.0, 0.85), (8.0, 0.98))
"""Points (margin, falsehood) of a piecewise linear function, with a step at margin 0, where no trigger trips yet.

The margin is the judge's log-odds that the worst passage is an attack, minus the threshold that training fixed.
"""

_FEW_TOKENS = 8.0
"""Tokens of a text whose ``shortness`` is one half: a short text says little about itself."""

UNREAD_WEIGHT = 0.75
"""Share of the distance to a falsehood of 1 that is added if nothing was read that should have been.

With it, a long part of which two thirds were not read exceeds ``SATURATION`` whatever the rest says, and is stopped.
"""


@cache
def trust_model() -> Model:
    """Return the classifier that judges trust: the one in the package, or the configured one (``judge.weights``)."""
    return weights_of("trust", "actors.appraisal")


def trust_of(layer: str, text: str, unread: int = 0, judge: Model | None = None) -> LayerTrust:
    """Return the trust in one part of a prompt. A blank part is only indeterminate.

    ``layer`` names it. ``unread`` counts further characters of the part that should have been read. ``judge``
    replaces this release's own.
    """
    if not text.strip():
        return LayerTrust(layer=layer, characters=len(text), truth=0.5, indeterminacy=1.0, falsehood=0.0)
    judge = judge or trust_model()
    read = read_text(text)
    found = interpolated(_KNOTS, margin(judge, read))
    unread += read.unread
    share = unread_share(read.shown, unread)
    falsehood = found + (1.0 - found) * UNREAD_WEIGHT * share
    shortness = _FEW_TOKENS / (_FEW_TOKENS + read.tokens)
    return LayerTrust(
        layer=layer,
        characters=len(text),
        truth=round((1.0 - falsehood) * (1.0 - 0.5 * shortness), _DECIMALS),
        indeterminacy=round(max(0.5 * shortness, 1.0 - 2.0 * abs(falsehood - 0.5)), _DECIMALS),
        falsehood=round(falsehood, _DECIMALS),
        unread=unread,
        unread_share=share,
    )


def less_trusted(trust: LayerTrust, unread: int) -> LayerTrust:
    """Return the trust in a part of which ``unread`` further characters should have been read and were not."""
    if not unread:
        return trust
    share = unread_share(max(0, trust.characters - unread), unread)
    kept = 1.0 - UNREAD_WEIGHT * share
    return msgspec.structs.replace(
        trust,
        truth=round(trust.truth * kept, _DECIMALS),
        falsehood=round(1.0 - (1.0 - trust.falsehood) * kept, _DECIMALS),
        unread=trust.unread + unread,
        unread_share=max(trust.unread_share, share),
    )


def trust_in_unread_layers(name: str, layers: int) -> LayerTrust:
    """Return the trust in layers that are not read because there are too many; they may say anything."""
    return LayerTrust(
        layer=name,
        characters=0,
        truth=0.0,
        indeterminacy=round(1.0 - UNREAD_WEIGHT, _DECIMALS),
        falsehood=UNREAD_WEIGHT,
        unread=layers,
        unread_share=1.0,
    )


def full_trust(layer: str, text: str) -> LayerTrust:
    """Return the trust in an operator's own prompt: it may tell the model what to do."""
    return LayerTrust(layer=layer, characters=len(text), truth=1.0, indeterminacy=0.0, falsehood=0.0)
