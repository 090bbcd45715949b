"""Settings of self-review: what a signal's record is, when a review is resolved, and how seats are weighed."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit

Ticks = Annotated[int, msgspec.Meta(ge=1, le=4096)]
"""A number of ticks: finished exchanges, or steps of an external engine."""

SmallCount = Annotated[int, msgspec.Meta(ge=1, le=100)]
"""A number of things that a person could still look through."""

Share = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
"""A share above 0."""


class SelfReviewSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What self-review decides with. "Above" and "below" are strict. In names, ``pog`` is an entity's worth.

    A tick is a finished exchange, or a step of an external engine; its signals are numbers such as its affect (how
    exciting and unpleasant it is). An entity is a memory in a prompt. Criticality, from 0 to 1, is how tense the agent
    is. A mode is an attitude such as guardian or explorer. The stimulus is the text that a prompt answers. A review is
    of a tick with an unusual signal: it looks for the swap, one entity in the place of another, that would have raised
    the prompt's score most, and gives entities seats, its verdicts on them. A quality seat is for an entity that was in
    the prompt.

    Attributes:
        window: Number of latest ticks that medians and deviations are taken over.
        record_window: Number of latest ticks whose highest value is the record; 0: that of all ticks.
        warm_up: Number of first ticks that only build the statistics.
        good_above: Score above which a prompt is good; the value of a quality seat is the distance from it.
        scores_needed: How many of the latest scores must all be good for a review to be resolved.
        calm_below: Criticality below which the agent is calm.
        criticality_alpha: Weight of the newest tick in the moving average of criticality.
        active_from: Least activation of a mode that counts as active.
        mode_weight: Weight of a signal that an active mode stresses, for the order of a review's reasons; others: 1.
        opposition_doubt: Decisions under the rarer of two modes with which their learned opposition weighs as much as
            the assumed one; with more decisions it weighs more.
        pog_start: Worth of an entity without seats.
        pog_alpha: Weight of the newest seat in an entity's average.
        memory_carried: Share of an exchange's working memory that the next exchange keeps.
        lapse_ticks: Ticks after which a review that is not resolved is given up: by then the ticks that it was measured
            against have left the window.
        fade_ticks: Ticks over which an entity's seats lose their weight, linearly; its worth is then ``pog_start``
            again.
        seat_terms: Terms of the stimulus that make a seat's context: the seat counts when one of them occurs again.
        seats: Entities whose worth is kept; those whose last seat is oldest are dropped.
        token_budget: Tokens that the memories of an exchange may have after a swap; an external tick names its own.
        terms_per_memory: Number of first terms by which a memory is compared.
        agreed_by: Memories that must share a term that the stimulus does not have, for the term to be compared.
        agents: Agents that a partition keeps; when there are more, the least recently used eighth is dropped.
        ended_lifetime_ms: A repeated input of an exchange is recognised for at least this long after its end.

    Raises:
        ValueError: a warm-up longer than the window. ``msgspec.convert`` reports it as a ``ValidationError``.
    """

    window: Ticks = 128
    record_window: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 128
    warm_up: Ticks = 32
    good_above: Unit = 0.7
    scores_needed: SmallCount = 3
    calm_below: Unit = 0.3
    criticality_alpha: Share = 0.3
    active_from: Share = 0.5
    mode_weight: Annotated[float, msgspec.Meta(ge=1.0, le=10.0)] = 1.2
    opposition_doubt: Ticks = 32
    pog_start: Unit = 0.7
    pog_alpha: Share = 0.3
    memory_carried: Annotated[float, msgspec.Meta(ge=0.0, lt=1.0)] = 0.5
    lapse_ticks: Ticks = 128
    fade_ticks: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 512
    seat_terms: SmallCount = 8
    seats: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1_024
    token_budget: Annotated[int, msgspec.Meta(ge=0)] = 512
    terms_per_memory: SmallCount = 8
    agreed_by: SmallCount = 3
    agents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000
    ended_lifetime_ms: Milliseconds = 600 * 1000

    def __post_init__(self) -> None:
        """Refuse a warm-up that could not end."""
        if self.warm_up > self.window:
            raise ValueError("self-review setting 'warm_up' is above 'window': no review could ever fire")
