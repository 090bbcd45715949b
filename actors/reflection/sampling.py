"""Draws the past routing decisions to review: a stratified sample, with the id of the deciding message as seed. Pure.

The strata are decisions of low confidence, of high confidence, and those that a tie-break decided. A decision with a
tie-break belongs to the third, whatever its confidence: nearly all of these have low confidence, and would fill the
first.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import get_args

import msgspec
from numpy.random import Philox

from actors.reflection.settings import ReflectionSettings
from schemas.vocabulary.reflection import Stratum
from schemas.vocabulary.router import ModeSelected

STRATA: tuple[Stratum, ...] = get_args(Stratum)
"""All strata; between equal claims to a place in a batch the earlier one comes first."""

NO_SHORTFALLS: Mapping[Stratum, float] = MappingProxyType({})
"""No stratum has had too few or too many decisions."""


class Case(msgspec.Struct, frozen=True):
    """A past decision: its numbers and signals, without any text of a person (no topic, no keys of facts).

    ``at_ns`` is when it was made (Unix nanoseconds). ``satisfied``: the person was satisfied with the answer.
    """

    exchange: str
    selected: ModeSelected
    at_ns: int
    satisfied: bool = False


def case_of(exchange: str, selected: ModeSelected, at_ns: int) -> Case:
    """Return a decision as it is kept; its weights are left out, since the model is not asked about them."""
    signals = msgspec.structs.replace(selected.signals, fact_keys=())
    kept = msgspec.structs.replace(selected, conversation_topic="", weights={}, signals=signals)
    return Case(exchange, kept, at_ns)


def stratum_of(selected: ModeSelected, settings: ReflectionSettings) -> Stratum | None:
    """Return the stratum of a decision; None: its confidence is in between, or no scores were computed for it."""
    if len(selected.scores) < 2:
        return None
    if selected.tiebreaker_candidates:
        return "tie_break"
    if selected.router_confidence < settings.low_below:
        return "low_confidence"
    return "high_confidence" if selected.router_confidence > settings.high_above else None


Shortfalls = tuple[tuple[Stratum, float], ...]
"""How many decisions too few each stratum has had so far (below 0: too many).

A batch holds whole decisions, so it seldom has exactly the shares that the settings ask for. What a stratum missed in
one batch is made up for in the next.
"""

_MOST_SHORTFALL = 1.0
"""Most decisions that a later batch makes up for."""


def places_by_stratum(
    available: Mapping[Stratum, int], settings: ReflectionSettings, shortfalls: Mapping[Stratum, float] = NO_SHORTFALLS
) -> dict[Stratum, int]:
    """Return how many decisions of each stratum a batch holds, no more than there are.

    Whole places are given first, then places for the largest remainders; of equal ones in the order of ``Stratum``. A
    batch of 5 at shares of .5, .2 and .3 is 3, 1 and 1. That is half a place too many for the first, and too few for
    the last; so the next batch is 2, 1 and 2, and over many batches the shares hold. Places that a stratum cannot fill
    go to the others, one at a time in that order.
    """
    due = _due_places(shortfalls, settings)
    quota = {stratum: int(due[stratum]) for stratum in STRATA}
    by_remainder = sorted(STRATA, key=lambda stratum: quota[stratum] - due[stratum])
    for stratum in by_remainder[: max(0, settings.batch - sum(quota.values()))]:
        quota[stratum] += 1
    given, remaining = dict.fromkeys(STRATA, 0), settings.batch
    for stratum in STRATA:
        given[stratum] = min(quota[stratum], available[stratum], remaining)
        remaining -= given[stratum]
    while remaining > 0:
        open_strata = [stratum for stratum in STRATA if given[stratum] < available[stratum]]
        if not open_strata:
            break
        for stratum in open_strata[:remaining]:
            given[stratum] += 1
        remaining = settings.batch - sum(given.values())
    return given


def shortfalls_after(
    shortfalls: Mapping[Stratum, float], given: Sequence[Stratum], settings: ReflectionSettings
) -> Shortfalls:
    """Return how many decisions too few each stratum has had after a batch, at most one.

    What is missing because there were no such decisions is not made up for. A stratum's share is counted of the places
    that the batch really had, which may not have been full.
    """
    filled = len(given) / settings.batch
    found = {
        stratum: round(shortfalls.get(stratum, 0.0) + share * filled - given.count(stratum), 6)
        for stratum, share in _exact_places(settings).items()
    }
    return tuple((stratum, min(_MOST_SHORTFALL, max(-_MOST_SHORTFALL, found[stratum]))) for stratum in STRATA)


def _due_places(shortfalls: Mapping[Stratum, float], settings: ReflectionSettings) -> dict[Stratum, float]:
    """Return each stratum's due in a full batch, in places (not whole); together they never exceed the batch."""
    due = {
        stratum: max(0.0, share + shortfalls.get(stratum, 0.0)) for stratum, share in _exact_places(settings).items()
    }
    divisor = max(1.0, sum(due.values()) / settings.batch)
    return {stratum: round(each / divisor, 6) for stratum, each in due.items()}


def _exact_places(settings: ReflectionSettings) -> dict[Stratum, float]:
    # Rounded, since 5 * (1 - .5 - .2) is slightly less than 1.5 in floats, and would lose a tie that is exact.
    return {
        "low_confidence": round(settings.batch * settings.low_share, 6),
        "high_confidence": round(settings.batch * settings.high_share, 6),
        "tie_break": round(settings.batch * (1.0 - settings.low_share - settings.high_share), 6),
    }


def draw_sample(
    cases: Sequence[Case],
    message_id: str,
    settings: ReflectionSettings,
    shortfalls: Mapping[Stratum, float] = NO_SHORTFALLS,
) -> tuple[tuple[Stratum, Case], ...]:
    """Return a batch of cases with their strata, drawn without replacement; the same message gives the same batch."""
    by_stratum: dict[Stratum, list[Case]] = {stratum: [] for stratum in STRATA}
    for case in cases:
        stratum = stratum_of(case.selected, settings)
        if stratum is not None:
            by_stratum[stratum].append(case)
    given = places_by_stratum({stratum: len(found) for stratum, found in by_stratum.items()}, settings, shortfalls)
    # Sort by raw random words: numpy guarantees the generator's bit stream, but not how it shuffles.
    draws = Philox(key=int.from_bytes(sha256(message_id.encode()).digest()[:16], "little"))
    drawn: list[tuple[Stratum, Case]] = []
    for stratum, found in by_stratum.items():
        random_keys = draws.random_raw(len(found)).tolist() if found else []
        order = sorted(range(len(found)), key=random_keys.__getitem__)
        drawn += ((stratum, found[index]) for index in sorted(order[: given[stratum]]))
    return tuple(drawn)
