"""Self-review: an agent looks at its own prompting when something about it is out of the ordinary.

A *tick* of an agent is one finished exchange of it that the guards let pass, or one that an engine outside saw
(``tick.observed``): what guards refused or a precedent answered put no prompt together. One that was only checked, or
that another's model answered, has a prompt that is not known here: affect, novelty and danger are all that it tells.
No model is asked: everything is read from recorded numbers.

``tick``, ``exchange``   a tick, from outside and from an exchange of ours
``modes``                which modes conflict, learned from what is decided under them
``likeness``, ``score``  the score of a prompt
``counterfactual``       the best swap of one entity
``rolling``              median and deviation of a moving window
``holding``              working memory and identity, from tick to tick
``mind``                 what is kept of an agent: statistics, records, scores, what entities are worth
``gate``                 when a review fires, what it says, when it is resolved

**What is recorded.** A tick that fires nothing leads to no event: its numbers are folded from what it was read from. A
review is on record whole: ``self_review.triggered`` and ``result`` with the source's fields, ``measured`` with all the
numbers beside, and a ``trace.seat_added`` for each entity. A tick without entities can fire, but there is no prompt to
judge: it has no ``result`` and no seats. Of an agent that none of the latest prompts is known of, calm alone resolves
a review.

**The loop.** Seats move what an entity is worth (PoG), which is a part of later scores, here; and its weight in memory,
which lets it come to mind sooner or later than before.

Source S (self-review).
"""

from actors.self_review.decider import State, decide, evolve, initial
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
    initial=initial,
    decide=decide,
    evolve=evolve,
)
