"""The pressures: what is wrong with an agent's routing, how badly, and which weights may correct it. Pure.

The router decides by weighted scores how to answer: its *mode*, such as RESPOND, or ACT, which looks things up first.
Its *profile* is a set of weights, chosen by a setting. A misroute is a decision that feedback has shown to be wrong.

=====================  ==================================================  ============================================
pressure               condition                                           metric
=====================  ==================================================  ============================================
``tie_breaker``        ambiguous decisions > .20                           that share
``act_under_use``      share of ACT < .02                                  the shortfall
``act_over_use``       share of ACT > .25                                  the excess
``respond_over_use``   share of RESPOND > .75                              the excess
``respond_under_use``  share of RESPOND < .40                              the shortfall
``clarify_over_use``   share of CLARIFY > .30                              the excess
``clarify_under_use``  share of CLARIFY < .03, and feedback says that a    the shortfall
                       question back was missed
``acknowledge_...``    share of ACKNOWLEDGE > .20; or < .01, or < half     the excess, or the shortfall
                       of the gestures (greetings, thanks)
``ignore_over_use``    share of IGNORE > .05                               (no weight corrects it)
``missed_clarify``     misroutes > .10, most of this kind                  its share
``missed_act``         misroutes > .10, most of this kind; or this kind    its share
                       alone > .05, by more than chance
``under_engagement``   misroutes > .10, most of this kind                  its share
``reflection``         disagreement > .20, sustained, and more than .30    reflection's next opinion
                       of it in one dimension
``mode_entropy``       normalised entropy of the modes < .35               the shortfall
=====================  ==================================================  ============================================

The monitor raises its alarms on the same shares and rates. A table lists the weights that correct each pressure
(``REMEDIES``, ``DIMENSIONS``). The first of these that the router's profile has, and that may be moved now, is
moved. So under a profile that does not use appraisal's reading of a turn, ``clarify.cold_boost``,
``act.question_moderate_context`` and ``acknowledge.question_penalty`` (all raised) correct the misroutes.

Severity is the distance beyond the threshold, as a share of the greatest possible distance. So pressures of different
kinds can be compared. A pressure that is not corrected is *held*, and its field ``held`` has the reason.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from math import sqrt
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from actors.regulator.decision_window import MISROUTES, Counts
from actors.regulator.settings import RegulatorSettings
from schemas.vocabulary.reflection import Dimension, Span, foremost
from schemas.vocabulary.regulator import BOUNDS, Held, Pressure, PressureName
from schemas.vocabulary.router import Mode

_DECIMAL = 0.000001
"""The smallest difference between two shares, which are kept to 6 decimals."""

_SURE_DEVIATIONS = 1.5
"""Standard deviations by which a small rate must exceed its threshold, so that chance alone does not explain it."""

Sign = Literal[-1, 1]
"""The direction of a change: down or up."""

Remedy = tuple[str, Sign]
"""A weight, and the direction in which it is moved."""

REMEDIES: Mapping[PressureName, tuple[Remedy, ...]] = MappingProxyType(
    {
        "tie_breaker": (("tiebreaker_base_margin", -1),),
        "act_under_use": (("ACT.base", 1),),
        "act_over_use": (("ACT.base", -1),),
        "respond_over_use": (("RESPOND.base", -1),),
        "respond_under_use": (("respond.answerable", 1), ("RESPOND.base", 1)),
        "clarify_over_use": (("CLARIFY.base", -1), ("clarify.underspecified", -1), ("clarify.cold_boost", -1)),
        "clarify_under_use": (("clarify.underspecified", 1), ("clarify.cold_boost", 1), ("CLARIFY.base", 1)),
        "acknowledge_over_use": (("ACKNOWLEDGE.base", -1), ("acknowledge.social", -1), ("acknowledge.greeting", -1)),
        "acknowledge_under_use": (("acknowledge.social", 1), ("acknowledge.greeting", 1), ("ACKNOWLEDGE.base", 1)),
        "ignore_over_use": (),
        "missed_clarify": (("clarify.underspecified", 1), ("clarify.cold_boost", 1)),
        "missed_act": (("act.recall", 1), ("act.question_moderate_context", 1)),
        "under_engagement": (("acknowledge.social", -1), ("acknowledge.question_penalty", 1)),
    }
)
"""Pressure -> the weights that correct it, each with its direction, the first choice first.

A weight that the router's profile does not have, or that has no bounds, is skipped. IGNORE has no remedy, since
blank inputs are ignored before anything is scored. ``reflection`` is corrected by the weights of its dimension,
``mode_entropy`` by those of the most frequent mode.
"""

DIMENSIONS: Mapping[Dimension, tuple[Remedy, ...]] = MappingProxyType(
    {
        "memory_availability": (("act.recall", 1), ("act.question_moderate_context", 1)),
        "intent_clarity": (("clarify.underspecified", 1), ("clarify.cold_boost", 1)),
        "tone_ambiguity": (("acknowledge.social", -1), ("acknowledge.greeting", -1)),
        "context_sufficiency": (("respond.answerable", -1), ("respond.cold_penalty", 1)),
        "social_cue": (("acknowledge.social", 1), ("ACKNOWLEDGE.base", 1)),
        "reference_ambiguity": (("act.implicit_reference", 1),),
    }
)
"""The dimension that most disagreeing opinions name -> the weights that correct it, as in ``REMEDIES``.

No weight occurs with the same direction in two dimensions. So a remedy identifies its dimension: see
``remedies_for``.
"""


class _Share(NamedTuple):
    """A rule that a mode's share is too high (``over``) or too low; ``limit`` is the setting with the threshold.

    The severity of a share that is too high counts from ``healthy``, the upper end of the mode's healthy range, if that
    lies below the limit.
    """

    mode: Mode
    over: bool
    limit: str
    healthy: float = 1.0


_SHARES: Mapping[PressureName, _Share] = MappingProxyType(
    {
        "act_over_use": _Share("ACT", True, "act_above", 0.15),
        "respond_over_use": _Share("RESPOND", True, "respond_above"),
        "clarify_over_use": _Share("CLARIFY", True, "clarify_above", 0.20),
        "acknowledge_over_use": _Share("ACKNOWLEDGE", True, "acknowledge_above", 0.12),
        "ignore_over_use": _Share("IGNORE", True, "ignore_above", 0.02),
        "act_under_use": _Share("ACT", False, "act_below"),
        "respond_under_use": _Share("RESPOND", False, "respond_below"),
        "clarify_under_use": _Share("CLARIFY", False, "clarify_below"),
        "acknowledge_under_use": _Share("ACKNOWLEDGE", False, "acknowledge_below"),
    }
)
"""Pressure -> its rule. Of equally severe pressures the earlier comes first: too much of one makes the others rare."""


class Opinion(msgspec.Struct, frozen=True):
    """Reflection's latest conclusion: the share of disagreement, its main dimension (``dominant``, with its share of
    the disagreement), and whether it is a pressure.

    Reflection asks a model for second opinions on past routing decisions. A dimension is a way in which a decision can
    be ambiguous. ``spans`` say when the decisions that it is about were made.
    """

    at_ns: int
    disagreement: float
    dominant: Dimension | None
    dominant_share: float
    pressure: bool
    spans: tuple[Span, ...] = ()


def opinion_since(opinion: Opinion, at_ns: int, needed: int) -> Opinion | None:
    """Return an opinion limited to decisions made at ``at_ns`` or later; None if fewer than ``needed`` are left."""
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
        disagreement=rounded(differing.total() / counted),
        dominant=dominant if differing else None,
        dominant_share=differing[dominant] / differing.total() if differing else 0.0,
        spans=spans,
    )


def pressures_of(
    counts: Counts, opinion: Opinion | None, settings: RegulatorSettings, weights: Container[str]
) -> tuple[Pressure, ...]:
    """Return the present pressures, the worst first.

    ``opinion`` must still be fresh. ``weights`` are those of the router's profile that the decisions were made with.
    """
    found = [*_count_pressures(counts, settings), *_opinion_pressures(opinion, settings)]
    remediable = [_with_available_remedy(pressure, weights) for pressure in found]
    return tuple(sorted(remediable, key=lambda pressure: -pressure.severity))


def remedies_for(pressure: Pressure) -> tuple[Remedy, ...]:
    """Return the weights with bounds that may correct a pressure, the first choice first."""
    if pressure.name in REMEDIES:
        return _bounded(REMEDIES[pressure.name])
    if not pressure.parameter:
        return ()
    own: Remedy = (pressure.parameter, pressure.sign)
    if pressure.name != "reflection":
        return _bounded((own,))
    return _bounded(next((remedies for remedies in DIMENSIONS.values() if own in remedies), (own,)))


def metric_of(name: PressureName, counts: Counts, settings: RegulatorSettings) -> float | None:
    """Return the metric that an adjustment for a pressure is judged by, lower is better; None: not by decisions.

    For a mode's share the metric is the distance beyond its threshold. Compared with the whole share, the effect of a
    small correction would not be visible.
    """
    if name == "reflection":
        return None
    if name == "tie_breaker":
        return rounded(counts.ambiguous_share())
    if name == "mode_entropy":
        return rounded(_shortfall_share(counts.entropy(), settings.entropy_below))
    rule = _SHARES.get(name)
    if rule is not None:
        share, limit = counts.share(rule.mode), _limit(name, rule, counts, settings)
        return rounded(max(share - limit, 0.0) if rule.over else _shortfall_share(share, limit))
    return rounded(next(counts.misroute_share(kind) for kind in MISROUTES if kind == name))


def chance_deviation(name: PressureName, counts: Counts, settings: RegulatorSettings) -> float:
    """Return the standard deviation, by chance, of a metric's difference between two windows of this many decisions."""
    decisions = max(counts.decisions, 1)
    rule = _SHARES.get(name)
    if name == "mode_entropy" or name == "reflection":
        return 0.0
    if rule is None:
        kind = next((kind for kind in MISROUTES if kind == name), None)
        share = counts.ambiguous_share() if kind is None else counts.misroute_share(kind)
        return sqrt(2.0 * share * (1.0 - share) / decisions)
    share, limit = counts.share(rule.mode), _limit(name, rule, counts, settings)
    spread = sqrt(2.0 * share * (1.0 - share) / decisions)
    return spread if rule.over or not limit else spread / float(limit)


def _count_pressures(counts: Counts, settings: RegulatorSettings) -> Iterator[Pressure]:
    ambiguous = counts.ambiguous_share()
    if ambiguous > settings.tie_breaker_above:
        severity = _excess_share(ambiguous, settings.tie_breaker_above)
        yield _pressure("tie_breaker", ambiguous, settings.tie_breaker_above, severity, ambiguous)
    yield from _share_pressures(counts, settings)
    yield from _misroute_pressures(counts, settings)
    entropy = counts.entropy()
    if entropy < settings.entropy_below:
        base: tuple[Remedy, ...] = ((f"{counts.dominant()}.base", -1),)
        severity = _shortfall_share(entropy, settings.entropy_below)
        yield _pressure("mode_entropy", entropy, settings.entropy_below, severity, severity, base)


def _share_pressures(counts: Counts, settings: RegulatorSettings) -> Iterator[Pressure]:
    for name, rule in _SHARES.items():
        share, limit = counts.share(rule.mode), _limit(name, rule, counts, settings)
        if rule.over and share > limit:
            # As a share of the limit, or of the range above it if that is smaller. So a mode that should be rare has
            # the highest severity at about twice its limit.
            beyond = share - min(limit, rule.healthy)
            severity = min(beyond / max(min(limit, 1.0 - limit), _DECIMAL), 1.0)
            yield _pressure(name, share, limit, severity, share - limit)
        elif not rule.over and share < limit:
            severity = _shortfall_share(share, limit)
            held = _why_not_needed(name, counts, settings)
            yield _pressure(name, share, limit, severity, severity, held=held)


def _misroute_pressures(counts: Counts, settings: RegulatorSettings) -> Iterator[Pressure]:
    misroutes, missed = counts.misroute_share(), counts.misroute_share("missed_act")
    if misroutes > settings.misroute_above:
        kind = max(MISROUTES, key=counts.misroute_share)
        severity = _excess_share(misroutes, settings.misroute_above)
        yield _pressure(kind, misroutes, settings.misroute_above, severity, counts.misroute_share(kind))
        if kind == "missed_act":
            return
    if missed > settings.missed_act_above:
        # Over a day's decisions, chance makes so small a share vary by half of it. Chance must not move a weight.
        surely = missed - _SURE_DEVIATIONS * chance_deviation("missed_act", counts, settings)
        severity = _excess_share(missed, settings.missed_act_above)
        held: Held = "within_chance" if surely <= settings.missed_act_above else ""
        yield _pressure("missed_act", missed, settings.missed_act_above, severity, missed, held=held)


def _limit(name: PressureName, rule: _Share, counts: Counts, settings: RegulatorSettings) -> float:
    """Return the share at which a pressure begins; for ACKNOWLEDGE it rises with the share of social gestures."""
    limit = float(getattr(settings, rule.limit))
    if name == "acknowledge_under_use":
        return max(limit, rounded(settings.acknowledge_gestures * counts.social_share()))
    return limit


def _why_not_needed(name: PressureName, counts: Counts, settings: RegulatorSettings) -> Held:
    """Return why a low share of a mode is right, as no input needed more of it; empty if it is too low."""
    if name == "acknowledge_under_use" and counts.social_share() < settings.acknowledge_below:
        return "no_cue"
    if name == "clarify_under_use" and not counts.misroute_share("missed_clarify"):
        return "no_evidence"
    return ""


def _opinion_pressures(opinion: Opinion | None, settings: RegulatorSettings) -> Iterator[Pressure]:
    if opinion is None or not opinion.pressure or opinion.disagreement <= settings.disagreement_above:
        return
    remedies: tuple[Remedy, ...] = ()
    if opinion.dominant is not None and opinion.dominant_share > settings.dominance_above:
        remedies = DIMENSIONS[opinion.dominant]
    value, severity = opinion.disagreement, _excess_share(opinion.disagreement, settings.disagreement_above)
    yield _pressure("reflection", value, settings.disagreement_above, severity, value, remedies)


def _pressure(
    name: PressureName,
    value: float,
    threshold: float,
    severity: float,
    metric: float,
    remedies: tuple[Remedy, ...] | None = None,
    *,
    held: Held = "",
) -> Pressure:
    found = _bounded(REMEDIES[name] if remedies is None else remedies)
    parameter, sign = found[0] if found else ("", 1)
    return Pressure(
        name=name,
        value=rounded(value),
        threshold=threshold,
        severity=rounded(severity),
        metric=rounded(metric),
        parameter=parameter,
        sign=sign,
        held=held if found or held else "no_weight",
    )


def _with_available_remedy(pressure: Pressure, weights: Container[str]) -> Pressure:
    """Return a pressure with its first remedy that the router's profile has."""
    available = [each for each in remedies_for(pressure) if each[0] in weights]
    if not available:
        return msgspec.structs.replace(pressure, parameter="", sign=1, held=pressure.held or "no_weight")
    parameter, sign = available[0]
    return msgspec.structs.replace(pressure, parameter=parameter, sign=sign)


def _bounded(remedies: tuple[Remedy, ...]) -> tuple[Remedy, ...]:
    """Return the remedies whose weights regulation may change: those with bounds."""
    return tuple(each for each in remedies if each[0] in BOUNDS)


def _excess_share(value: float, threshold: float) -> float:
    """Return how far a value is above a threshold, as a share of the greatest possible distance."""
    return min(max((value - threshold) / (1.0 - threshold), 0.0), 1.0) if threshold < 1.0 else 0.0


def _shortfall_share(value: float, threshold: float) -> float:
    """Return how far a value is below a threshold, as a share of the threshold."""
    return min(max((threshold - value) / threshold, 0.0), 1.0) if threshold > 0.0 else 0.0


def rounded(value: float) -> float:
    """Return a value to 6 decimals, never -0."""
    return round(value, 6) + 0.0  # adding zero turns -0.0, which would be written differently, into 0.0
