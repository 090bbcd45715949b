"""One tick of an agent: an exchange of this system (``exchange_as_tick``), or a tick of an external engine. Pure."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b

import msgspec

from actors.self_review.modes import activations_of
from schemas.vocabulary.loops import ObservedEntity, TickObserved
from schemas.vocabulary.responder import IdentityUse

MOST_TOKENS = 1_000_000
"""Largest number of tokens counted of an entity, so that sums of products fit into 64-bit integers."""

_LONGEST_CACHED = 48
"""Longest name, in characters, whose hash is cached."""


class Entity(msgspec.Struct, frozen=True):
    """A part that a prompt was, or could have been, made of: a memory.

    ``energy`` is how strongly it was recalled, in [0, 1], ``tokens`` its length. ``terms`` are used if ``centroid``
    (its embedding) is missing; ``compared_terms`` count in comparisons of terms.
    """

    id: str
    energy: float
    tokens: int
    terms: tuple[str, ...]
    compared_terms: frozenset[str]
    centroid: tuple[float, ...] = ()


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """What the six signals and the score are computed from.

    The *stimulus* is the text that the prompt answers; its context is what the prompt holds besides. ``arousal``,
    ``novelty`` and ``uncertainty`` are in [0, 1], ``valence`` is in [-1, 1] (unpleasant to pleasant), as appraisal or
    the engine reports them. ``modes`` are the agent's modes with their activations, ``redundancy`` is the share that
    the engine's identity and thought have in common (of lines), or the agent's soul and its answer (of words).
    ``fatigue``, in [0, 1], comes from the deliberations since the last tick: guardrails raise it with each rerun that
    improves nothing.

    ``memory`` is the new content of working memory, by name and weight in [0, 1]; None if it is not known. ``carry`` is
    the share of the earlier content that stays. ``identity_drift`` is None if it has to be computed from ``identity``
    (which parts of the soul, the text that says who the agent is, an answer used) and the modes. ``chosen`` is empty if
    there is no prompt that can be scored. ``stimulus_compared`` are the stimulus's terms that count in comparisons,
    ``context_terms`` those of the context besides the chosen entities' own. A ``budget`` of 0 tokens means no limit.
    ``decision`` is how the exchange ended; empty if that is not known.
    """

    session: str = ""
    arousal: float
    valence: float
    novelty: float
    uncertainty: float
    modes: Mapping[str, float]
    memory: Mapping[str, float] | None
    carry: float = 0.0
    identity_drift: float | None
    identity: IdentityUse | None = None
    redundancy: float
    chosen: tuple[Entity, ...]
    candidates: tuple[Entity, ...]
    budget: int
    stimulus_terms: tuple[str, ...] = ()
    stimulus_compared: frozenset[str] = frozenset()
    context_terms: frozenset[str] = frozenset()
    stimulus_embedding: tuple[float, ...] = ()
    context_embedding: tuple[float, ...] = ()
    fatigue: float = 0.0
    decision: str = ""


def tick_of(event: TickObserved, fatigue: float) -> Tick:
    """Return the tick that an external engine reports, given the fatigue that guardrails found since the last one."""
    chosen = _entities(event.chosen, ())
    stimulus = _folded(event.stimulus_terms)
    return Tick(
        arousal=event.arousal,
        valence=event.valence,
        novelty=event.novelty,
        uncertainty=event.uncertainty,
        modes=activations_of(event.modes),
        memory=dict.fromkeys(event.working_memory, 1.0),
        identity_drift=1.0 - jaccard({*event.identity_stable}, {*event.identity_current}),
        redundancy=copied_share(event.identity_lines, event.thought_lines),
        chosen=chosen,
        candidates=_entities(event.candidates, chosen),
        budget=event.token_budget,
        stimulus_terms=stimulus,
        stimulus_compared=frozenset(stimulus),
        context_terms=frozenset(_folded(event.context_terms)),
        stimulus_embedding=event.stimulus_embedding,
        context_embedding=event.context_embedding,
        fatigue=max(event.fatigue, fatigue),
    )


def hash_names(names: Iterable[str]) -> tuple[int, ...]:
    """Return the 63-bit hashes of names, sorted and without duplicates, so that no name is kept itself."""
    return tuple(sorted(set(map(hash_name, names))))


def hash_name(name: str) -> int:
    """Return the 63-bit hash of a name."""
    # Cached: the same terms occur again and again. Long names are rare and would fill the cache.
    return _cached_hash(name) if len(name) <= _LONGEST_CACHED else _hash(name)


def _hash(name: str) -> int:
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


_cached_hash = lru_cache(maxsize=16384)(_hash)


def jaccard(one: Collection[Hashable], other: Collection[Hashable]) -> float:
    """Return the Jaccard similarity of two sets; 1 for two empty ones."""
    either = {*one, *other}
    return len({*one}.intersection(other)) / len(either) if either else 1.0


def copied_share(identity: Iterable[str], thought: Iterable[str]) -> float:
    """Return the share of lines that identity and thought have in common; 0 if there are no lines."""
    one, other = {*_folded(identity)}, {*_folded(thought)}
    return jaccard(one, other) if one or other else 0.0


def _entities(observed: Iterable[ObservedEntity], others: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return what was observed as entities, without duplicates and without those of ``others``."""
    seen = {other.id for other in others}
    found = []
    for each in observed:
        if each.id not in seen:
            seen.add(each.id)
            terms = _folded(each.terms)
            tokens = min(each.tokens, MOST_TOKENS)
            found.append(Entity(each.id, each.energy, tokens, terms, frozenset(terms), each.centroid))
    return tuple(found)


def _folded(words: Iterable[str]) -> tuple[str, ...]:
    folded = (" ".join(word.casefold().split()) for word in words)
    return tuple(dict.fromkeys(word for word in folded if word))
