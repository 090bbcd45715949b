"""The event loop of the processes that work on the path of an input: uvloop where it is installed, else asyncio's."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, as ``asyncio.run`` does, on the quickest event loop there is.

    Half of what such a process does for one exchange is reading and writing sockets and waking tasks; uvloop does that
    in C. It has no wheels for Windows.
    """
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
