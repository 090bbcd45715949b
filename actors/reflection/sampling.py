"""Which past decisions are looked at again: a stratified sample, drawn by the id of the message that asks for it. Pure.

A decision that was a tie-break is in that stratum, whatever its confidence: nearly every one of them is of low
confidence too, and would take that stratum over.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import get_args

import msgspec
import numpy as np

from actors.reflection.settings import ReflectionSettings
from schemas.vocabulary.reflection import Stratum
from schemas.vocabulary.router import ModeSelected

STRATA: tuple[Stratum, ...] = get_args(Stratum)


class Case(msgspec.Struct, frozen=True):
    """A past decision: its numbers and signals, without anything a person said (no topic, no keys of facts).

    ``at_ns`` is when it was made (Unix nanoseconds). ``satisfied``: the person was content with the answer.
    """

    exchange: str
    selected: ModeSelected
    at_ns: int
    satisfied: bool = False


def case_of(exchange: str, selected: ModeSelected, at_ns: int) -> Case:
    """Return a decision as it is kept; its weights are left out, since no one is asked about them."""
    signals = msgspec.structs.replace(selected.signals, fact_keys=())
    kept = msgspec.structs.replace(selected, conversation_topic="", weights={}, signals=signals)
    return Case(exchange, kept, at_ns)


def stratum_of(selected: ModeSelected, settings: ReflectionSettings) -> Stratum | None:
    """Return why a decision would be looked at; None: it is of middling confidence, or nothing was weighed for it."""
    if len(selected.scores) < 2:
        return None
    if selected.tiebreaker_candidates:
        return "tie_break"
    if selected.router_confidence < settings.low_below:
        return "low_confidence"
    return "high_confidence" if selected.router_confidence > settings.high_above else None


def places(available: Mapping[Stratum, int], settings: ReflectionSettings) -> dict[Stratum, int]:
    """Return how many of each stratum's decisions a batch holds, no more than there are.

    Whole places first, then the largest remainders, equal ones in the order of ``Stratum``: a batch of 5 at shares of
    .5, .2 and .3 is 3, 1 and 1. What a stratum cannot fill goes round the others, one place at a time in that order.
    """
    exact = {
        "low_confidence": settings.batch * settings.low_share,
        "high_confidence": settings.batch * settings.high_share,
        "tie_break": settings.batch * (1.0 - settings.low_share - settings.high_share),
    }
    # Rounded: 5 times (1 - .5 - .2) is a hair less than 1.5, and would lose what is an even match.
    due = {stratum: round(exact[stratum], 6) for stratum in STRATA}
    quota = {stratum: int(due[stratum]) for stratum in STRATA}
    by_remainder = sorted(STRATA, key=lambda stratum: quota[stratum] - due[stratum])
    for stratum in by_remainder[: settings.batch - sum(quota.values())]:
        quota[stratum] += 1
    given = {stratum: min(quota[stratum], available[stratum]) for stratum in STRATA}
    while (left := settings.batch - sum(given.values())) > 0:
        open_strata = [stratum for stratum in STRATA if given[stratum] < available[stratum]]
        if not open_strata:
            break
        for stratum in open_strata[:left]:
            given[stratum] += 1
    return given


def sample(cases: Sequence[Case], message_id: str, settings: ReflectionSettings) -> tuple[tuple[Stratum, Case], ...]:
    """Return a batch of cases with their strata, drawn without replacement; the same message draws the same ones."""
    by_stratum: dict[Stratum, list[Case]] = {stratum: [] for stratum in STRATA}
    for case in cases:
        stratum = stratum_of(case.selected, settings)
        if stratum is not None:
            by_stratum[stratum].append(case)
    given = places({stratum: len(found) for stratum, found in by_stratum.items()}, settings)
    # Raw words of the generator: its bit stream is fixed for good, numpy's ways of shuffling are not.
    draws = np.random.Philox(key=int.from_bytes(sha256(message_id.encode()).digest()[:16], "little"))
    drawn: list[tuple[Stratum, Case]] = []
    for stratum, found in by_stratum.items():
        lots = draws.random_raw(len(found)).tolist() if found else []
        order = sorted(range(len(found)), key=lots.__getitem__)
        drawn += ((stratum, found[place]) for place in sorted(order[: given[stratum]]))
    return tuple(drawn)
