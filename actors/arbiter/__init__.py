"""The arbiter: the last gate before deliberation (source R 5, as settled).

Joins ``coherence.passed`` and ``breaker.cleared`` of an exchange, whichever comes first, with the situation of its
input and the precedents that intuition reported, and decides once, in this order:

- ``arbiter.denied``: a constitutional risk is confirmed (the gate reports one, though its threshold let it pass); a
  harmful precedent of similarity 0.75 or more decides, whatever nearer one was benign; or the precedents or the
  situation are not known, which is for an arbiter no reason to let anything pass. The exchange ends.
- ``arbiter.passed``: the input was sent to be checked, or forwarded to a model that is not ours (its ``purpose``).
- ``arbiter.immediate``: a precedent of the same situation type with a benign outcome, a recorded answer and a
  similarity of 0.9 or more answers at once. One whose action was to act does not: its words alone would claim a deed.
- ``arbiter.escalated``: everything else is deliberated on, within a deadline that the clock watches.
"""

from actors.arbiter.decider import ArbiterState, decide, evolve
from actors.arbiter.settings import ArbiterSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.coherence import CoherencePassed
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionPassed
from schemas.vocabulary.responder import ResponseEmitted

ACTOR: Actor[ArbiterState] = Actor(
    name="arbiter",
    scope=Scope.SESSION,
    consumes=(InputReceived, IntuitionPassed, CoherencePassed, BreakerCleared, ResponseEmitted),
    state_type=ArbiterState,
    settings_type=ArbiterSettings,
    initial=ArbiterState,
    decide=decide,
    evolve=evolve,
)

__all__ = ["ACTOR"]
