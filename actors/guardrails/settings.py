"""Settings of guardrails: thresholds, limits, critics, and how long things are remembered."""

from typing import Annotated, Literal

import msgspec

from schemas.effectors.model_settings import FOLLOWS_MODEL
from schemas.event import Milliseconds, Unit
from schemas.settings.unreachable_settings import at_most

Critic = Literal["features", "llm", "off"]
"""Who scores an answer: appraisal, by the answer's features; a language model; or nobody."""

Persona = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
"""The name of a role in which an answer is written or judged."""


class GuardrailsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What guardrails decide with.

    A *loop* is one pass of a deliberation: an answer of this system, or one that an external orchestrator reports. A
    *family* is a loop with its reruns; its *fatigue*, from 0 to 1, grows with reruns that improve nothing. Alignment is
    how well an answer fits its question, drift how far it strays from it; both are from 0 to 1. A *bias* is a tag that
    a loop's critics report; one in too many families is an *echo*. An *override* is a person's order that lifts a
    limit.

    Attributes:
        alignment_threshold: A loop with an alignment below this runs again.
        drift_threshold: A loop with a drift above this runs again.
        summary_alignment: A loop with an alignment below this, or a drift above ``summary_drift``, runs again, with the
            reason ``summary_invalid``.
        max_reruns: Most reruns of a loop family, 0 to 20, if its loops name no limit.
        fatigue_increment: What a rerun that improved nothing adds to its family's fatigue.
        fatigue_decay: What a rerun that improved something takes from its family's fatigue.
        improvement_threshold: Least gain of alignment, or loss of drift, that counts as an improvement.
        fatigue_threshold: Fatigue at which a family ends. With the other defaults three reruns come to 0.45: fatigue
            ends a family only once ``max_reruns`` is raised, or lifted by an override.
        max_fatigue: Where fatigue stops growing.
        bias_threshold: Number of loop families with a bias, the one being judged among them, that makes it an echo.
        bias_window_ms: How far back the loop families with a bias are counted.
        override_lifetime_ms: How long an override holds.
        family_lifetime_ms: A loop family is remembered for at least this long after its last loop, and for no longer
            than twice this. Meanwhile a repeated completion is recognised.
        family_loops: How many of the latest loops of a family are remembered.
        bias_tags: Most different biases remembered of an agent; those not seen for the longest time are dropped.
        bias_loops: How many of the latest families with one bias are remembered; no count exceeds this.
        critic: Who scores an answer of this system.
        loop_critic: Who scores an external loop that brings question and answer, but not both scores; ``llm`` by
            default if a model is attached.
        loop_critic_timeout_ms: How long a model may take for an external loop; a gateway waits longer for the decision.
        critic_timeout_ms: How long a model may take for an answer of this system; afterwards appraisal's scores count.
        critic_tokens: Most tokens of the model's critique.
        critic_characters: Most characters of the question, and of the answer, that a model is shown: beginning and end.
        ended_lifetime_ms: A repeated input of an exchange is recognised for at least this long after its end.
        persona: The role in which answers are written and judged, if no other is named.
        critic_persona: The role in which a model judges.
    """

    alignment_threshold: Unit = 0.75
    drift_threshold: Unit = 0.25
    summary_alignment: Unit = 0.70
    summary_drift: Unit = 0.30
    max_reruns: Annotated[int, msgspec.Meta(ge=0, le=20)] = 3
    fatigue_increment: Unit = 0.15
    fatigue_decay: Unit = 0.05
    improvement_threshold: Unit = 0.05
    fatigue_threshold: Annotated[Unit, at_most("max_fatigue")] = 0.5
    max_fatigue: Unit = 1.0
    bias_threshold: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    bias_window_ms: Milliseconds = 24 * 3600 * 1000
    override_lifetime_ms: Milliseconds = 3600 * 1000
    family_lifetime_ms: Milliseconds = 24 * 3600 * 1000
    family_loops: Annotated[int, msgspec.Meta(ge=32, le=1000)] = 64
    bias_tags: Annotated[int, msgspec.Meta(ge=64, le=10_000)] = 256
    bias_loops: Annotated[int, msgspec.Meta(ge=100, le=10_000)] = 200
    critic: Critic = "features"
    loop_critic: Annotated[Critic, FOLLOWS_MODEL] = "features"
    loop_critic_timeout_ms: Milliseconds = 8_000
    critic_timeout_ms: Milliseconds = 10_000
    critic_tokens: Annotated[int, msgspec.Meta(ge=16, le=4000)] = 200
    critic_characters: Annotated[int, msgspec.Meta(ge=100, le=20_000)] = 4000
    ended_lifetime_ms: Milliseconds = 600 * 1000
    persona: Persona = "SAGE"
    critic_persona: Persona = "PESSIMIST"
