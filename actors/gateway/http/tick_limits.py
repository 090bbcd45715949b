"""How much one tick may hold: what self-review makes of it is done between other decisions. Pure.

The vocabulary bounds how many things a tick names; here, at the door, are bounds on how long each is, and on all terms
together. The largest tick within them takes self-review some 20 ms.
"""

from collections.abc import Iterable

from actors.gateway.agent_events import InvalidField, check_name
from schemas.vocabulary.loops import TickObserved

MOST_MODES = 64
LONGEST_NAME = 200
"""Characters of the name of a mode, a memory, a part, or a part of an identity."""

LONGEST_TERM = 100
LONGEST_LINE = 2_000
MOST_TERMS = 5_000
"""Terms of all chosen parts and candidates together."""

MOST_NUMBERS = 100_000
"""Numbers of all their centroids together."""


def check_tick(tick: TickObserved) -> None:
    """Raise InvalidField, which names the field, for a tick that holds more than it may."""
    if len(tick.modes) > MOST_MODES:
        raise InvalidField("modes", f"modes: {len(tick.modes)} of them, at most {MOST_MODES}")
    for field in ("modes", "working_memory", "identity_stable", "identity_current"):
        for name in getattr(tick, field):
            check_name(field, name, most=LONGEST_NAME)
    for field, most in (
        ("stimulus_terms", LONGEST_TERM),
        ("context_terms", LONGEST_TERM),
        ("identity_lines", LONGEST_LINE),
        ("thought_lines", LONGEST_LINE),
    ):
        _check_lengths(field, getattr(tick, field), most)
    parts = [(field, part) for field in ("chosen", "candidates") for part in getattr(tick, field)]
    for field, part in parts:
        check_name(f"{field}.id", part.id, most=LONGEST_NAME)
        _check_lengths(f"{field}.terms", part.terms, LONGEST_TERM)
    _check_all("terms", sum(len(part.terms) for _, part in parts), MOST_TERMS)
    _check_all("centroids", sum(len(part.centroid) for _, part in parts), MOST_NUMBERS)


def _check_lengths(field: str, texts: Iterable[str], most: int) -> None:
    longest = max(map(len, texts), default=0)
    if longest > most:
        raise InvalidField(field, f"{field}: one has {longest} characters, at most {most}")


def _check_all(what: str, count: int, most: int) -> None:
    if count > most:
        raise InvalidField("candidates", f"chosen and candidates have {count} {what} together: at most {most}")
