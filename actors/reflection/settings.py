"""Settings of reflection: whether and when a model is asked, about how many decisions, and which opinions count."""

from typing import Annotated, Literal

import msgspec

from schemas.effectors.model_settings import FOLLOWS_MODEL
from schemas.event import Milliseconds, Unit
from schemas.settings.unreachable_settings import at_most

Count = Annotated[int, msgspec.Meta(ge=1, le=4096)]
"""A number of decisions, opinions or tokens."""

_MINUTE_MS, _DAY_MS = 60 * 1000, 24 * 3600 * 1000


class ReflectionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What reflection decides with. "Below" and "above" are strict.

    A decision is the router's, on how to answer an input; a tie-break is one between two ways with nearly the same
    score. A pressure is a fault of an agent's routing that the regulator may correct.

    Attributes:
        backend: ``off`` keeps nothing and asks nobody; ``llm`` asks the attached model.
        idle_after_ms: How long an agent must be without an open exchange before its decisions are reviewed.
        batch: Number of decisions of one review.
        low_below: Router confidence below which a decision is of low confidence.
        high_above: Router confidence above which it is of high confidence; between the two it is not reviewed.
        low_share: Share of a batch for decisions of low confidence.
        high_share: Share of a batch for decisions of high confidence; the rest is for tie-breaks.
        confidence_above: The model's confidence above which an opinion counts.
        disagreement_above: Share of disagreeing opinions above which there is a pressure.
        window_ms: Length of the window; opinions on decisions within it are counted.
        insights_needed: Opinions in the window that must count before there can be a pressure.
        queue: Decisions that are kept of an agent until they are reviewed; the oldest are dropped first.
        insights_kept: Opinions that are kept of an agent; the oldest are dropped first.
        most_tokens: Most tokens of a model's answer.
        timeout_ms: How long the model may take for it.
        patience_ms: Time after which a request without an answer is given up.
        retry_after_ms: Time until the next review after a model failed, or gave an answer of another form.
        ended_lifetime_ms: A repeated input of an exchange is recognised for at least this long after its end.
        agents: Agents that a partition keeps; when there are more, the least recently used eighth is dropped.

    Raises:
        ValueError: shares above 1 in sum, ``low_below`` above ``high_above``, or a patience shorter than the model's
            time. ``msgspec.convert`` reports it as a ``ValidationError``.
    """

    backend: Annotated[Literal["off", "llm"], FOLLOWS_MODEL] = "off"
    idle_after_ms: Milliseconds = 5 * _MINUTE_MS
    batch: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5
    low_below: Unit = 0.20
    high_above: Unit = 0.60
    low_share: Unit = 0.5
    high_share: Unit = 0.2
    confidence_above: Unit = 0.70
    disagreement_above: Unit = 0.25
    window_ms: Milliseconds = 7 * _DAY_MS
    insights_needed: Annotated[Count, at_most("insights_kept")] = 10
    queue: Count = 128
    insights_kept: Count = 512
    most_tokens: Count = 1024
    timeout_ms: Milliseconds = 2 * _MINUTE_MS
    patience_ms: Milliseconds = 4 * _MINUTE_MS
    retry_after_ms: Milliseconds = 60 * _MINUTE_MS
    ended_lifetime_ms: Milliseconds = 10 * _MINUTE_MS
    agents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000

    def __post_init__(self) -> None:
        """Refuse shares and bounds that contradict each other."""
        if self.low_share + self.high_share > 1.0:
            raise ValueError("reflection settings 'low_share' and 'high_share' are above 1 in sum")
        if self.low_below > self.high_above:
            raise ValueError("reflection setting 'low_below' is above 'high_above'")
        if self.timeout_ms > self.patience_ms:
            raise ValueError(
                "reflection setting 'timeout_ms' is above 'patience_ms': no answer could be waited for so long"
            )
