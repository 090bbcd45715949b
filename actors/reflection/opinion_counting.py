"""Checks whether a second opinion counts, and concludes from all opinions within a window of time. Pure.

An opinion is a model's, on how a message was routed. An *insight* is an opinion with the answer whether it counts. A
*dimension* is a way in which a decision can be ambiguous; a *stratum* is a group of decisions that is sampled alone; a
*pressure* is a fault of the routing that the regulator may correct.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from actors.reflection.causality_check import CAUSES
from actors.reflection.opinion_call import LONGEST_RATIONALE, Opinion
from actors.reflection.sampling import Case
from actors.reflection.settings import ReflectionSettings
from schemas.vocabulary.reflection import (
    DIMENSIONS,
    Dimension,
    Ignored,
    Insight,
    ReflectionConcluded,
    Span,
    Stratum,
    foremost,
)

SPANS = 28
"""Number of parts of the window that are reported apart, to tell opinions before and after a change of weights."""

_NS_PER_MS = 1_000_000


class CountedInsight(msgspec.Struct, frozen=True):
    """An insight that counts; ``at_ns`` is the time of the decision that it is about (Unix nanoseconds)."""

    exchange: str
    at_ns: int
    agrees: bool
    dimension: Dimension


def insight_of(stratum: Stratum, case: Case, opinion: Opinion, settings: ReflectionSettings) -> Insight:
    """Return an opinion as an insight, which says whether it counts."""
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
        decided_ns=case.at_ns,
    )


def ignored_because(case: Case, opinion: Opinion, settings: ReflectionSettings) -> Ignored:
    """Return the first safeguard by which an opinion does not count; empty: it counts.

    An opinion that agrees claims no fault, so only its confidence is checked.
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
    earlier: Sequence[CountedInsight], insights: Iterable[Insight], now_ns: int, settings: ReflectionSettings
) -> tuple[CountedInsight, ...]:
    """Return the insights on decisions within the window that ends now, the latest ``insights_kept`` of them."""
    found = [
        *earlier,
        *(
            CountedInsight(each.exchange, each.decided_ns, each.agrees, each.dimension)
            for each in insights
            if each.counts
        ),
    ]
    since_ns = now_ns - settings.window_ms * _NS_PER_MS
    return tuple(each for each in found if each.at_ns > since_ns)[-settings.insights_kept :]


def conclude(
    counted: Sequence[CountedInsight],
    insights: tuple[Insight, ...],
    settings: ReflectionSettings,
    *,
    wake_after_ms: int,
    reason: str = "",
) -> ReflectionConcluded:
    """Return the conclusion from the insights of a window, of which ``insights`` are new; shares to 6 decimals.

    ``wake_after_ms`` is the time to the next review (0: none is scheduled), ``reason`` why there are no new insights.
    """
    differing: Counter[Dimension] = Counter(each.dimension for each in counted if not each.agrees)
    disagreeing = differing.total()
    disagreement = round(disagreeing / len(counted), 6) if counted else 0.0
    dominant = foremost(differing)
    return ReflectionConcluded(
        insights=insights,
        counted=len(counted),
        disagreement=disagreement,
        dominant=dominant if disagreeing else None,
        dominant_share=round(differing[dominant] / disagreeing, 6) if disagreeing else 0.0,
        pressure=len(counted) >= settings.insights_needed and disagreement > settings.disagreement_above,
        wake_after_ms=wake_after_ms,
        reason=reason,
        spans=spans_of(counted, settings),
    )


def spans_of(counted: Iterable[CountedInsight], settings: ReflectionSettings) -> tuple[Span, ...]:
    """Return the insights by the part of the window that their decisions fall into; empty parts are left out."""
    width_ns = max(1, settings.window_ms * _NS_PER_MS // SPANS)
    by_start: dict[int, list[CountedInsight]] = {}
    for each in counted:
        by_start.setdefault(each.at_ns // width_ns * width_ns, []).append(each)
    return tuple(_span(start_ns, found) for start_ns, found in sorted(by_start.items()))


def _span(start_ns: int, insights: Sequence[CountedInsight]) -> Span:
    differing = Counter(each.dimension for each in insights if not each.agrees)
    in_order = {dimension: differing[dimension] for dimension in DIMENSIONS if dimension in differing}
    return Span(start_ns=start_ns, counted=len(insights), disagree=in_order)
