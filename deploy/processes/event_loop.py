"""The event loop of a worker and of the gateway: uvloop, where it is installed and the settings allow it.

uvloop does the same work with less processor time (``docs/performance.md``). Nothing depends on which loop runs: the
supervisor (``neuraxis up``), commands and simulations use asyncio's own.
"""

import asyncio
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

T = TypeVar("T")

Choice = Literal["auto", "asyncio"]


def run(main: Coroutine[Any, Any, T], choice: Choice = "auto") -> T:
    """Run a coroutine to its end on a new event loop, as ``asyncio.run`` does."""
    with asyncio.Runner(loop_factory=_factory(choice)) as runner:
        return runner.run(main)


def _factory(choice: Choice) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes an event loop; None: asyncio does."""
    if choice == "asyncio" or find_spec("uvloop") is None:
        return None
    import uvloop

    class OpenLoop(uvloop.Loop):
        """A loop that stays open when its work is done.

        uvloop's ``close`` waits without a deadline until the last handle has ended. Once in some hundred ends one of a
        connection to a broker that does not answer never did. The process ends behind its loop, and frees what is left.
        """

        def close(self) -> None:
            _left_open.append(self)

    return OpenLoop


_left_open: list[asyncio.AbstractEventLoop] = []
"""Loops whose work is done; uvloop reports an error when an open one is freed."""
