"""Checks the size of an input against the limits of the entry point through which it comes."""

from collections.abc import Iterator, Sequence

from schemas.intake.limits import InputLimits
from schemas.vocabulary.gateway import Layer

SETTINGS = "gateway.limits"
"""The section of the settings that has the limits."""

_REMEDY = "send less, or raise it"


def wrong_with_size(text: str, layers: Sequence[Layer], limits: InputLimits) -> str:
    """Return what is too large: which layer, its size, the limit and its setting; empty where nothing is.

    Raises:
        UnicodeEncodeError: a text holds a lone surrogate.
    """
    return next(_complaints(text, layers, limits), "")


def _complaints(text: str, layers: Sequence[Layer], limits: InputLimits) -> Iterator[str]:
    if len(layers) > limits.layers:
        yield f"the input has {len(layers):,} layers: {_limit('layers', limits.layers)}; join some of them"
    total = len(text.encode())
    if total > limits.text_bytes:
        yield f"the text has {total:,} bytes: {_limit('text_bytes', limits.text_bytes)}; {_REMEDY}"
    for number, layer in enumerate(layers):
        size = len(layer.content.encode())
        if size > limits.layer_bytes:
            which = f"layer {number} ({layer.role})"
            yield f"{which} has {size:,} bytes: {_limit('layer_bytes', limits.layer_bytes)}; {_REMEDY}"
        total += size
    if total > limits.input_bytes:
        yield f"text and layers have {total:,} bytes: {_limit('input_bytes', limits.input_bytes)}; {_REMEDY}"


def _limit(name: str, most: int) -> str:
    return f"at most {most:,} ({SETTINGS}.{name})"
