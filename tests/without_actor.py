"""A release that lacks an actor, such as one in which it was removed."""

from collections.abc import Iterator
from contextlib import contextmanager

from actors.registry import ACTORS


@contextmanager
def without_actor(name: str) -> Iterator[None]:
    """Remove an actor from those there are; afterwards they are as before, in their order too."""
    every = dict(ACTORS)
    del ACTORS[name]
    try:
        yield
    finally:
        ACTORS.clear()  # what is put back into a dictionary comes last
        ACTORS.update(every)
