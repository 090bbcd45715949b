"""Finds the swap of one entity of a prompt for another that would have raised the prompt's score most. Pure.

Many swaps are scored at once, in arrays: each only changes the sums from which the prompt's own score is computed
(``score``). Arithmetic and rounding are the same, so a swap's score equals the score of the prompt with that swap made.
"""

import msgspec
import numpy as np
import numpy.typing as npt

from actors.self_review.score import Grade, TickNumbers, context_sums, geometric_mean
from actors.self_review.similarity import MICRO

_CHUNK = 1 << 14
"""Number of swaps that are scored at once, to bound the memory used."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Swap(msgspec.Struct, frozen=True):
    """The entity to remove from the prompt, the entity to put in its place, and the gain in score, in millionths."""

    out: str
    into: str
    gain: int


def best_swap(numbers: TickNumbers, before: Grade, budget: int) -> Swap | None:
    """Return the swap within the budget that raises the score most, of equals the first; None if none raises it.

    ``budget`` is in tokens; 0 means no limit.
    """
    outs, ins = _swaps(numbers, budget)
    best, found = 0.0, None
    for start in range(0, len(outs), _CHUNK):
        some_outs, some_ins = outs[start : start + _CHUNK], ins[start : start + _CHUNK]
        parts = _parts(numbers, some_outs, some_ins)
        products = parts[0].astype(np.float64)
        for part in parts[1:]:
            products = products * part
        index = int(products.argmax())
        if products[index] > best:
            best = float(products[index])
            score = geometric_mean(tuple(int(part[index]) for part in parts))
            out, into = numbers.entities[some_outs[index]], numbers.entities[some_ins[index]]
            found = Swap(out.id, into.id, score - before.score)
    return found if found is not None and found.gain > 0 else None


def _swaps(numbers: TickNumbers, budget: int) -> tuple[Ints, Ints]:
    """Return, for each swap, the indices of the entity that is removed and of the one that is added."""
    chosen, candidates = numbers.chosen, len(numbers.entities) - numbers.chosen
    outs = np.repeat(np.arange(chosen, dtype=np.int64), candidates)
    ins = np.tile(np.arange(chosen, chosen + candidates, dtype=np.int64), chosen)
    if not budget:
        return outs, ins
    tokens = np.array(numbers.tokens, np.int64)
    within = tokens[:chosen].sum() - tokens[outs] + tokens[ins] <= budget
    return outs[within], ins[within]


def _parts(numbers: TickNumbers, outs: Ints, ins: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the five parts of the score of each swapped prompt; redundancy as 1 - redundancy."""
    members = np.tile(np.arange(numbers.chosen, dtype=np.int64), (len(outs), 1))
    members[np.arange(len(outs)), outs] = ins
    return (
        (_context_cosines(numbers, outs, ins) + _shared_terms(numbers, outs, ins)) // 2,
        _energy_consistency(numbers, members),
        np.full(len(outs), MICRO - numbers.redundancy, np.int64),
        _diversity(numbers, outs, ins),
        _rounded(np.array(numbers.priors, np.int64)[members].sum(axis=1) / numbers.chosen),
    )


def _context_cosines(numbers: TickNumbers, outs: Ints, ins: Ints) -> Ints:
    """Return the cosines of stimulus and context; a swap changes the context by the difference of the two entities."""
    context_square, context_products, with_stimulus = context_sums(numbers)
    cosine, stimulus = np.array(numbers.all_cosines, np.int64), len(numbers.entities)
    products = np.array(context_products, np.int64)
    swapped_with_stimulus = with_stimulus - cosine[outs, stimulus] + cosine[ins, stimulus]
    difference_square = cosine[outs, outs] + cosine[ins, ins] - 2 * cosine[outs, ins]
    squares = context_square + 2 * (products[ins] - products[outs]) + difference_square
    known = squares > numbers.chosen * numbers.chosen
    found = np.maximum(swapped_with_stimulus, 0) / np.sqrt(np.where(known, squares, 1).astype(np.float64)) * 1_000.0
    return np.where(known, np.minimum(_rounded(found), MICRO), 0)


def _shared_terms(numbers: TickNumbers, outs: Ints, ins: Ints) -> Ints:
    """Return the Jaccard similarities of the stimulus's terms and the context's.

    Removing an entity removes the terms that no other entity has, even those that a given context names.
    """
    # A set of terms is kept as an integer with a bit for each term, since thousands of swaps are compared by thousands
    # of terms.
    of_entities = [each.compared_terms for each in numbers.entities]
    bit = {term: 1 << index for index, term in enumerate(sorted(numbers.stimulus.union(numbers.terms, *of_entities)))}
    entity_bits = [sum(bit[term] for term in each) for each in of_entities]
    stimulus, terms = (sum(bit[term] for term in each) for each in (numbers.stimulus, numbers.terms))
    only_there = [_only_in(entity_bits[: numbers.chosen], index) for index in range(numbers.chosen)]
    added = [each & ~terms for each in entity_bits]
    added_common, added_count = [(stimulus & each).bit_count() for each in added], [each.bit_count() for each in added]
    common_before, all_terms = (stimulus & terms).bit_count(), stimulus.bit_count() + terms.bit_count()
    found = []
    for out, into in zip(outs.tolist(), ins.tolist(), strict=True):
        removed = only_there[out] & ~entity_bits[into]
        common = common_before - (stimulus & removed).bit_count() + added_common[into]
        union = all_terms - removed.bit_count() + added_count[into] - common
        found.append(common / union if union else 1.0)
    return _rounded(np.array(found, np.float64) * MICRO)


def _only_in(sets: list[int], index: int) -> int:
    """Return the members of the set at ``index`` that are in no other set; sets are integers with a bit a member."""
    others = 0
    for row, each in enumerate(sets):
        if row != index:
            others |= each
    return sets[index] & ~others


def _energy_consistency(numbers: TickNumbers, members: Ints) -> Ints:
    energies = _not_all_zero(np.array(numbers.energies, np.int64)[members])
    tokens = _not_all_zero(np.array(numbers.tokens, np.int64)[members])
    all_energy, all_tokens = energies.sum(axis=1), tokens.sum(axis=1)
    difference = np.abs(energies * all_tokens[:, None] - tokens * all_energy[:, None]).sum(axis=1)
    return MICRO - _rounded(difference / all_energy / all_tokens / numbers.chosen * MICRO)


def _not_all_zero(amounts: Ints) -> Ints:
    amounts[amounts.sum(axis=1) == 0] = 1
    return amounts


def _diversity(numbers: TickNumbers, outs: Ints, ins: Ints) -> Ints:
    count = numbers.chosen
    pairs = count * (count - 1) // 2
    if not pairs:
        return np.full(len(outs), MICRO, np.int64)
    cosines = np.maximum(np.array(numbers.entity_cosines, np.int64), 0)
    self_products = cosines.diagonal()
    products = cosines[:count].sum(axis=0)
    total = (int(products[:count].sum()) - int(self_products[:count].sum())) // 2
    totals = total - products[outs] + self_products[outs] + products[ins] - cosines[outs, ins]
    return MICRO - _rounded(totals / pairs)


def _rounded(values: Floats) -> Ints:
    return np.rint(values).astype(np.int64)
