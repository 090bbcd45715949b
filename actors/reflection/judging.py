"""What a second opinion counts for, by the safeguards, and what the opinions of a window come to. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from actors.reflection.asking import LONGEST_RATIONALE, Opinion
from actors.reflection.causes import CAUSES
from actors.reflection.sampling import Case
from actors.reflection.settings import ReflectionSettings
from schemas.vocabulary.reflection import Dimension, Ignored, Insight, ReflectionConcluded, Stratum

_DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


class Counted(msgspec.Struct, frozen=True):
    """An insight that counts; ``at_ns`` is when it was had (Unix nanoseconds)."""

    exchange: str
    at_ns: int
    agrees: bool
    dimension: Dimension


def insight_of(stratum: Stratum, case: Case, opinion: Opinion, settings: ReflectionSettings) -> Insight:
    """Return an opinion as an insight, and whether it counts."""
    ignored = ignored_because(case, opinion, settings)
    return Insight(
        exchange=case.exchange,
        stratum=stratum,
        selected_mode=case.selected.selected_mode,
        suggested_mode=opinion.mode,
        agrees=opinion.mode == case.selected.selected_mode,
        dimension=opinion.dimension,
        confidence=opinion.confidence,
        counts=not ignored,
        ignored=ignored,
        rationale=opinion.rationale[:LONGEST_RATIONALE],
    )


def ignored_because(case: Case, opinion: Opinion, settings: ReflectionSettings) -> Ignored:
    """Return the first safeguard that keeps an opinion from counting; empty: it counts.

    An opinion that agrees claims no fault: only its confidence is asked for.
    """
    if opinion.mode not in case.selected.scores:
        return "invalid"
    if opinion.confidence <= settings.confidence_above:
        return "low_confidence"
    if opinion.mode == case.selected.selected_mode:
        return ""
    if case.satisfied:
        return "user_satisfied"
    return "" if CAUSES[opinion.dimension](case.selected) else "dimension_without_signal"


def counted_with(
    earlier: Sequence[Counted], insights: Iterable[Insight], now_ns: int, settings: ReflectionSettings
) -> tuple[Counted, ...]:
    """Return the insights that count within the window that ends now, oldest first, the latest ``insights_kept``."""
    found = [
        *earlier,
        *(Counted(each.exchange, now_ns, each.agrees, each.dimension) for each in insights if each.counts),
    ]
    since_ns = now_ns - settings.window_ms * 1_000_000
    return tuple(each for each in found if each.at_ns > since_ns)[-settings.insights_kept :]


def conclude(
    counted: Sequence[Counted],
    insights: tuple[Insight, ...],
    settings: ReflectionSettings,
    *,
    wake_after_ms: int,
    reason: str = "",
) -> ReflectionConcluded:
    """Return what the insights of a window come to, ``insights`` being the new ones; shares to 6 decimals."""
    differing: Counter[Dimension] = Counter(each.dimension for each in counted if not each.agrees)
    disagreeing = differing.total()
    disagreement = round(disagreeing / len(counted), 6) if counted else 0.0
    # Of equally many the first in the order of ``Dimension``.
    foremost = max(_DIMENSIONS, key=lambda dimension: differing[dimension])
    return ReflectionConcluded(
        insights=insights,
        counted=len(counted),
        disagreement=disagreement,
        dominant=foremost if disagreeing else None,
        dominant_share=round(differing[foremost] / disagreeing, 6) if disagreeing else 0.0,
        pressure=len(counted) >= settings.insights_needed and disagreement > settings.disagreement_above,
        wake_after_ms=wake_after_ms,
        reason=reason,
    )
