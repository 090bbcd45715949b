"""Importing libraries without rich, which some import if it is installed, and use only for drawing."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_DRAWING = ("rich", "pygments")


@contextmanager
def without_rich() -> Iterator[None]:
    """Hide drawing libraries from imports within the block, except those that are loaded already."""
    hidden = [name for name in _DRAWING if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: Python raises ImportError for it
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
