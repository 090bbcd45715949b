"""The coherence gate: does a thought fit what is known, the swarm and the constitution (source R 4, as settled)?

Joins ``intuition.passed`` and ``appraisal.completed`` of an exchange, whichever comes first, with the flags of its
``reflex.passed`` and the latest ``swarm.measured`` (a coherence index of 1.0 before any), and decides once:

- a hint of a constitutional violation (a risk of harm or to layer 0, or a signature that flags): entropy exactly 1.0;
- otherwise entropy = (0.4 knowledge + 0.3 swarm) / 0.7, the source's formula without the term that is then zero;
- what reflex or intuition did not look at, for the bounds on their work, raises it: by the heaviest share of what is
  missing to 1, and to 1 from a share of 0.9 on. So nothing passes because a bound was used up;
- entropy strictly above 0.8: ``coherence.rejected``, and the exchange ends; else ``coherence.passed``.

Knowledge is the share of similar precedents that contradict the thought, and 0.5 where there are none. A precedent
contradicts where its action has the opposite polarity (withholding against answering or acting). One of the same
polarity contradicts too where its outcome was harmful: by actions alone, what is known to do harm would count as
knowledge in favour of doing it again, and weigh less than knowing nothing. So a precedent supports a thought only
where the same was done and it ended well. Which precedents are similar is for intuition to say, which alone holds
their index: those that it reported are counted, each alike.

Swarm is 1 - index, and 0.2 more where the thought would affect the swarm, at most 1.
"""

from actors.coherence.decider import CoherenceState, decide, evolve
from actors.coherence.settings import CoherenceSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.intuition import IntuitionPassed
from schemas.vocabulary.reflex import ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.swarm import SwarmMeasured

ACTOR: Actor[CoherenceState] = Actor(
    name="coherence",
    scope=Scope.SESSION,
    consumes=(ReflexPassed, IntuitionPassed, AppraisalCompleted, SwarmMeasured, ResponseEmitted),
    state_type=CoherenceState,
    settings_type=CoherenceSettings,
    initial=CoherenceState,
    decide=decide,
    evolve=evolve,
)

__all__ = ["ACTOR"]
