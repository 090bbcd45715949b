"""The best swap of one entity for another: the score that the prompt would have had. Pure; no model is asked.

All swaps are scored at once. Each changes the sums from which the prompt's own score is computed (``score``).
Arithmetic and rounding are the same, so a swap's score equals the score of the prompt with that swap made.
"""

import msgspec
import numpy as np
import numpy.typing as npt

from actors.self_review.score import Grade, Scene, context_sums, geometric_mean
from actors.self_review.similarity import MICRO

_AT_ONCE = 1 << 14
"""Largest number of swaps that are scored at once."""

Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Swap(msgspec.Struct, frozen=True):
    """An entity of the prompt, the entity to put in its place, and the gain in score, in millionths."""

    out: str
    into: str
    gain: int


def best_swap(scene: Scene, before: Grade, budget: int) -> Swap | None:
    """Return the swap within the budget that raises the score most, of equals the first; None if none raises it.

    ``budget`` is in tokens, 0 for none.
    """
    outs, ins = _swaps(scene, budget)
    best, found = 0.0, None
    for start in range(0, len(outs), _AT_ONCE):
        some_outs, some_ins = outs[start : start + _AT_ONCE], ins[start : start + _AT_ONCE]
        parts = _parts(scene, some_outs, some_ins)
        products = parts[0].astype(np.float64)
        for part in parts[1:]:
            products = products * part
        place = int(products.argmax())
        if products[place] > best:
            best = float(products[place])
            score = geometric_mean(tuple(int(part[place]) for part in parts))
            out, into = scene.entities[some_outs[place]], scene.entities[some_ins[place]]
            found = Swap(out.id, into.id, score - before.score)
    return found if found is not None and found.gain > 0 else None


def _swaps(scene: Scene, budget: int) -> tuple[Whole, Whole]:
    """Return, for each swap, the places of the entity that is removed and of the one that is added."""
    chosen, candidates = scene.chosen, len(scene.entities) - scene.chosen
    outs = np.repeat(np.arange(chosen, dtype=np.int64), candidates)
    ins = np.tile(np.arange(chosen, chosen + candidates, dtype=np.int64), chosen)
    if not budget:
        return outs, ins
    tokens = np.array(scene.tokens, np.int64)
    within = tokens[:chosen].sum() - tokens[outs] + tokens[ins] <= budget
    return outs[within], ins[within]


def _parts(scene: Scene, outs: Whole, ins: Whole) -> tuple[Whole, Whole, Whole, Whole, Whole]:
    """Return the five parts of the score of each swapped prompt; redundancy as 1 - redundancy."""
    members = np.tile(np.arange(scene.chosen, dtype=np.int64), (len(outs), 1))
    members[np.arange(len(outs)), outs] = ins
    return (
        (_context_cosines(scene, outs, ins) + _shared_terms(scene, outs, ins)) // 2,
        _energy_consistency(scene, members),
        np.full(len(outs), MICRO - scene.redundancy, np.int64),
        _diversity(scene, outs, ins),
        _rounded(np.array(scene.priors, np.int64)[members].sum(axis=1) / scene.chosen),
    )


def _context_cosines(scene: Scene, outs: Whole, ins: Whole) -> Whole:
    """Return the cosines of stimulus and context; a swap changes the context by the difference of the two entities."""
    square, products, reach = context_sums(scene)
    cosine, along, stimulus = np.array(scene.bearing, np.int64), np.array(products, np.int64), len(scene.entities)
    reaches = reach - cosine[outs, stimulus] + cosine[ins, stimulus]
    own = cosine[outs, outs] + cosine[ins, ins] - 2 * cosine[outs, ins]
    squares = square + 2 * (along[ins] - along[outs]) + own
    known = squares > scene.chosen * scene.chosen
    found = np.maximum(reaches, 0) / np.sqrt(np.where(known, squares, 1).astype(np.float64)) * 1_000.0
    return np.where(known, np.minimum(_rounded(found), MICRO), 0)


def _shared_terms(scene: Scene, outs: Whole, ins: Whole) -> Whole:
    """Return the Jaccard similarities of the stimulus's terms and the context's.

    Removing an entity removes the terms that no other entity has, even those that a given context names.
    """
    # A set of terms is an integer with a bit for each term: thousands of swaps are compared by thousands of terms.
    bit = {term: 1 << place for place, term in enumerate(sorted(scene.stimulus.union(scene.terms, *_tellings(scene))))}
    telling = [sum(bit[term] for term in each) for each in _tellings(scene)]
    stimulus, terms = (sum(bit[term] for term in each) for each in (scene.stimulus, scene.terms))
    only = [_alone(telling[: scene.chosen], place) for place in range(scene.chosen)]
    new = [each & ~terms for each in telling]
    met, fresh = [(stimulus & each).bit_count() for each in new], [each.bit_count() for each in new]
    before, all_terms = (stimulus & terms).bit_count(), stimulus.bit_count() + terms.bit_count()
    found = []
    for out, into in zip(outs.tolist(), ins.tolist(), strict=True):
        gone = only[out] & ~telling[into]
        both = before - (stimulus & gone).bit_count() + met[into]
        either = all_terms - gone.bit_count() + fresh[into] - both
        found.append(both / either if either else 1.0)
    return _rounded(np.array(found, np.float64) * MICRO)


def _tellings(scene: Scene) -> list[frozenset[str]]:
    return [each.telling for each in scene.entities]


def _alone(sets: list[int], place: int) -> int:
    """Return the members of the set at ``place`` that are in no other set."""
    others = 0
    for row, each in enumerate(sets):
        if row != place:
            others |= each
    return sets[place] & ~others


def _energy_consistency(scene: Scene, members: Whole) -> Whole:
    energies = _shared_out(np.array(scene.energies, np.int64)[members])
    tokens = _shared_out(np.array(scene.tokens, np.int64)[members])
    all_energy, all_tokens = energies.sum(axis=1), tokens.sum(axis=1)
    apart = np.abs(energies * all_tokens[:, None] - tokens * all_energy[:, None]).sum(axis=1)
    return MICRO - _rounded(apart / all_energy / all_tokens / scene.chosen * MICRO)


def _shared_out(amounts: Whole) -> Whole:
    amounts[amounts.sum(axis=1) == 0] = 1
    return amounts


def _diversity(scene: Scene, outs: Whole, ins: Whole) -> Whole:
    count = scene.chosen
    pairs = count * (count - 1) // 2
    if not pairs:
        return np.full(len(outs), MICRO, np.int64)
    alike = np.maximum(np.array(scene.alike, np.int64), 0)
    own = alike.diagonal()
    along = alike[:count].sum(axis=0)
    total = (int(along[:count].sum()) - int(own[:count].sum())) // 2
    return MICRO - _rounded((total - along[outs] + own[outs] + along[ins] - alike[outs, ins]) / pairs)


def _rounded(values: Floats) -> Whole:
    return np.rint(values).astype(np.int64)
