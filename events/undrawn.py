"""Importing libraries without what draws, which some of them load where it is installed, and use for that alone."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_DRAWING = ("rich", "pygments")


@contextmanager
def undrawn() -> Iterator[None]:
    """Have imports find no library that draws for the length of the block, but those that are loaded already."""
    hidden = [name for name in _DRAWING if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: to Python, what cannot be imported
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
