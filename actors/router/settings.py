"""The router's settings: weight profiles, thresholds, tie-breaks, feedback, and what is remembered of a session.

Weights are one flat mapping from name to number, so that the regulator can name one, an event can record all, and
`what-if` (a replay under other settings) can replace any. Upper-case names are the base score of a mode; other names
say whose score they change, and when. The modes: answer in substance (RESPOND), ask back (CLARIFY), look things up
first (ACT), say a brief word (ACKNOWLEDGE), say nothing (IGNORE).
"""

from collections.abc import Mapping
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from schemas.effectors.model_settings import FOLLOWS_MODEL
from schemas.event import Milliseconds, Unit
from schemas.intake.nearest_name import nearest_name
from schemas.vocabulary.router import Mode

Profile = Literal["standard", "calibrated", "seed"]
"""Name of a set of weights."""

Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
"""A number of facts, gists (one-line summaries of exchanges), decisions or topics."""

SEED: Mapping[str, float] = MappingProxyType(
    {
        "RESPOND.base": 0.50,
        "respond.warmth_boost": 0.20,
        "respond.fact_density": 0.15,
        "respond.gist_density": 0.10,
        "respond.question_with_context": 0.15,
        "respond.cold_penalty": 0.15,
        "respond.greeting_penalty": 0.20,
        "respond.positive_feedback_penalty": 0.15,
        "CLARIFY.base": 0.30,
        "clarify.cold_boost": 0.25,
        "clarify.cold_question": 0.05,
        "clarify.question_no_facts": 0.20,
        "clarify.new_topic_question": 0.10,
        "clarify.warm_penalty": 0.20,
        "ACT.base": 0.20,
        "act.question_moderate_context": 0.20,
        "act.interrogative_fact_gap": 0.15,
        "act.implicit_reference": 0.15,
        "act.very_cold_penalty": 0.10,
        "act.warm_facts_penalty": 0.10,
        "ACKNOWLEDGE.base": 0.10,
        "acknowledge.greeting": 0.60,
        "acknowledge.positive_feedback": 0.40,
        "acknowledge.question_penalty": 0.30,
        "IGNORE.base": -0.50,
        "ignore.empty_input": 1.00,
        "guard.unproductive_act": 0.15,
        "guard.after_clarify": 0.05,
        "tiebreaker_base_margin": 0.20,
        "tiebreaker_min_margin": 0.08,
        "tiebreaker.implicit_reference": 0.05,
        "tiebreaker.low_density": 0.03,
        "tiebreaker.interrogative_without_mark": 0.03,
        "tiebreaker.low_confidence_streak": 0.05,
    }
)
"""Weights for routing without appraisal's reading of texts. A penalty is positive here, and is subtracted."""

CALIBRATED: Mapping[str, float] = MappingProxyType(
    {**SEED, "RESPOND.base": 0.40, "acknowledge.greeting": 0.80, "acknowledge.positive_feedback": 0.55}
)
"""``SEED`` with three corrections: by ``SEED``, a "Thanks!" in a warm context gets a long answer."""

STANDARD: Mapping[str, float] = MappingProxyType(
    {
        **dict.fromkeys(SEED, 0.0),
        "RESPOND.base": 0.45,
        "respond.answerable": 0.30,
        "respond.task": 0.30,
        "respond.bearing": 0.20,
        "respond.findings": 0.40,
        "respond.warmth_boost": 0.05,
        "respond.cold_penalty": 0.05,
        "respond.greeting_penalty": 0.20,
        "respond.positive_feedback_penalty": 0.15,
        "CLARIFY.base": 0.25,
        "clarify.underspecified": 1.00,
        "clarify.cold_boost": 0.10,
        "clarify.talk_relief": 0.30,
        "clarify.fact_relief": 0.70,
        "clarify.warm_penalty": 0.05,
        "clarify.findings_penalty": 0.40,
        "ACT.base": 0.25,
        "act.recall": 0.90,
        "act.task": 0.10,
        "act.implicit_reference": 0.15,
        "act.question_moderate_context": 0.05,
        "ACKNOWLEDGE.base": 0.20,
        "acknowledge.social": 0.90,
        "acknowledge.greeting": 0.50,
        "acknowledge.positive_feedback": 0.40,
        "acknowledge.question_penalty": 0.10,
        "IGNORE.base": -0.50,
        "ignore.empty_input": 1.00,
        "guard.unproductive_act": 0.15,
        "guard.after_clarify": 0.20,
        "tiebreaker_base_margin": 0.20,
        "tiebreaker_min_margin": 0.08,
        "tiebreaker.implicit_reference": 0.05,
        "tiebreaker.low_density": 0.03,
        "tiebreaker.interrogative_without_mark": 0.03,
        "tiebreaker.low_confidence_streak": 0.05,
    }
)
"""The default: the kind of turn, as appraisal reads it, decides; the warmth of the context changes little.

A relief lowers the score of CLARIFY where what the text lacks may be known: ``talk_relief`` from the conversation so
far, ``fact_relief`` from facts that bear on the text. ``respond.bearing`` raises RESPOND for such facts, too, and
``respond.findings`` for what an ACT loop has found.

The terms of ``SEED`` are included, most of them with weight 0, so that a setting can give them a weight.
"""

PROFILES: Mapping[Profile, Mapping[str, float]] = MappingProxyType(
    {"standard": STANDARD, "calibrated": CALIBRATED, "seed": SEED}
)
"""Name of a profile -> its weights."""


class Thresholds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values at which signals start to count. Comparisons are strict, except the closed range of moderate warmth.

    Warmth is how much memory holds about the topic, from 0 to 1. Warmth below ``very_cold`` or ``cold``, or above
    ``warm``, changes scores. Above ``question_context`` a question can be answered. From ``moderate_low`` to
    ``moderate_high`` looking things up is worthwhile. Fewer facts than ``fact_gap`` leave a gap; a fact density above
    ``rich_facts`` leaves none. ``low_density`` is the limit of information density (the share of distinct words). Each
    of ``streak`` successive confidences must be below ``low_confidence``.
    """

    very_cold: Unit = 0.15
    cold: Unit = 0.30
    moderate_low: Unit = 0.30
    question_context: Unit = 0.40
    moderate_high: Unit = 0.70
    warm: Unit = 0.60
    fact_gap: Count = 3
    rich_facts: Unit = 0.50
    low_density: Unit = 0.30
    low_confidence: Unit = 0.15
    streak: Count = 3

    def __post_init__(self) -> None:
        """Refuse thresholds in the wrong order."""
        if not self.very_cold <= self.cold <= self.warm:
            raise ValueError("router thresholds must satisfy very_cold <= cold <= warm")
        if self.moderate_low > self.moderate_high:
            raise ValueError("router threshold 'moderate_low' is above 'moderate_high'")


class Saturation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Counts at which the densities of facts and gists reach 1."""

    fact_density: Count = 10
    gist_density: Count = 5


class RouterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a router decides with.

    ``base_scores`` (by mode) and then ``weights`` (by name) replace single numbers of the ``profile``. ``act`` says
    whether an ACT loop may run; without it, an exchange that calls for one is answered in the best other mode.
    ``tiebreak`` says what decides between two modes that are too close: the higher ``score``, or an ``llm``, which gets
    ``tiebreak_timeout_ms``. An input within ``feedback_within_ms`` after an answer counts as an immediate reaction. A
    session unused for ``session_lifetime_ms`` is dropped; of its topics, the latest ``topics_remembered`` with low
    confidence are kept. A repeated input of an exchange is recognised for at least ``ended_lifetime_ms`` after its end.
    The regulator's offsets are kept for at most ``agents``. If there are more, an eighth is dropped: first agents
    without offsets, then those without an event of the regulator for the longest time.

    Raises:
        ValueError: an unknown weight name (the message names the nearest) or one that the profile does not have, a
            weight outside [-2, 2], a base tie-breaker margin below the minimum one. ``msgspec.convert`` reports
            it as a ``ValidationError``.
    """

    profile: Profile = "standard"
    base_scores: dict[Mode, float] = {}
    weights: dict[str, float] = {}
    thresholds: Thresholds = Thresholds()
    saturation: Saturation = Saturation()
    act: bool = True
    tiebreak: Annotated[Literal["score", "llm"], FOLLOWS_MODEL] = "score"
    tiebreak_timeout_ms: Milliseconds = 3_000
    feedback_within_ms: Milliseconds = 600 * 1000
    session_lifetime_ms: Milliseconds = 24 * 3600 * 1000
    ended_lifetime_ms: Milliseconds = 600 * 1000
    topics_remembered: Count = 32
    agents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000

    def __post_init__(self) -> None:
        """Validate the overrides, and the weights that result from them."""
        names = PROFILES[self.profile]
        for name in self.weights:
            if name in names:
                continue
            if name in STANDARD:
                raise ValueError(f"router profile {self.profile!r} has no weight {name!r}: it is one of 'standard'")
            nearest = nearest_name(name, names, cutoff=0.0)
            raise ValueError(f"unknown router weight {name!r}: did you mean {nearest!r}?")
        weights = effective_weights(self)
        for name, value in weights.items():
            if not (isfinite(value) and -2.0 <= value <= 2.0):
                raise ValueError(f"router weight {name!r} is {value}: it must lie in [-2, 2]")
        if weights["tiebreaker_base_margin"] < weights["tiebreaker_min_margin"]:
            raise ValueError("router weight 'tiebreaker_base_margin' is below 'tiebreaker_min_margin'")


def effective_weights(settings: RouterSettings) -> dict[str, float]:
    """Return every weight by name, the overrides applied to the profile."""
    bases = {f"{mode}.base": value for mode, value in settings.base_scores.items()}
    return {**PROFILES[settings.profile], **bases, **settings.weights}
