"""The arbiter: the last gate before deliberation (the router's choice of a mode, and the answer in it).

It joins ``coherence.passed`` and ``breaker.cleared`` of an exchange, in either order, with the situation of its input
(its kind, a name that the caller chooses) and the precedents (earlier situations with their outcome) that intuition
reported. It decides once, by the first rule that applies:

- ``arbiter.denied``: the coherence gate reports a constitutional risk (of harm, or to the system's own rules) that its
  threshold let pass; or a harmful precedent has a similarity of 0.75 or more, even if a benign one is nearer; or the
  precedents or the situation are missing: without them nothing is let through. The exchange ends.
- ``arbiter.passed``: the input's ``purpose`` is to be checked only, or to be forwarded to another model.
- ``arbiter.immediate``: a precedent answers at once if it has the same situation, a benign outcome, a recorded answer
  and a similarity of 0.9 or more. One whose action was to act does not: its answer would claim that something
  was done which was not.
- ``arbiter.escalated``: everything else is deliberated on, within a deadline, for which a timer is set.
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
