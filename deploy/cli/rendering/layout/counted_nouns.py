"""Counts with their noun, lists of numbers, and durations. Pure."""

from collections.abc import Iterable


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 exchange``, ``2,000 exchanges``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def number_list(values: Iterable[float]) -> str:
    """Return numbers with a space between them, ``none`` where there are none."""
    return " ".join(f"{value:g}" for value in values) or "none"


def duration_text(seconds: int) -> str:
    """Return a duration by its largest unit and the one below: ``10 minutes 34 seconds``, ``2 hours``."""
    found = []
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count, seconds = divmod(seconds, size)
        found.append((count, unit))
    largest = next((index for index, (count, _) in enumerate(found) if count), len(found) - 1)
    return " ".join(counted(count, unit) for count, unit in found[largest : largest + 2] if count) or "0 seconds"
