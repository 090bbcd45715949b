"""How reviews of an agent's prompts change its memories: each ranks higher or lower in recalls. Pure.

The seats of reviews on a memory are averaged, the newest counting one half. The average moves the memory's log-weight,
within [-1, 1]. For ranking, a memory's energy is multiplied by the exponential of the log-weight. Whether a memory is
recalled at all depends on its energy alone: no seat recalls an irrelevant memory, or hides a relevant one.

Weight and average fade over the agent's exchanges: an old review says little about today's prompts, and a memory with a
bad review must not stay at the end for ever.

The turn, gist and episode of an exchange are one memory at three ages, and share one weight. A weight is dropped with
its memory. If there are too many weights, those without a seat for the longest time are dropped.
"""

from collections.abc import Iterable

import msgspec

from actors.memory.agent_memory import AgentMemory, Weight
from actors.memory.layers.thoughts import DRIFT
from actors.memory.settings import MemorySettings
from actors.memory.terms import DECIMALS

_MOST = 1.0
_NEWEST = 0.5
_EXCHANGES = frozenset(("turn", "gist", "episode"))
_FACTORIALS = 20
"""Terms of the exponential's series; for arguments up to 1 the remainder is below the last bit."""


def with_weight(mind: AgentMemory, entity: str, value: float, settings: MemorySettings) -> AgentMemory:
    """Return the memory after a seat on one of its entries; unchanged if there is no such entry."""
    key = _key_of(entity)
    if not _living(mind, [key]):
        return mind
    known, average, log = mind.weights.get(key), value, 0.0
    if known is not None:
        left = _left(known, mind, settings)
        before, log = known.average * left, known.log * left
        average = before + _NEWEST * (value - before)
    log = min(_MOST, max(-_MOST, log + average))
    weight = Weight(round(average, DECIMALS), round(log, DECIMALS), mind.seats + 1, mind.exchanges)
    weights = mind.weights.set(key, weight)
    while len(weights) > settings.weights:
        weights = weights.delete(min(weights, key=lambda each: weights[each].seat))
    return msgspec.structs.replace(mind, weights=weights, seats=mind.seats + 1)


def without_stale_weights(mind: AgentMemory) -> AgentMemory:
    """Return the memory without the weights of entries that no longer exist."""
    kept = _living(mind, mind.weights)
    weights = mind.weights
    for key in mind.weights:
        if key not in kept:
            weights = weights.delete(key)
    return msgspec.structs.replace(mind, weights=weights)


def weight_of(mind: AgentMemory, entity: str, settings: MemorySettings) -> float | None:
    """Return the rest of the log-weight of an entry, named as in recollections; None where it has none."""
    weight = mind.weights.get(_key_of(entity))
    return None if weight is None else round(weight.log * _left(weight, mind, settings), DECIMALS)


def weighted_energy(energy: float, mind: AgentMemory, layer: str, number: int, settings: MemorySettings) -> float:
    """Return an entry's energy with its weight applied, in [0, 1]; ``layer`` is the prefix of its id."""
    weight = mind.weights.get(_key(layer, number)) if mind.weights else None
    if weight is None:
        return energy
    return min(1.0, round(energy * _exponential(weight.log * _left(weight, mind, settings)), DECIMALS))


def _left(weight: Weight, mind: AgentMemory, settings: MemorySettings) -> float:
    """Return the share of a weight that has not faded."""
    most = settings.weight_fade_exchanges
    return max(0, most - max(0, mind.exchanges - weight.exchange)) / most


def _living(mind: AgentMemory, keys: Iterable[str]) -> frozenset[str]:
    """Return the keys that belong to existing entries."""
    asked = frozenset(keys)
    found = {key for key in asked if key.startswith("exchange:") and int(key[9:]) in mind.episodes.kept}
    for tellings in mind.facts.values():
        found.update(f"fact:{each.number}" for each in tellings)
    found.update(f"concept:{each.number}" for each in mind.concepts.values())
    found.update(f"{DRIFT}:{each.number}" for each in mind.thoughts)
    return asked.intersection(found)


def _key_of(entity: str) -> str:
    """Return the key of an entry's weight; empty for a name that is not an entry's."""
    layer, _, number = entity.partition(":")
    return _key(layer, int(number)) if number.isascii() and number.isdecimal() else ""


def _key(layer: str, number: int) -> str:
    return f"exchange:{number}" if layer in _EXCHANGES else f"{layer}:{number}"


def _exponential(argument: float) -> float:
    # Written out, so that it gives the same bits on every machine; the standard library does not guarantee that.
    result = 1.0
    for term in range(_FACTORIALS, 0, -1):
        result = 1.0 + result * argument / term
    return result
