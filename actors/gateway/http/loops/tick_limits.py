"""Limits on the size of a tick, since self-review processes it between other decisions. Pure.

The vocabulary (``schemas.vocabulary.loops``) limits how many things a tick names, and how many terms and numbers the
parts of the prompt in it have together. This module limits the length of each text on arrival. The largest tick within
these limits takes self-review about 20 ms.
"""

from collections.abc import Iterable

from actors.gateway.external_events import InvalidField, check_name
from schemas.effectors.model_calls import MOST_TOKENS
from schemas.vocabulary.loops import TickObserved, entities_fault

MOST_MODES = 64
"""Most modes that a tick names: attitudes such as guardian or explorer (``actors.self_review.modes``)."""

MODE_PREFIX = "mode_"
"""A mode's name may begin with this, which has no meaning."""

LONGEST_NAME = 200
"""Most characters of a name: of a mode, of a memory, or of a part of the agent's identity."""

LONGEST_TERM = 100
"""Most characters of a term: a significant word of what the agent read or of a part of its prompt."""

LONGEST_LINE = 2_000
"""Most characters of a line of identity or thought."""


def check_tick(tick: TickObserved) -> None:
    """Raise InvalidField, which names the field, for a tick that exceeds a limit."""
    if len(tick.modes) > MOST_MODES:
        raise InvalidField("modes", f"modes: {len(tick.modes)} of them, at most {MOST_MODES}")
    named: dict[str, str] = {}
    for name in tick.modes:
        if (other := named.setdefault(name.removeprefix(MODE_PREFIX), name)) != name:
            raise InvalidField("modes", f"modes: {other} and {name} are one mode: keep one of them", "key_twice")
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
    _check_tokens("token_budget", tick.token_budget)
    parts = [(field, part) for field in ("chosen", "candidates") for part in getattr(tick, field)]
    for field, part in parts:
        check_name(f"{field}.id", part.id, most=LONGEST_NAME)
        _check_lengths(f"{field}.terms", part.terms, LONGEST_TERM)
        _check_tokens(f"{field}.tokens", part.tokens)
    if over := entities_fault(tick):
        raise InvalidField("candidates", over)


def _check_tokens(field: str, tokens: int) -> None:
    if tokens > MOST_TOKENS:
        raise InvalidField(field, f"{field} is {str(tokens)[:20]}...: at most {MOST_TOKENS:,}")


def _check_lengths(field: str, texts: Iterable[str], most: int) -> None:
    longest = max(map(len, texts), default=0)
    if longest > most:
        raise InvalidField(field, f"{field}: one has {longest} characters, at most {most}")
