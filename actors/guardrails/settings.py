"""Settings of guardrails: the source's constants, and how long things are remembered."""

from typing import Annotated, Literal

import msgspec

from schemas.effectors.model_settings import FOLLOWS_MODEL
from schemas.event import Milliseconds, Unit

Critic = Literal["features", "llm", "off"]
"""Who scores an answer of ours: the numbers that appraisal gave it, a language model, or nobody."""

Persona = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class GuardrailsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What guardrails decide with.

    Attributes:
        alignment_threshold: Least alignment that asks for no rerun.
        drift_threshold: Largest drift that asks for none.
        summary_alignment: Least alignment of a valid summary; ``summary_drift`` its largest drift.
        max_reruns: Reruns of a loop family at most, 0 to 20, where it names no limit of its own.
        fatigue_increment: What a rerun that improved nothing adds to its family's fatigue.
        fatigue_decay: What one that improved something takes from it.
        improvement_threshold: Least gain, of alignment or of drift, that counts as an improvement.
        fatigue_threshold: Fatigue from which a family ends. With the other defaults three reruns come to 0.45: fatigue
            ends a family only once ``max_reruns`` is raised, or lifted by an override.
        max_fatigue: Where fatigue stops growing.
        bias_threshold: Loop families with a bias, the one being judged among them, that make an echo.
        bias_window_ms: How far back an agent's loops are looked at for that.
        override_lifetime_ms: How long an override holds.
        family_lifetime_ms: A loop family is remembered for at least this long after its last loop, and no longer than
            twice that: as long, a repeated completion is recognised.
        family_loops: Loops of a family that are remembered, the latest.
        bias_tags: Biases of an agent that are remembered, the latest.
        bias_loops: Loops with a bias that are remembered, the latest: higher counts are not told apart.
        critic: Who scores an answer of ours.
        loop_critic: Who scores the answer of a loop outside that brings question and answer and not both scores.
        loop_critic_timeout_ms: How long a model may take for that: less than a gateway waits.
        critic_timeout_ms: How long a model may take for that; afterwards appraisal's numbers count.
        critic_tokens: Length of its answer at most.
        critic_characters: As much of the question, and of the answer, it is shown, both ends of each.
        ended_lifetime_ms: A repeated input of an exchange is recognised for at least this long after its end.
        persona: Who asks and judges where nobody is named.
        critic_persona: Who a model judges as.
    """

    alignment_threshold: Unit = 0.75
    drift_threshold: Unit = 0.25
    summary_alignment: Unit = 0.70
    summary_drift: Unit = 0.30
    max_reruns: Annotated[int, msgspec.Meta(ge=0, le=20)] = 3
    fatigue_increment: Unit = 0.15
    fatigue_decay: Unit = 0.05
    improvement_threshold: Unit = 0.05
    fatigue_threshold: Unit = 0.5
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
