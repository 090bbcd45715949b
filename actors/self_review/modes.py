"""The modes of an agent (guardian, explorer, ...): which ones conflict, and which signals each of them stresses. Pure.

A mode is an attitude, with an activation from 0 to 1; several can be active at once. Signals are the numbers by which
self-review finds a tick (an exchange, or a step of an external engine) worth a review.

How opposed two modes are is learned from the decisions made while each is active: the total variation distance (half
the sum of the differences) of their shares. The learned value is mixed with an assumed one; both weigh the same once
``opposition_doubt`` decisions were made under the rarer of the two modes. A decision is how an exchange ended: the mode
of the router that was first chosen, or the action if it was not executed. External ticks carry no decisions.
"""

from collections.abc import Iterable, Mapping
from heapq import nsmallest

from actors.self_review.settings import SelfReviewSettings
from schemas.persistent import Map
from schemas.vocabulary.self_review import Signal

GUARDIAN, EXPLORER, VALIDATOR, TRANSLATOR, ARCHITECT = "guardian", "explorer", "validator", "translator", "architect"
"""The modes of exchanges: there is danger; something is new; an answer was rejected; a question is asked back; things
are looked up. An external engine may report others."""

ASSUMED: Mapping[frozenset[str], float] = {
    frozenset((GUARDIAN, EXPLORER)): 0.8,
    frozenset((TRANSLATOR, VALIDATOR)): 0.1,
}
"""How opposed two modes are assumed to be, from 0 to 1, before anything is learned."""

ASSUMED_OTHERWISE = 0.3
"""How opposed all other pairs are assumed to be."""

_STRESSED_BY: Mapping[str, frozenset[Signal]] = {
    GUARDIAN: frozenset(("affect", "mode_conflict")),
    EXPLORER: frozenset(("novel_uncertain",)),
    VALIDATOR: frozenset(("regret",)),
}
"""Mode -> the signals that weigh more while it is active."""

_MOST_MODES = 32
"""Most modes that are considered, the most active first."""

Decisions = Map[str, Map[str, int]]
"""Mode -> decision -> how often it was made while the mode was active."""


def activations_of(modes: Mapping[str, float]) -> dict[str, float]:
    """Return the modes with an activation above 0, the most active first; a prefix ``mode_`` of a name is removed."""
    above_0 = {name.removeprefix("mode_"): activation for name, activation in modes.items() if activation > 0.0}
    return dict(nsmallest(_MOST_MODES, above_0.items(), key=lambda each: (-each[1], each[0])))


def conflict(modes: Mapping[str, float], decisions: Decisions, settings: SelfReviewSettings) -> float:
    """Return the sum over ordered pairs of modes of the product of both activations and their opposition."""
    total, names = 0.0, sorted(modes)
    for index, one in enumerate(names):
        for other in names[:index]:
            total += modes[one] * modes[other] * opposition(one, other, decisions, settings)
    return round(2.0 * total, 6)


def opposition(one: str, other: str, decisions: Decisions, settings: SelfReviewSettings) -> float:
    """Return how opposed two modes are, in [0, 1]: the assumed and the learned value, weighted by the counts."""
    assumed = ASSUMED.get(frozenset((one, other)), ASSUMED_OTHERWISE)
    under_one, under_other = decisions.get(one), decisions.get(other)
    if under_one is None or under_other is None:
        return assumed
    counts = sum(under_one.values()), sum(under_other.values())
    difference = 0
    for decision in sorted({*under_one, *under_other}):
        difference += abs(under_one.get(decision, 0) * counts[1] - under_other.get(decision, 0) * counts[0])
    divergence = difference / (2 * counts[0] * counts[1])
    seen, doubt = min(counts), settings.opposition_doubt
    return round((doubt * assumed + seen * divergence) / (doubt + seen), 6)


def with_decision(decisions: Decisions, active: Iterable[str], decision: str) -> Decisions:
    """Return the counts with one more decision, made while these modes were active."""
    for mode in active:
        counts: Map[str, int] = decisions.get(mode, Map())
        decisions = decisions.set(mode, counts.set(decision, counts.get(decision, 0) + 1))
    return decisions


def active_modes(modes: Mapping[str, float], settings: SelfReviewSettings) -> tuple[str, ...]:
    """Return the names, sorted, of the active modes: those with an activation of ``active_from`` or more."""
    return tuple(sorted(name for name, activation in modes.items() if activation >= settings.active_from))


def weight_of(signal: Signal, active: Iterable[str], settings: SelfReviewSettings) -> float:
    """Return a signal's weight by the active modes, used to order the reasons of a review."""
    stressed = any(signal in _STRESSED_BY.get(mode, ()) for mode in active)
    return settings.mode_weight if stressed else 1.0
