"""Pairs and groups of word classes that mean more together than apart, as features of a trained classifier of attacks.

Examples: an order to insert code into "your solution", or a note to a model with a format to answer in. A sum of
weights cannot distinguish "this word and that word" from two occurrences of one. A conjunction can, in any order and
with any words between.
"""

import numpy as np
import numpy.typing as npt

from actors.contract.text.judge.lexicon import lexicon

Positions = npt.NDArray[np.int64]

CONJUNCTIONS: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = (
    ("code_insert", (("code_insert", 12), ("your_answer", 14))),
    ("code_insert", (("code_insert", 12), ("code_danger", 60))),
    ("to_model", (("format", 16),)),
    ("to_model", (("override", 16),)),
    ("to_model", (("reveal", 16),)),
    ("to_model", (("secret", 16),)),
    ("to_model", (("exfiltrate", 16),)),
    ("to_model", (("tool_call", 16),)),
    ("to_model", (("your_answer", 16),)),
    ("to_model", (("model", 16),)),
    ("to_model", (("modal", 10),)),
    ("model", (("tool_call", 20),)),
    ("model", (("exfiltrate", 12),)),
    ("your_answer", (("format", 12),)),
    ("override", (("prior", 6), ("instruction", 8))),
    ("override", (("instruction", 5),)),
    ("override", (("all", 4), ("prior", 8))),
    ("now_on", (("override", 16),)),
    ("praise", (("now_on", 16),)),
    ("reveal", (("secret", 6),)),
    ("format", (("secret", 10),)),
    ("you_are", (("unbound", 12),)),
    ("you_are", (("now_on", 4), ("unbound", 20))),
    ("persona", (("unbound", 20),)),
    ("model", (("unbound", 12),)),
    ("not", (("refusal", 6),)),
    ("harm", (("format", 30),)),
    ("harm", (("persona", 60),)),
    ("role_reversal", ()),
    ("role_reversal", (("model", 24),)),
    ("system_tag", (("you_are", 12),)),
)
"""(class, ((other class, most tokens away), ...)): all of the others must be near one occurrence of the first.

The classes are those of ``lexicon.json``, which lists the words of each.
An entry with a single class is for a class of which one phrase is enough.
"""


def conjunction_names() -> tuple[str, ...]:
    """Return the names of the conjunctions, in order."""
    return tuple("&".join((first, *(other for other, _ in others))) for first, others in CONJUNCTIONS)


def conjunctions_at(kinds: Positions) -> tuple[Positions, Positions]:
    """Return the conjunctions in a text: the index of each in ``CONJUNCTIONS``, and the position of its first class.

    ``kinds`` holds the class of each token.
    """
    # Ordered by class, and within a class by its own order.
    order = np.argsort(kinds, kind="stable")
    classes = lexicon().classes
    bounds = np.searchsorted(kinds[order], np.arange(len(classes) + 1)).tolist()
    positions = {
        name: order[begin:end] for name, begin, end in zip(classes, bounds[:-1], bounds[1:], strict=True) if begin < end
    }
    found = [_positions(positions, first, others) for first, others in CONJUNCTIONS]
    numbers = np.repeat(np.arange(len(found)), [len(each) for each in found])
    return numbers, np.concatenate(found)


def _positions(positions: dict[str, Positions], first: str, others: tuple[tuple[str, int], ...]) -> Positions:
    if first not in positions or not all(other in positions for other, _ in others):
        return np.zeros(0, dtype=np.int64)
    found = positions[first]
    for other, span in others:
        found = found[_near(found, positions[other], span)]
    return found


def _near(ours: Positions, theirs: Positions, span: int) -> npt.NDArray[np.bool_]:
    """Return which of our positions have one of theirs, other than itself, at most ``span`` away; both ascend."""
    within = np.searchsorted(theirs, ours + span, side="right") - np.searchsorted(theirs, ours - span, side="left")
    itself = np.searchsorted(theirs, ours, side="right") - np.searchsorted(theirs, ours, side="left")
    near: npt.NDArray[np.bool_] = within > itself
    return near
