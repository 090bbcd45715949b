"""Counts with their noun, and lists of numbers. Pure."""

from collections.abc import Iterable


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 exchange``, ``2,000 exchanges``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def number_list(values: Iterable[float]) -> str:
    """Return numbers with a space between them, ``none`` where there are none."""
    return " ".join(f"{value:g}" for value in values) or "none"
