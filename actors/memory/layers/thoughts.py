"""Thoughts of an idle agent: what associating without any input has found, kept like one-line summaries (gists). Pure.

A thought is about one episode (a remembered exchange) and contains words of no other. So it is removed with the
episode: with its session, with a fact that the episode quotes, or as the oldest. Nothing derived from it is left
either: a thought about a fading concept strengthens the concept only while the thought is kept, and the effect decays
as that of an episode does.
"""

from collections.abc import Mapping

import msgspec

from actors.contract.text.terms import terms_of
from actors.memory.layers.decay import MICRO, decayed
from actors.memory.settings import MemorySettings
from schemas.vocabulary.drift import DriftThought

DRIFT = "drift"
"""The prefix of the ids of thoughts."""

_NS_PER_MS = 1_000_000


class Thought(msgspec.Struct, frozen=True, kw_only=True):
    """A thought with its terms, and the episode and the concept that it is about.

    ``strengthens``: the concept was fading when the thought began with it.
    """

    number: int
    episode: int
    concept: str
    text: str
    terms: tuple[str, ...]
    strengthens: bool
    at_ns: int


def thought_of(number: int, event: DriftThought, at_ns: int) -> Thought | None:
    """Return the thought to keep; None for one that is about no episode."""
    layer, _, episode = event.episode.partition(":")
    if layer != "episode" or not (episode.isascii() and episode.isdecimal()):
        return None
    return Thought(
        number=number,
        episode=int(episode),
        concept=event.concept,
        text=event.text,
        terms=terms_of(event.text),
        strengthens=event.strategy == "decaying",
        at_ns=at_ns,
    )


def with_kept_episodes(thoughts: tuple[Thought, ...], episodes: Mapping[int, object]) -> tuple[Thought, ...]:
    """Return the thoughts whose episodes are kept; the same tuple if all are."""
    kept = tuple(each for each in thoughts if each.episode in episodes)
    return kept if len(kept) < len(thoughts) else thoughts


def not_expired(thoughts: tuple[Thought, ...], now_ns: int, settings: MemorySettings) -> tuple[Thought, ...]:
    """Return the thoughts that can still be recalled."""
    lifetime_ns = settings.thought_lifetime_ms * _NS_PER_MS
    return tuple(each for each in thoughts if now_ns - each.at_ns <= lifetime_ns)


def added_strength(thoughts: tuple[Thought, ...], concept: str, now_ns: int, settings: MemorySettings) -> float:
    """Return the amount that thoughts add to a concept's strength."""
    half_life_ns = settings.half_life_ms * _NS_PER_MS
    added = round(settings.strengthened_by * MICRO)
    remaining = (
        decayed(added, now_ns - each.at_ns, half_life_ns)
        for each in thoughts
        if each.strengthens and each.concept == concept
    )
    return sum(remaining) / MICRO
