"""Self-review: reviews an agent's prompts when one of its signals reaches an unusual value. No model is asked.

A *tick* of an agent is one finished exchange that the guards let pass, or one tick of an external engine
(``tick.observed``). Exchanges that guards refused, or that were answered as an earlier situation was (a precedent), are
no ticks, since no prompt was made for them. The prompt of an exchange that was only checked, or that another model
answered, is not known here: such a tick has affect (how exciting and unpleasant it was), novelty and danger alone. An
*entity* is a part that a prompt was, or could have been, made of: a memory. Everything is computed from recorded
numbers.

``tick``                   a tick, and how one of an external engine is read
``exchange_as_tick``       an exchange of this system as a tick
``modes``                  which modes conflict, learned from the decisions made under them
``similarity``, ``score``  the score of a prompt
``counterfactual``         the swap of one entity that would have raised the score most
``rolling_median``         median and deviation of a moving window
``working_memory``         working memory and identity, from tick to tick
``agent_state``            what is kept of an agent: statistics, records, scores, the worth of entities
``gate``                   when a review fires, what it records, when it is resolved

**What is recorded.** A tick that fires no review leads to no event; a replay computes its numbers again from the events
that it was made of. A review is recorded in full: ``self_review.triggered``, ``result``, ``measured`` with all other
numbers, and a ``trace.seat_added`` for each entity. A tick without entities can fire a review, but has no prompt to
score: it has no ``result`` and no seats. If no recent prompt of an agent is known, its reviews are resolved by calm
alone.

**Feedback.** A *seat* is a review's verdict on an entity. Seats change the entity's worth (``pog`` in the names of
settings), which is part of later scores, and its weight in memory, which makes it more or less likely to be recalled.
"""

from actors.self_review.decider import State, decide, evolve
from actors.self_review.settings import SelfReviewSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterPassed
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.guardrails import GuardrailsFinalized, GuardrailsForceFinalized, GuardrailsRerunOrdered
from schemas.vocabulary.loops import TickObserved
from schemas.vocabulary.memory import MemoryRecalled
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.swarm import SwarmMeasured

ACTOR: Actor[State] = Actor(
    name="self_review",
    scope=Scope.AGENT,
    consumes=(
        InputReceived,
        AppraisalCompleted,
        BreakerCleared,
        ArbiterPassed,
        MemoryRecalled,
        ActFinished,
        GuardrailsFinalized,
        GuardrailsForceFinalized,
        GuardrailsRerunOrdered,
        SwarmMeasured,
        ResponseEmitted,
        TickObserved,
        ForgetOrdered,
    ),
    state_type=State,
    settings_type=SelfReviewSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    in_background=True,
    led_apart_from="memory",  # both do much work for one agent: two processes should share it
)
