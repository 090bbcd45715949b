"""Settings of the swarm's measurement."""

from math import isclose
from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit
from schemas.input_path import LEDGER, REQUIRED, scopes
from schemas.settings.measured_settings import MEASURED_ALONE, MEASURED_TOO, MeasuredTimeout
from schemas.settings.unreachable_settings import at_most

Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
"""A number of decisions."""


class SwarmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the index is measured with: the swarm's coherence, 0 to 1, the weighted mean of four shares.

    ``actors.swarm.coherence_index`` computes them. ``MEASURED_ALONE`` marks a setting that only the running process
    reads, ``MEASURED_TOO`` one that decisions read as well.

    Attributes:
        precedent_weight: Weight of precedent agreement: of the precedents found similar to an input, the share on the
            commoner side: for doing what an input asks, or against it.
        health_weight: Weight of health alignment: 1 - the variance of the actors' shares of decisions without failure.
        delivered_weight: Weight of the delivered share: the accepted inputs whose exchange ended in time.
        consistency_weight: Weight of decision consistency: the share of decisions that agree with the commonest one on
            inputs similar to the same precedent.
        moved_by: The index is recorded again once it differs from the last recorded one by at least this much.
        healthy_from: Least index of a healthy swarm.
        window_ms: Length of the window; the oldest ``1 / slices`` of it is dropped at a time.
        slices: Number of slices of the window.
        grace_ms: Time after which an accepted input without an end counts as not delivered. The default is the deadline
            of inputs: a shorter time would count slow answers of a language model as lost.
        decisions_needed: Decisions below which consistency is 1.0.
        decisions_kept: Number of latest decisions from which consistency is computed.
        required: The stages that every input needs: each is lost when nobody serves it.
        kept: Further stages: each is lost when nobody serves it any more, but not if nobody ever did. All other stages
            are lost if something was asked of them, or if a worker hosts them but does not serve them. A lost one that
            no exchange may ask is no longer lost once nobody has hosted it for ``repeat_ms``: a ``webhook`` that was
            taken down for good is taken out of ``kept``.
        owner_grace_ms: How long a stage may be without an owner, or not advance, before it is lost: a restart of its
            worker takes less. A worker that was killed counts as its owner until its last heartbeat expires, three
            seconds more.
        start_grace_ms: ``owner_grace_ms`` of a stage that has not been seen at work since swarm started to watch.
        recovery_grace_ms: ``owner_grace_ms`` of a stage whose worker still reads its history.
        repeat_ms: A stage that stays lost is recorded again after this long.
        budget_quiet_ms: A stage that was over its latency budget counts as within it again once no decision has
            exceeded it for this long.

    Raises:
        ValueError: weights that do not add up to 1, or an unknown stage. ``msgspec.convert`` reports it as a
            ``ValidationError``.
    """

    precedent_weight: Unit = 0.30
    health_weight: Unit = 0.25
    delivered_weight: Unit = 0.25
    consistency_weight: Unit = 0.20
    moved_by: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 0.05
    healthy_from: Unit = 0.70
    window_ms: Milliseconds = 600 * 1000
    slices: Annotated[int, msgspec.Meta(ge=1, le=60)] = 10
    grace_ms: Milliseconds = 60 * 1000
    decisions_needed: Annotated[Count, at_most("decisions_kept")] = 10
    decisions_kept: Count = 100
    required: Annotated[tuple[str, ...], MEASURED_TOO] = REQUIRED
    kept: Annotated[tuple[str, ...], MEASURED_ALONE] = ("alerts", LEDGER, "webhook")
    owner_grace_ms: MeasuredTimeout = 8_000
    start_grace_ms: MeasuredTimeout = 15_000
    recovery_grace_ms: MeasuredTimeout = 30_000
    repeat_ms: MeasuredTimeout = 15_000
    budget_quiet_ms: MeasuredTimeout = 60_000

    def __post_init__(self) -> None:
        """Refuse weights with which the index would leave [0, 1] or never reach 1, and stages that nobody can serve."""
        total = self.precedent_weight + self.health_weight + self.delivered_weight + self.consistency_weight
        if not isclose(total, 1.0, abs_tol=1e-9):
            raise ValueError(f"the swarm's weights must add up to 1; they add up to {total:g}")
        known = scopes()
        for stage in (*self.required, *self.kept):
            if stage not in known:
                raise ValueError(f"there is no stage {stage!r} to be required or kept: there are {', '.join(known)}")
