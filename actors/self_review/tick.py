"""One tick of an agent's mind, whoever saw it: an exchange of ours (``exchange``) or an engine outside. Pure."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from hashlib import blake2b

import msgspec

from actors.self_review.modes import named
from schemas.vocabulary.loops import Part, TickObserved
from schemas.vocabulary.responder import IdentityUse

MOST_TOKENS = 1_000_000
"""Tokens of an entity that are counted at most, so that sums of products stay whole numbers of 64 bits."""


class Entity(msgspec.Struct, frozen=True):
    """What a prompt was, or could have been, put together from.

    ``terms`` stand in for a missing ``centroid``; ``telling`` are those that count when terms are compared.
    """

    id: str
    energy: float
    tokens: int
    terms: tuple[str, ...]
    telling: frozenset[str]
    centroid: tuple[float, ...] = ()


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """What six signals and a score are read from.

    ``memory`` is what came to be in the working memory, by name and weight in [0, 1], None where nothing is known of
    it; ``carry`` of what was in it before stays. ``identity_drift`` is None where it follows from ``identity``, the use
    of the soul in an answer, if any, and the modes. ``chosen`` is empty where
    no prompt was put together, or none that can be judged. ``stimulus_telling`` are the terms that count when terms are
    compared, and ``context_terms`` those of the context besides the chosen entities' own. ``budget`` of 0 tokens is
    none. ``decision`` is what came of it, empty where that is not known.
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
    stimulus_telling: frozenset[str] = frozenset()
    context_terms: frozenset[str] = frozenset()
    stimulus_embedding: tuple[float, ...] = ()
    context_embedding: tuple[float, ...] = ()
    fatigue: float = 0.0
    decision: str = ""


def tick_of(event: TickObserved, fatigue: float) -> Tick:
    """Return the tick that an engine outside saw, given the fatigue that guardrails here found since the last one."""
    chosen = _entities(event.chosen, ())
    stimulus = _folded(event.stimulus_terms)
    return Tick(
        arousal=event.arousal,
        valence=event.valence,
        novelty=event.novelty,
        uncertainty=event.uncertainty,
        modes=named(event.modes),
        memory=dict.fromkeys(event.working_memory, 1.0),
        identity_drift=1.0 - jaccard({*event.identity_stable}, {*event.identity_current}),
        redundancy=copied(event.identity_lines, event.thought_lines),
        chosen=chosen,
        candidates=_entities(event.candidates, chosen),
        budget=event.token_budget,
        stimulus_terms=stimulus,
        stimulus_telling=frozenset(stimulus),
        context_terms=frozenset(_folded(event.context_terms)),
        stimulus_embedding=event.stimulus_embedding,
        context_embedding=event.context_embedding,
        fatigue=max(event.fatigue, fatigue),
    )


def hashed(names: Iterable[str]) -> tuple[int, ...]:
    """Return names as numbers of 63 bits, each once, sorted: to be told apart takes no more of them."""
    digests = (blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names)
    return tuple(sorted({int.from_bytes(digest, "big") >> 1 for digest in digests}))


def jaccard(one: Collection[Hashable], other: Collection[Hashable]) -> float:
    """Return the share of what is in either that is in both; 1 of two empty sets, which do not differ."""
    either = {*one, *other}
    return len({*one}.intersection(other)) / len(either) if either else 1.0


def copied(identity: Iterable[str], thought: Iterable[str]) -> float:
    """Return how much of identity and thought is the same lines; 0 where there are none: nothing is copied then."""
    one, other = {*_folded(identity)}, {*_folded(thought)}
    return jaccard(one, other) if one or other else 0.0


def _entities(parts: Iterable[Part], others: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return the parts, each once, without the others."""
    seen = {each.id for each in others}
    found = []
    for part in parts:
        if part.id not in seen:
            seen.add(part.id)
            terms = _folded(part.terms)
            tokens = min(part.tokens, MOST_TOKENS)
            found.append(Entity(part.id, part.energy, tokens, terms, frozenset(terms), part.centroid))
    return tuple(found)


def _folded(words: Iterable[str]) -> tuple[str, ...]:
    folded = (" ".join(word.casefold().split()) for word in words)
    return tuple(dict.fromkeys(word for word in folded if word))
