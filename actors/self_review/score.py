"""The score of a prompt, from features alone. Pure, in whole millionths.

==================  ===============================================================================================
part                its value for a set of entities
==================  ===============================================================================================
relevance           half the cosine of stimulus and context plus half the Jaccard similarity of their terms
energy consistency  1 - the mean difference of an entity's share of the energy and its share of the tokens
redundancy          how much identity and thought (see below) have in common; 1 - redundancy enters the score
diversity           1 - the mean similarity of two entities
outcome prior       the mean of the worth that earlier reviews gave the entities
==================  ===============================================================================================

Identity and thought are texts of an external engine, compared by lines. Of an exchange here they are the agent's soul
(the text that says who it is) and the answer, compared by words.

An *entity* is a memory that the prompt was made of; its *energy* is how strongly it was recalled. The score is the
geometric mean, so that a high part cannot make up for a low one. The context is the mean of the entities' vectors,
scaled to the same length, or what an external engine gives. Whole numbers are used since sums of floats may differ from
machine to machine.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import msgspec
import numpy as np

from actors.self_review.similarity import MICRO, Ints, cosines, embedding_vectors, term_vectors
from actors.self_review.tick import Entity, Tick

_PARTS = 5
"""Number of parts of a score."""


class Grade(msgspec.Struct, frozen=True):
    """The parts of a score and the score itself, in millionths."""

    relevance: int
    energy_consistency: int
    redundancy: int
    diversity: int
    outcome_prior: int
    score: int


class TickNumbers(msgspec.Struct, frozen=True):
    """A tick in numbers: those of the chosen entities (``chosen`` is how many) first, then those of the candidates.

    ``entity_cosines`` are the cosines of entities with each other; ``all_cosines`` those of entities, stimulus and
    given context, in this order. A prior is an entity's worth by earlier reviews. ``context_sums`` are the context's
    dot products: with itself, with each row of ``all_cosines``, and with the stimulus. Priors, energies and cosines are
    in millionths. ``terms`` are the context's: those of the chosen entities, and those that a given context names.
    """

    entities: tuple[Entity, ...]
    chosen: int
    energies: list[int]
    tokens: list[int]
    priors: list[int]
    entity_cosines: Ints
    all_cosines: Ints
    context_sums: tuple[int, Ints, int]
    stimulus: frozenset[str]
    terms: frozenset[str]
    redundancy: int


def tick_numbers_of(tick: Tick, priors: Mapping[str, float], start: float) -> TickNumbers:
    """Return a tick in numbers, given the entities' worth so far; ``start`` is the worth of those not listed."""
    entities = (*tick.chosen, *tick.candidates)
    all_cosines, entity_cosines = _cosines_of(tick, entities)
    return TickNumbers(
        entities=entities,
        chosen=len(tick.chosen),
        energies=[round(each.energy * MICRO) for each in entities],
        tokens=[each.tokens for each in entities],
        priors=[round(priors.get(each.id, start) * MICRO) for each in entities],
        entity_cosines=entity_cosines,
        all_cosines=all_cosines,
        context_sums=_context_sums(all_cosines, len(entities), len(tick.chosen)),
        stimulus=tick.stimulus_compared,
        terms=tick.context_terms.union(*(each.compared_terms for each in tick.chosen)),
        redundancy=round(tick.redundancy * MICRO),
    )


def grade_of(numbers: TickNumbers) -> Grade:
    """Return the score of the chosen entities and its parts; there must be at least one entity."""
    count = numbers.chosen
    relevance = (_context_cosine(numbers) + _shared_terms(numbers)) // 2
    consistency = _energy_consistency(numbers.energies[:count], numbers.tokens[:count])
    diversity = _diversity(numbers)
    prior = round(sum(numbers.priors[:count]) / count)
    score = geometric_mean((relevance, consistency, MICRO - numbers.redundancy, diversity, prior))
    return Grade(relevance, consistency, numbers.redundancy, diversity, prior, score)


def geometric_mean(parts: tuple[int, ...]) -> int:
    """Return the geometric mean of five parts in millionths, rounded to the nearest millionth, exactly."""
    product = 1
    for part in parts:
        product *= part
    # The power of floats may differ from machine to machine. It is a first guess, corrected by integer arithmetic.
    root: int = round(float(product) ** (1 / _PARTS))
    while _power(root) > product:
        root -= 1
    while _power(root + 1) <= product:
        root += 1
    return root + 1 if _power(2 * root + 1) <= _power(2) * product else root


def _context_sums(cosine: Ints, entities: int, chosen: int) -> tuple[int, Ints, int]:
    """Return the dot products of the context with itself, with each row of ``all_cosines``, and with the stimulus.

    The context is the sum of its entities here, not their mean; so a given context is multiplied by their number.
    """
    stimulus, given = entities, entities + 1
    if cosine[given, given]:
        products = chosen * cosine[given]
        return chosen * chosen * MICRO, products, int(products[stimulus])
    products = cosine[:chosen].sum(axis=0)
    return int(products[:chosen].sum()), products, int(products[stimulus])


def _context_cosine(numbers: TickNumbers) -> int:
    square, _, with_stimulus = numbers.context_sums
    # A context whose length is zero, or some millionths by rounding, has no direction, so no cosine.
    if square <= numbers.chosen * numbers.chosen or with_stimulus <= 0:
        return 0
    # Millionths divided by the root of millionths are thousandths.
    return min(MICRO, round(with_stimulus / sqrt(square) * 1_000.0))


def _shared_terms(numbers: TickNumbers) -> int:
    union = len(numbers.stimulus | numbers.terms)
    return round(len(numbers.stimulus & numbers.terms) / union * MICRO) if union else MICRO


def _energy_consistency(energies: Sequence[int], tokens: Sequence[int]) -> int:
    count = len(energies)
    energies, tokens = _not_all_zero(energies), _not_all_zero(tokens)
    all_energy, all_tokens = sum(energies), sum(tokens)
    difference = sum(
        abs(energy * all_tokens - each * all_energy) for energy, each in zip(energies, tokens, strict=True)
    )
    return MICRO - round(difference / all_energy / all_tokens / count * MICRO)


def _not_all_zero(amounts: Sequence[int]) -> Sequence[int]:
    """Return the amounts; if all are 0, equal ones."""
    return amounts if any(amounts) else [1] * len(amounts)


def _diversity(numbers: TickNumbers) -> int:
    count = numbers.chosen
    pairs = count * (count - 1) // 2
    cosines = np.maximum(numbers.entity_cosines[:count, :count], 0)
    return MICRO - round((int(cosines.sum()) - int(cosines.trace())) // 2 / pairs) if pairs else MICRO


def _power(number: int) -> int:
    return number * number * number * number * number


def _cosines_of(tick: Tick, entities: tuple[Entity, ...]) -> tuple[Ints, Ints]:
    """Return ``all_cosines`` and ``entity_cosines``: by embeddings if there are any, else by terms."""
    has_embeddings = any(each.centroid for each in entities)
    centroids, terms = [each.centroid for each in entities], [each.terms for each in entities]
    if tick.stimulus_embedding:
        all_cosines = cosines(embedding_vectors([*centroids, tick.stimulus_embedding, tick.context_embedding]))
        return all_cosines, all_cosines if has_embeddings else cosines(term_vectors(terms))
    all_cosines = cosines(term_vectors([*terms, tick.stimulus_terms, tuple(sorted(tick.context_terms))]))
    return all_cosines, cosines(embedding_vectors(centroids)) if has_embeddings else all_cosines
