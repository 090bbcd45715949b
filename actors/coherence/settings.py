"""Settings of the coherence gate."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit
from schemas.settings.measured_settings import Budget

Weight = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
"""How much a term of the entropy counts, before the weights are scaled to a sum of one."""

Share = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
"""A share above 0."""


class CoherenceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate decides with.

    A thought is what an input would lead to; its entropy, from 0 to 1, says how badly it fits what is known. A
    precedent is an earlier situation with its outcome. The swarm is all actors and agents together. A FLAG signature is
    a pattern of reflex that is reported and does not block.

    Attributes:
        entropy_threshold: Entropy above which a thought is rejected; the value itself passes. At 1.0 the gate rejects
            nothing, and the arbiter denies what violates the constitution.
        knowledge_weight: Weight of the entropy's knowledge term: how far precedents contradict the thought.
        swarm_weight: Weight of the entropy's swarm term: how little the swarm agrees.
        unknown_knowledge: The knowledge term if there is no similar precedent.
        swarm_disturbance: Added to the swarm term if the thought would affect the swarm.
        flags_violate_from: A FLAG signature of reflex with at least this confidence counts as a constitutional
            violation; None: no flag does. Flags with less are recorded and reject nothing.
        unread_limit: If an earlier guard could not look at this share of an input or more, because its work is bounded,
            the input is rejected for that alone (``schemas.unread``). A smaller share raises the entropy. At 1.0 any
            share only raises the entropy.
        pending_lifetime_ms: An exchange without a verdict is kept for at least this long, and at most twice as long.
        settled_lifetime_ms: A repeated message of an exchange is recognised for at least this long after its verdict.
        latency_budget_ms: Time for a decision; the process that makes it compares measured times with it. No decision
            depends on it.
    """

    entropy_threshold: Unit = 0.8
    knowledge_weight: Weight = 0.4
    swarm_weight: Weight = 0.3
    unknown_knowledge: Unit = 0.5
    swarm_disturbance: Unit = 0.2
    flags_violate_from: Unit | None = 0.6
    unread_limit: Share = 0.9
    pending_lifetime_ms: Milliseconds = 24 * 3600 * 1000
    settled_lifetime_ms: Milliseconds = 600 * 1000
    latency_budget_ms: Budget = 30.0
