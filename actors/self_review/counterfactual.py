"""Finds the swap of one entity of a prompt for another that would have raised the prompt's score most. Pure.

An *entity* is a memory that the prompt was made of; the *stimulus* is the text that it answers, the context all its
entities. An entity's prior is its worth by earlier reviews, its energy how strongly it was recalled.

Many swaps are scored at once, in arrays with a row for each entity that is removed (``outs``, a slice of the prompt's)
and a column for each that is added: a swap only changes the sums from which the prompt's own score is computed
(``score``). Arithmetic and rounding are the same, so a swap's score equals the score of the prompt with that swap made.
Parts are whole numbers, kept as floats.
"""

import msgspec
import numpy as np

from actors.self_review.score import Grade, TickNumbers, geometric_mean
from actors.self_review.similarity import MICRO, Floats, Ints

_CHUNK = 1 << 14
"""Number of swaps that are scored at once, to bound the memory used; at least all swaps of one removed entity."""


class Swap(msgspec.Struct, frozen=True):
    """The entity to take out of the prompt, the one to put into it instead, and the gain in score, in millionths."""

    out: str
    into: str
    gain: int


def best_swap(numbers: TickNumbers, before: Grade, budget: int) -> Swap | None:
    """Return the swap within the budget that raises the score most, of equals the first; None if none raises it.

    ``budget`` is in tokens; 0 means no limit.
    """
    candidates = len(numbers.entities) - numbers.chosen
    rows = max(1, _CHUNK // max(1, candidates))
    best, found = 0.0, None
    for start in range(0, numbers.chosen if candidates else 0, rows):
        outs = slice(start, min(start + rows, numbers.chosen))
        parts = _parts(numbers, outs)
        products = parts[0] * parts[1] * parts[2] * parts[3] * parts[4]
        if budget:
            products[_tokens_after(numbers, outs) > budget] = 0.0
        row, column = divmod(int(products.argmax()), candidates)
        if products[row, column] > best:
            best = float(products[row, column])
            score = geometric_mean(tuple(int(part[row, column]) for part in parts))
            out, into = numbers.entities[start + row], numbers.entities[numbers.chosen + column]
            found = Swap(out.id, into.id, score - before.score)
    return found if found is not None and found.gain > 0 else None


def _tokens_after(numbers: TickNumbers, outs: slice) -> Ints:
    """Return the prompt's tokens after each swap."""
    tokens = np.array(numbers.tokens, np.int64)
    return _swapped(int(tokens[: numbers.chosen].sum()), tokens, numbers, outs)


def _swapped(total: int, amounts: Ints, numbers: TickNumbers, outs: slice) -> Ints:
    """Return the prompt's total of an amount after each swap."""
    swapped: Ints = (total - amounts[outs, None]) + amounts[numbers.chosen :]
    return swapped


def _parts(numbers: TickNumbers, outs: slice) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the five parts of the score of each swapped prompt; redundancy as 1 - redundancy."""
    priors = np.array(numbers.priors, np.int64)
    relevance = (_context_cosines(numbers, outs) + _shared_terms(numbers, outs)) // 2.0
    return (
        relevance,
        _energy_consistency(numbers, outs),
        np.full_like(relevance, MICRO - numbers.redundancy),
        _diversity(numbers, outs),
        np.rint(_swapped(sum(numbers.priors[: numbers.chosen]), priors, numbers, outs) / numbers.chosen),
    )


def _context_cosines(numbers: TickNumbers, outs: slice) -> Floats:
    """Return the cosines of stimulus and context; a swap changes the context by the difference of the two entities."""
    context_square, context_products, with_stimulus = numbers.context_sums
    count, stimulus, cosine = numbers.chosen, len(numbers.entities), numbers.all_cosines
    self_products, twice = cosine.diagonal(), 2 * context_products
    swapped_with_stimulus = _swapped(with_stimulus, cosine[:stimulus, stimulus], numbers, outs)
    removed, added = (self_products - twice)[outs, None], (self_products + twice)[count:stimulus]
    squares = context_square + removed + added - 2 * cosine[outs, count:stimulus]
    # The length of a context that is zero, or some millionths by rounding, gives no direction, so no cosine.
    known = squares > count * count
    # Products and squares are in millionths, so a square's root is in thousandths.
    found = np.maximum(swapped_with_stimulus, 0) / np.sqrt(np.where(known, squares, 1)) * 1_000.0
    cosines: Floats = np.where(known, np.minimum(np.rint(found), MICRO), 0.0)
    return cosines


def _shared_terms(numbers: TickNumbers, outs: slice) -> Floats:
    """Return the Jaccard similarities of the stimulus's terms and the context's.

    Removing an entity removes the terms that no other entity has, even those that a given context names.
    """
    # A set of terms is kept as an integer with a bit for each term, since thousands of swaps are compared by thousands
    # of terms.
    of_entities = [each.compared_terms for each in numbers.entities]
    bit = {term: 1 << index for index, term in enumerate(numbers.stimulus.union(numbers.terms, *of_entities))}
    entity_bits = [sum([bit[term] for term in each]) for each in of_entities]
    stimulus, terms = (sum([bit[term] for term in each]) for each in (numbers.stimulus, numbers.terms))
    common_before, all_terms = (stimulus & terms).bit_count(), stimulus.bit_count() + terms.bit_count()
    added = []
    for each in entity_bits[numbers.chosen :]:
        new = each & ~terms
        common = common_before + (stimulus & new).bit_count()
        added.append((each, common, all_terms + new.bit_count() - common))
    found = []
    for only_there in _only_in_one(entity_bits[: numbers.chosen])[outs]:
        row = []
        for each, common, union in added:
            removed = only_there & ~each
            if removed:
                shared = (stimulus & removed).bit_count()
                common, union = common - shared, union - removed.bit_count() + shared
            row.append(common / union if union else 1.0)
        found.append(row)
    similarities: Floats = np.rint(np.array(found) * MICRO)
    return similarities


def _only_in_one(sets: list[int]) -> list[int]:
    """Return the members of each set that are in no other set; a set is an integer with one bit for each member."""
    once = several = 0
    for each in sets:
        several |= once & each
        once |= each
    return [each & ~several for each in sets]


def _energy_consistency(numbers: TickNumbers, outs: slice) -> Floats:
    """Return 1 - the mean difference of a member's share of the energy and its share of the tokens."""
    count = numbers.chosen
    members = _members(numbers, outs)
    energies, all_energy = _not_all_zero(np.array(numbers.energies, np.int64)[members])
    tokens, all_tokens = _not_all_zero(np.array(numbers.tokens, np.int64)[members])
    difference = np.abs(energies * all_tokens[..., None] - tokens * all_energy[..., None]).sum(axis=-1)
    consistency: Floats = MICRO - np.rint(difference / all_energy / all_tokens / count * MICRO)
    return consistency


def _members(numbers: TickNumbers, outs: slice) -> Ints:
    """Return the indices of the entities of each swapped prompt, along the last axis."""
    count = numbers.chosen
    removed = np.arange(outs.start, outs.stop)
    members = np.empty((len(removed), len(numbers.entities) - count, count), np.int64)
    members[:] = np.arange(count)
    members[np.arange(len(removed)), :, removed] = np.arange(count, len(numbers.entities))
    return members


def _not_all_zero(amounts: Ints) -> tuple[Ints, Ints]:
    """Return the amounts of each prompt, equal ones where all are 0, and their sums."""
    totals: Ints = amounts.sum(axis=-1)
    if not totals.all():
        amounts[totals == 0] = 1
        totals = amounts.sum(axis=-1)
    return amounts, totals


def _diversity(numbers: TickNumbers, outs: slice) -> Floats:
    """Return 1 - the mean similarity of two members of each swapped prompt."""
    count = numbers.chosen
    pairs = count * (count - 1) // 2
    if not pairs:
        return np.full((outs.stop - outs.start, len(numbers.entities) - count), float(MICRO))
    cosines = np.maximum(numbers.entity_cosines, 0)
    self_products = cosines.diagonal()
    products = cosines[:count].sum(axis=0)
    total = (int(products[:count].sum()) - int(self_products[:count].sum())) // 2
    removed, added = (products - self_products)[outs, None], products[count : len(numbers.entities)]
    totals = total - removed + added - cosines[outs, count : len(numbers.entities)]
    diversity: Floats = MICRO - np.rint(totals / pairs)
    return diversity
