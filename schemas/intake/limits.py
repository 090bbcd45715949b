"""How large an input and each of its layers may be. Entry points refuse larger ones, so all later work is bounded."""

from typing import Annotated

import msgspec

MOST_BYTES = 1024 * 1024
"""Bytes of text above which no input fits into a message of the log, whatever the limits say."""

MOST_LAYERS = 1_024
"""Layers of an input that are read at most: a verdict on more might not fit into an event.

No entry point accepts more, whatever its limits say. A publisher may write to the log without one. Then further
layers are left out as soon as the event is read, and counted (``InputReceived.left_out``); the guards refuse the input.
"""

Bytes = Annotated[int, msgspec.Meta(ge=1, le=MOST_BYTES)]
"""A limit of size, in bytes of UTF-8."""


class InputLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What an input may have at most; sizes are bytes of UTF-8.

    Attributes:
        text_bytes: What the user said.
        layer_bytes: Each layer.
        layers: Number of layers.
        input_bytes: Text and layers together.
    """

    text_bytes: Bytes = 262_144
    layer_bytes: Bytes = 393_216
    layers: Annotated[int, msgspec.Meta(ge=0, le=MOST_LAYERS)] = 256
    input_bytes: Bytes = 393_216
