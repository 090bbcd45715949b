"""What is wrong with an agent's routing, how badly, and which weight answers it. Pure.

====================  ==============================================  ==================================
pressure              holds where                                     weight, and its direction
====================  ==============================================  ==================================
``tie_breaker``       ambiguous decisions > .20                       ``tiebreaker_base_margin`` down
``act_under_use``     share of ACT < .02                              ``ACT.base`` up
``respond_over_use``  share of RESPOND > .75                          ``RESPOND.base`` down
``missed_clarify``    misroutes > .10, most of this kind              ``clarify.underspecified`` up
``missed_act``        misroutes > .10, most of this kind              ``act.recall`` up
``under_engagement``  misroutes > .10, most of this kind              ``acknowledge.social`` down
``reflection``        disagreement > .20, sustained, and over .30     by its dimension: ``DIMENSIONS``
                      of it of one dimension
``mode_entropy``      normalised entropy of the modes < .35           the base of the commonest mode down
====================  ==============================================  ==================================

Where decisions were made under a profile that does not read what a text is, ``clarify.cold_boost``,
``act.question_moderate_context`` and ``acknowledge.question_penalty`` (all up) answer the misroutes, as in the source.

Severity is the distance beyond the threshold as a share of the greatest there can be, so that pressures compare.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from actors.regulator.settings import RegulatorSettings
from actors.regulator.window import MISROUTES, Counts
from schemas.vocabulary.reflection import Dimension, Span, foremost
from schemas.vocabulary.regulator import BOUNDS, Pressure, PressureName

Sign = Literal[-1, 1]

PARAMETERS: Mapping[PressureName, tuple[str, Sign]] = MappingProxyType(
    {
        "tie_breaker": ("tiebreaker_base_margin", -1),
        "act_under_use": ("ACT.base", 1),
        "respond_over_use": ("RESPOND.base", -1),
        "missed_clarify": ("clarify.cold_boost", 1),
        "missed_act": ("act.question_moderate_context", 1),
        "under_engagement": ("acknowledge.question_penalty", 1),
    }
)
"""Pressure -> the weight that answers it, and in which direction."""

READING = "clarify.underspecified"
"""A weight of decisions that count appraisal's reading of the text: for these other weights answer (``BY_READING``)."""

BY_READING: Mapping[PressureName, tuple[str, Sign]] = MappingProxyType(
    {
        **PARAMETERS,
        "missed_clarify": ("clarify.underspecified", 1),
        "missed_act": ("act.recall", 1),
        "under_engagement": ("acknowledge.social", -1),
    }
)
"""The same where what a text is decides, and the warmth of the context only modulates."""

DIMENSIONS: Mapping[Dimension, tuple[str, Sign]] = MappingProxyType(
    {
        "memory_availability": ("act.question_moderate_context", 1),
        "intent_clarity": ("clarify.cold_boost", 1),
        "tone_ambiguity": ("acknowledge.greeting", -1),
        "context_sufficiency": ("respond.cold_penalty", 1),
        "social_cue": ("ACKNOWLEDGE.base", 1),
        "reference_ambiguity": ("act.implicit_reference", 1),
    }
)
"""The dimension in which a second opinion mostly differs -> the weight that answers it, and in which direction."""

DIMENSIONS_BY_READING: Mapping[Dimension, tuple[str, Sign]] = MappingProxyType(
    {
        "memory_availability": ("act.recall", 1),
        "intent_clarity": ("clarify.underspecified", 1),
        "tone_ambiguity": ("acknowledge.social", -1),
        "context_sufficiency": ("respond.answerable", -1),
        "social_cue": ("acknowledge.social", 1),
        "reference_ambiguity": ("act.implicit_reference", 1),
    }
)
"""The same where what a text is decides."""


class Opinion(msgspec.Struct, frozen=True):
    """Reflection's latest word: its disagreement, the dimension of most of it, whether it calls that a pressure.

    ``spans`` say when the decisions were made that it is about.
    """

    at_ns: int
    disagreement: float
    dominant: Dimension | None
    dominant_share: float
    pressure: bool
    spans: tuple[Span, ...] = ()


def since(opinion: Opinion, at_ns: int, needed: int) -> Opinion | None:
    """Return what of an opinion is about decisions made at ``at_ns`` or later; None where it rests on too few."""
    spans = tuple(span for span in opinion.spans if span.start_ns >= at_ns)
    counted = sum(span.counted for span in spans)
    if counted < needed:
        return None
    differing: Counter[Dimension] = Counter()
    for span in spans:
        differing.update(span.disagree)
    dominant = foremost(differing)
    return msgspec.structs.replace(
        opinion,
        disagreement=_rounded(differing.total() / counted),
        dominant=dominant if differing else None,
        dominant_share=differing[dominant] / differing.total() if differing else 0.0,
        spans=spans,
    )


def pressures_of(
    counts: Counts, opinion: Opinion | None, settings: RegulatorSettings, *, reads: bool = False
) -> tuple[Pressure, ...]:
    """Return the pressures there are, the worst first; ``opinion`` is one that is still fresh.

    ``reads``: the decisions counted what the text is (``READING``), so that other weights answer.
    """
    found = [*_of_counts(counts, settings, reads), *_of_opinion(opinion, settings, reads)]
    return tuple(sorted(found, key=lambda pressure: -pressure.severity))


def metric_of(name: PressureName, counts: Counts, settings: RegulatorSettings) -> float | None:
    """Return what an adjustment because of a pressure is judged by, the lower the better; None: not by decisions.

    The share of a mode that is wanted in some measure is judged by how far it lies beyond its threshold: of the whole
    share, what a small correction does would be a trifle.
    """
    match name:
        case "tie_breaker":
            return _rounded(counts.ambiguous_share())
        case "act_under_use":
            return _rounded(_beneath(counts.share("ACT"), settings.act_below))
        case "respond_over_use":
            return _rounded(max(counts.share("RESPOND") - settings.respond_above, 0.0))
        case "mode_entropy":
            return _rounded(_beneath(counts.entropy(), settings.entropy_below))
        case "reflection":
            return None
    return _rounded(counts.misroute_share(name))


def _of_counts(counts: Counts, settings: RegulatorSettings, reads: bool) -> Iterator[Pressure]:
    answers = BY_READING if reads else PARAMETERS
    ambiguous, respond = counts.ambiguous_share(), counts.share("RESPOND")
    act, entropy, misroutes = counts.share("ACT"), counts.entropy(), counts.misroute_share()
    if ambiguous > settings.tie_breaker_above:
        severity = _beyond(ambiguous, settings.tie_breaker_above)
        yield _pressure("tie_breaker", ambiguous, settings.tie_breaker_above, severity, ambiguous)
    if act < settings.act_below:
        severity = _beneath(act, settings.act_below)
        yield _pressure("act_under_use", act, settings.act_below, severity, severity)
    if respond > settings.respond_above:
        severity = _beyond(respond, settings.respond_above)
        yield _pressure("respond_over_use", respond, settings.respond_above, severity, respond - settings.respond_above)
    if misroutes > settings.misroute_above:
        kind = max(MISROUTES, key=counts.misroute_share)
        severity = _beyond(misroutes, settings.misroute_above)
        yield _pressure(kind, misroutes, settings.misroute_above, severity, counts.misroute_share(kind), answers[kind])
    if entropy < settings.entropy_below:
        base = f"{counts.dominant()}.base"
        answer: tuple[str, Sign] = (base if base in BOUNDS else "", -1)
        severity = _beneath(entropy, settings.entropy_below)
        yield _pressure("mode_entropy", entropy, settings.entropy_below, severity, severity, answer)


def _of_opinion(opinion: Opinion | None, settings: RegulatorSettings, reads: bool) -> Iterator[Pressure]:
    if opinion is None or not opinion.pressure or opinion.disagreement <= settings.disagreement_above:
        return
    answer: tuple[str, Sign] = ("", 1)
    if opinion.dominant is not None and opinion.dominant_share > settings.dominance_above:
        answer = (DIMENSIONS_BY_READING if reads else DIMENSIONS)[opinion.dominant]
    value, severity = opinion.disagreement, _beyond(opinion.disagreement, settings.disagreement_above)
    yield _pressure("reflection", value, settings.disagreement_above, severity, value, answer)


def _pressure(
    name: PressureName,
    value: float,
    threshold: float,
    severity: float,
    metric: float,
    answer: tuple[str, Sign] | None = None,
) -> Pressure:
    parameter, sign = answer or PARAMETERS[name]
    return Pressure(
        name=name,
        value=_rounded(value),
        threshold=threshold,
        severity=_rounded(severity),
        metric=_rounded(metric),
        parameter=parameter,
        sign=sign,
    )


def _beyond(value: float, threshold: float) -> float:
    return min(max((value - threshold) / (1.0 - threshold), 0.0), 1.0) if threshold < 1.0 else 0.0


def _beneath(value: float, threshold: float) -> float:
    return min(max((threshold - value) / threshold, 0.0), 1.0) if threshold > 0.0 else 0.0


def _rounded(value: float) -> float:
    return round(value, 6) + 0.0
