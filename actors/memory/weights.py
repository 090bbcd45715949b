"""How reviews of an agent's prompts let its memories rank higher or lower in recalls. Pure.

Self-review gives a memory *seats*: verdicts on its part in a prompt. They are averaged, the newest counting one half.
The average is added to the memory's log-weight, within [-1, 1]. For ranking, a memory's energy (how strongly it is
recalled, from 0 to 1) is multiplied by the exponential of the log-weight. Whether a memory is recalled at all depends
on its energy alone: no seat recalls an irrelevant memory, or hides a relevant one.

Weight and average fade over the agent's exchanges: an old review says little about present prompts, and a memory with a
bad review must not stay last for ever.

The turn, gist (summary in one line) and episode (what is remembered for long) of an exchange are one memory at three
ages, and share one weight. A weight is dropped with its memory. If there are too many weights, those without a seat for
the longest time are dropped.
"""

from collections.abc import Iterable

import msgspec

from actors.memory.agent_memory import AgentMemory, Weight
from actors.memory.layers.thoughts import DRIFT
from actors.memory.settings import MemorySettings
from actors.memory.terms import DECIMALS

_LARGEST_LOG = 1.0
"""The logarithm of a weight lies between this and its negative."""

_NEWEST = 0.5
"""Share of the newest seat in the average."""

EXCHANGE_LAYERS = frozenset(("turn", "gist", "episode"))
"""Layers whose memories are exchanges."""

_SERIES_TERMS = 20
"""Number of terms of the exponential's series; for arguments up to 1 the remainder is below the last bit."""


def with_weight(memory: AgentMemory, entity: str, value: float, settings: MemorySettings) -> AgentMemory:
    """Return the memory after a seat on one of its entries; unchanged if there is no such entry."""
    key = _key_of(entity)
    if not _existing(memory, [key]):
        return memory
    known, average, log = memory.weights.get(key), value, 0.0
    if known is not None:
        remaining = _remaining_share(known, memory, settings)
        before, log = known.average * remaining, known.log * remaining
        average = before + _NEWEST * (value - before)
    log = min(_LARGEST_LOG, max(-_LARGEST_LOG, log + average))
    weight = Weight(round(average, DECIMALS), round(log, DECIMALS), memory.seats + 1, memory.exchanges)
    weights = memory.weights.set(key, weight)
    while len(weights) > settings.weights:
        weights = weights.delete(min(weights, key=lambda each: weights[each].seat))
    return msgspec.structs.replace(memory, weights=weights, seats=memory.seats + 1)


def without_stale_weights(memory: AgentMemory) -> AgentMemory:
    """Return the memory without the weights of entries that no longer exist."""
    kept = _existing(memory, memory.weights)
    weights = memory.weights
    for key in memory.weights:
        if key not in kept:
            weights = weights.delete(key)
    return msgspec.structs.replace(memory, weights=weights)


def weight_of(memory: AgentMemory, entity: str, settings: MemorySettings) -> float | None:
    """Return what is left of the log-weight of an entry, named as in recollections; None if it has none."""
    weight = memory.weights.get(_key_of(entity))
    return None if weight is None else round(weight.log * _remaining_share(weight, memory, settings), DECIMALS)


def has_weight(memory: AgentMemory, layer: str, number: int) -> bool:
    """Whether a review gave an entry a weight; ``layer`` is the prefix of its id."""
    return bool(memory.weights) and _key(layer, number) in memory.weights


def weighted_energy(energy: float, memory: AgentMemory, layer: str, number: int, settings: MemorySettings) -> float:
    """Return an entry's energy with its weight applied, in [0, 1]; ``layer`` is the prefix of its id."""
    weight = memory.weights.get(_key(layer, number)) if memory.weights else None
    if weight is None:
        return energy
    return min(1.0, round(energy * _exponential(weight.log * _remaining_share(weight, memory, settings)), DECIMALS))


def _remaining_share(weight: Weight, memory: AgentMemory, settings: MemorySettings) -> float:
    """Return the share of a weight that has not faded."""
    most = settings.weight_fade_exchanges
    return max(0, most - max(0, memory.exchanges - weight.exchange)) / most


def _existing(memory: AgentMemory, keys: Iterable[str]) -> frozenset[str]:
    """Return the keys that belong to existing entries."""
    asked = frozenset(keys)
    found = {key for key in asked if key.startswith("exchange:") and int(key[9:]) in memory.episodes.kept}
    for statements in memory.facts.values():
        found.update(f"fact:{each.number}" for each in statements)
    found.update(f"concept:{each.number}" for each in memory.concepts.values())
    found.update(f"{DRIFT}:{each.number}" for each in memory.thoughts)
    return asked.intersection(found)


def _key_of(entity: str) -> str:
    """Return the key of an entry's weight; empty for a name that is not an entry's."""
    layer, _, number = entity.partition(":")
    return _key(layer, int(number)) if number.isascii() and number.isdecimal() else ""


def _key(layer: str, number: int) -> str:
    return f"exchange:{number}" if layer in EXCHANGE_LAYERS else f"{layer}:{number}"


def _exponential(argument: float) -> float:
    # Written out, so that it gives the same bits on every machine; the standard library does not guarantee that.
    result = 1.0
    for term in range(_SERIES_TERMS, 0, -1):
        result = 1.0 + result * argument / term
    return result
