"""Waiting for an answer for no longer than somebody may give it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

LOOK_S = 0.25
"""Seconds between two looks whether somebody still may answer."""


class Unserved(Exception):
    """Nobody runs who would answer; the message says who that is, and why it does not run."""


def served() -> str:
    """Take it that somebody answers: what a caller says who cannot know."""
    return ""


async def answered(answer: Awaitable[T], unserved: Callable[[], str]) -> T:
    """Wait for an answer; ``unserved`` says who would give it and does not run, empty while somebody may.

    Raises:
        Unserved: it is certain that nobody answers now.
    """
    waiting = asyncio.ensure_future(answer)
    try:
        while True:
            done, _ = await asyncio.wait((waiting,), timeout=LOOK_S)
            if done:
                return waiting.result()
            if lacking := unserved():
                raise Unserved(lacking)
    finally:
        waiting.cancel()
