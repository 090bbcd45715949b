"""Settings of drift: when an idle agent drifts, how much of it there may be, and who puts a thought into words."""

from typing import Annotated, Literal

import msgspec

from schemas.effectors.model_settings import FOLLOWS_MODEL
from schemas.event import Milliseconds, Unit

Factor = Annotated[float, msgspec.Meta(ge=1.0, le=10.0)]
"""What an interval is stretched by."""

_MINUTE_MS = 60 * 1000


class DriftSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What drift decides with. Memory decides which concepts there are, and what they activate.

    A drift is an idle agent's attempt at a thought. It starts from a concept, a term that occurred in remembered
    exchanges (episodes); activation, from 0 to 1, spreads from it to concepts that occurred with it.

    Attributes:
        enabled: Off: nothing is kept and nothing is emitted.
        interval_ms: Time from one drift to the next, before jitter.
        jitter: Share of the interval by which it varies to either side.
        long_gap_chance: Chance of a longer interval.
        long_gap_least: Least factor of a longer interval.
        long_gap_most: Largest factor of a longer interval.
        longest_pause_ms: A drift that led to nothing new doubles the time to the next, up to this.
        decaying: Weight of starting from a concept that fades.
        recent: Weight of starting from a concept of the latest episode.
        salient: Weight of starting from a concept of the most salient episode (the most exciting and new one).
        random: Weight of starting from any concept whose confidence is high enough (memory's ``sure_from``).
        threshold: Least activation of a thought.
        thoughts_kept: Number of latest thoughts that are not repeated; a repetition has the same concept and episode.
        cooldown_ms: Time for which no further drift starts from the same concept.
        fatigue_budget: An agent does not drift once the activations of its thoughts in ``fatigue_window_ms`` add up to
            this.
        fatigue_window_ms: Time for which a thought counts for fatigue.
        synthesis: Who puts thoughts into words: the ``composer``, by fixed sentences, or a language model; ``llm`` by
            default if one is attached.
        most_tokens: Most tokens of a model's answer.
        timeout_ms: How long a model's answer may take.
        patience_ms: Time after which a drift without an answer is given up.
        ended_lifetime_ms: A repeated input of an exchange is recognised for at least this long after its end.
        agents: Agents that a partition keeps; when there are more, the least recently used eighth is dropped.

    Raises:
        ValueError: weights that are all 0, a ``long_gap_least`` above ``long_gap_most``, or a ``timeout_ms`` above
            ``patience_ms``. ``msgspec.convert`` reports it as a ``ValidationError``.
    """

    enabled: bool = True
    interval_ms: Annotated[int, msgspec.Meta(ge=100, le=24 * 60 * _MINUTE_MS)] = 5 * _MINUTE_MS
    jitter: Annotated[float, msgspec.Meta(ge=0.0, le=0.9)] = 0.3
    long_gap_chance: Unit = 0.1
    long_gap_least: Factor = 1.8
    long_gap_most: Factor = 2.5
    longest_pause_ms: Milliseconds = 24 * 60 * _MINUTE_MS
    decaying: Unit = 0.4
    recent: Unit = 0.3
    salient: Unit = 0.2
    random: Unit = 0.1
    threshold: Unit = 0.4
    thoughts_kept: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 128
    cooldown_ms: Milliseconds = 60 * _MINUTE_MS
    fatigue_budget: Annotated[float, msgspec.Meta(gt=0.0, le=1_000.0)] = 2.5
    fatigue_window_ms: Milliseconds = 30 * _MINUTE_MS
    synthesis: Annotated[Literal["composer", "llm"], FOLLOWS_MODEL] = "composer"
    most_tokens: Annotated[int, msgspec.Meta(ge=16, le=4096)] = 200
    timeout_ms: Milliseconds = 60 * 1000
    patience_ms: Milliseconds = 2 * _MINUTE_MS
    ended_lifetime_ms: Milliseconds = 10 * _MINUTE_MS
    agents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        if self.decaying + self.recent + self.salient + self.random <= 0.0:
            raise ValueError("drift settings 'decaying', 'recent', 'salient' and 'random' are all 0: give one a weight")
        if self.long_gap_least > self.long_gap_most:
            raise ValueError("drift setting 'long_gap_least' is above 'long_gap_most'")
        if self.timeout_ms > self.patience_ms:
            raise ValueError("drift setting 'timeout_ms' is above 'patience_ms': no answer could be waited for so long")
